// A query to the server: a command with its files in a separate folder.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.hpp"
#include "core/cancellation.hpp"
#include "core/descriptor.hpp"
#include "run_context.hpp"
#include "search/reader_source.hpp"

namespace hmmjit::tools {

/// True if an option is a prefix of file names, one file per round.
bool names_rounds(std::string_view option);

/// A database that the server keeps open. A replacement is another object.
struct Database {
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  /// Opens a file of sequences or of profiles. Keeps them in memory, up to `memory` bytes (0: no
  /// bound for sequences, a quarter of the free memory for profiles). Maps a target database. Each
  /// scan reads larger files of profiles, and profiles without score statistics. Fails as a search
  /// does.
  static Result<std::shared_ptr<const Database>> open(const std::string& path,
                                                      std::uint64_t memory);
  /// True if the file at `path` is gone, replaced or changed. Always true for a BLAST database,
  /// whose files have other names; never for a stream.
  bool replaced() const;
  /// Resident size, in bytes.
  std::uint64_t bytes() const;

  std::string path;     ///< as given to the server
  std::string place;    ///< opens the same file, even after its replacement
  std::shared_ptr<const ResidentTargets> targets;  ///< null for profiles
  std::shared_ptr<const ResidentModels> models;    ///< null for sequences; or each scan reads them
  Descriptor descriptor;
  std::string version;  ///< device, inode, time and size
};
using Databases = std::map<std::string, std::shared_ptr<const Database>>;

/// The server's bounds for a query.
struct QueryBounds {
  int threads = 1;
  std::uint64_t memory = 0;       ///< 0: no bound
  std::uint64_t input = 0;        ///< bytes of a request, and of an input, decompressed
  std::size_t longest_query = 0;  ///< residues of a query sequence from which a model is built
  std::chrono::seconds time{0};   ///< 0: no bound
  std::shared_ptr<Session> session;
};

/// A folder that the destructor removes, with all its files.
class TemporaryFolder {
 public:
  /// Makes a folder in `parent`. Fails with kOutput.
  static Result<TemporaryFolder> create(const std::string& parent);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  std::string path_;
};

/// Put files in their places before prepare(). During run(), another thread may read the text and
/// the progress.
class Query {
 public:
  explicit Query(TemporaryFolder folder) : folder_(std::move(folder)) {}

  /// The place of an input: "query" for the file of queries, otherwise the option that names it.
  /// `ending`: of a pressed file of profiles. Fails with kUsage.
  Result<std::string> input_path(std::string_view input, std::string_view ending = {}) const;
  const std::string& folder() const { return folder_.path(); }
  /// False if the query cannot run: messages and exit status tell the reason.
  bool prepare(const std::string& command, const std::vector<std::string>& words,
               std::string client_folder, const Databases& databases);
  /// `running`: number of running queries of the server, including this one.
  void run(const QueryBounds& bounds, int running);
  /// Makes the run end soon, with its results so far.
  void cancel() { cancellation_.cancel(); }
  bool cancelled() const { return cancellation_.cancelled(); }

  /// The outputs of the program: the option ("": standard output), and the text of {query} in the
  /// name, or after the name.
  struct Output {
    std::string option, part, path;
  };
  std::vector<Output> outputs() const;
  bool begun() const { return report_.get() >= 0; }  ///< true after prepare() succeeded
  std::string report() const;                        ///< the file for standard output
  std::string take_messages();                       ///< new messages for standard error
  std::string command() const;                       ///< "search"
  int exit_status() const { return exit_; }
  double seconds() const { return seconds_; }
  const SearchProgress& progress() const { return progress_; }

 private:
  Status make_options(const std::string& command, const std::vector<std::string>& words,
                      std::string client_folder, const Databases& databases);
  void end_with(const Error& error);
  void say(std::string_view text);
  // Replaces names of the request's files by the client's names.
  std::string as_shown(std::string text) const;

  TemporaryFolder folder_;
  std::optional<CommandSpec> command_;
  std::optional<ParsedOptions> options_;
  std::vector<std::pair<std::string, std::string>> shown_;  // place, name
  std::shared_ptr<const Database> database_;
  std::string client_folder_;
  Descriptor report_;
  int exit_ = 0;
  double seconds_ = 0;
  SearchProgress progress_;
  Cancellation cancellation_;
  std::mutex mutex_;
  std::string messages_;
  std::set<std::string> warned_;
};

}  // namespace hmmjit::tools
