// --server: runs the command in a server and writes its outputs here.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "core/descriptor.hpp"
#include "core/diagnostics.hpp"
#include "core/output_file.hpp"
#include "io/blast_database.hpp"
#include "io/byte_source.hpp"
#include "io/sequence_file.hpp"
#include "output_names.hpp"
#include "progress.hpp"
#include "report/report_writer.hpp"
#include "run_text.hpp"
#include "search_inputs.hpp"
#include "search_program.hpp"
#include "server_http.hpp"
#include "server_query.hpp"
#include "server_wire.hpp"

namespace hmmjit::tools {
namespace {

// A frame with a file for the server. The server reports missing files like the program.
Result<std::string> input_frame(const std::string& path, nlohmann::json head) {
  const Descriptor opened(path == "-" ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int file = path == "-" ? STDIN_FILENO : opened.get();
  if (file < 0) {
    const bool absent = errno == ENOENT;
    if (absent && is_blast_database(path))
      return fail(ErrorCode::kUsage, "a server takes no BLAST database of queries", path,
                  "write its sequences to a FASTA file: blastdbcmd -entry all");
    const auto source = open_byte_source(path);  // reports errors as the program does
    if (absent || source) return std::string();
    return std::unexpected(source.error());
  }
  struct stat info {};
  if (::fstat(file, &info) == 0 && S_ISDIR(info.st_mode)) {
    head["folder"] = true;
    return frame_head(head);
  }
  head["modified"] = info.st_mtim.tv_sec;
  std::string bytes, piece(std::size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t got = ::read(file, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(ErrorCode::kInput, fmt::format("cannot read: {}", std::strerror(errno)), path);
    if (got == 0) break;
    bytes.append(piece, 0, static_cast<std::size_t>(got));
  }
  return frame_head(std::move(head), bytes.size()) + bytes;
}

Result<std::string> request_of(const SearchProgram& program, const ParsedOptions& options) {
  std::string words = current_folder() + '\0';
  for (const std::string& word : options.words()) words += word + '\0';
  std::string request = frame_head({{"command", program.name}}, words.size()) + words;
  const std::string& queries = options.arguments()[program.by_sequence ? 1 : 0];
  const bool profiles = program.open_queries == nullptr && !program.by_sequence;
  const auto add = [&](const std::string& path, nlohmann::json head) -> Status {
    HMMJIT_ASSIGN(const std::string frame, input_frame(path, std::move(head)));
    request += frame;
    return {};
  };
  HMMJIT_TRY(add(program.by_sequence ? find_sequence_file(queries) : queries,
                 {{"input", "query"}, {"ending", ""}}));
  if (profiles && queries != "-") {
    for (const char* suffix : kPressedSuffixes)
      HMMJIT_TRY(add(queries + suffix, {{"input", "query"}, {"ending", suffix}}));
  }
  for (const char* option : kInputOptions) {
    if (options.knows(option) && options.is_set(option))
      HMMJIT_TRY(add(std::string(options.text(option)), {{"input", option}}));
  }
  return request;
}

// The outputs of a run in a server. They get their names once all are received; outputs of single
// queries one by one.
class Answer {
 public:
  Answer(const ParsedOptions& options, bool progress) : options_(options), progress_(progress) {}

  Status begin(const SearchProgram& program) {
    others_ = with_standard_output(
        {{"file of queries", options_.arguments()[program.by_sequence ? 1 : 0]}}, options_);
    for (const NamedFile& output : output_files(program.options(), options_)) {
      if (output.path.find("{query}") != output.path.npos) continue;
      HMMJIT_TRY(file(output.path));
      others_.push_back(output);
    }
    return {};
  }
  Status on_head(const nlohmann::json& head) {
    if (const auto exit = head.find("exit"); exit != head.end()) exit_ = exit->get<int>();
    if (const auto text = head.find("progress"); text != head.end() && progress_)
      show_status_line(text->get<std::string>());
    to_ = nullptr;
    // The next head completes the file of a query.
    if (of_query_) HMMJIT_TRY(of_query_->commit());
    of_query_.reset();
    const auto output = head.find("output");
    if (output == head.end()) return {};
    const auto option = output->get<std::string>();
    const std::string part = percent_decoded(head.value("part", ""));
    if (option.empty()) return receive("/dev/stdout");
    if (part.find('/') != part.npos || !options_.knows(option) || !options_.is_set(option))
      return fail(ErrorCode::kInput, "an output that was not asked for", option);
    const std::string name(options_.text(option));
    const bool by_query = name.find("{query}") != name.npos && !names_rounds(option);
    const auto file = by_query ? NamedFile{"the output of query " + part, path_of_query(name, part)}
                               : NamedFile{option, name + part};
    if (!part.empty()) HMMJIT_TRY(check_outputs({&file, 1}, others_));
    if (!by_query) return receive(file.path);
    HMMJIT_ASSIGN(of_query_, OutputFile::create(file.path));
    to_ = &*of_query_;
    return {};
  }
  Status on_bytes(std::string_view bytes) {
    if (to_ == nullptr) {
      print_diagnostic(bytes);
      return {};
    }
    to_->write(bytes);
    return to_->flush();
  }
  /// The exit status, once all files have their names; nullopt if the answer is incomplete.
  Result<std::optional<int>> end() {
    if (progress_) show_status_line({});
    if (!exit_) return std::nullopt;
    std::vector<OutputFile*> complete;
    for (auto& [path, output] : files_) {
      if (output.arrived) complete.push_back(&output.file);
    }
    HMMJIT_TRY(OutputFile::publish(complete, *exit_ == 0 ? OutputFile::Afterwards::kProcessEnds
                                                         : OutputFile::Afterwards::kProcessGoesOn));
    return exit_;
  }

 private:
  struct Output {
    OutputFile file;
    bool arrived = false;
  };
  Result<Output*> file(const std::string& path) {
    auto found = files_.find(path);
    if (found == files_.end()) {
      HMMJIT_ASSIGN(OutputFile made, OutputFile::create(path));
      found = files_.emplace(path, Output{std::move(made)}).first;
    }
    return &found->second;
  }
  Status receive(const std::string& path) {
    HMMJIT_ASSIGN(Output * output, file(path));
    output->arrived = true;
    to_ = &output->file;
    return {};
  }

  const ParsedOptions& options_;
  const bool progress_;
  std::vector<NamedFile> others_;  // files that no file of a query or round may overwrite
  std::map<std::string, Output> files_;
  std::optional<OutputFile> of_query_;
  OutputFile* to_ = nullptr;  // null: standard error
  std::optional<int> exit_;
};

}  // namespace

Result<int> ask_server(const SearchProgram& program, const ParsedOptions& options) {
  const std::string server(options.text("--server"));
  Answer answer(options, !options.is_set("--quiet") && ::isatty(STDERR_FILENO) == 1 &&
                             progress_fits(options.is_set("-o"), false));
  HMMJIT_TRY(answer.begin(program));
  HMMJIT_ASSIGN(const std::string request, request_of(program, options));
  HMMJIT_ASSIGN(const int socket, connect_to(server));
  // A server that refuses may answer before it has received the whole request.
  if (send_all(socket, fmt::format("POST /v1/run HTTP/1.1\r\nHost: localhost\r\n"
                                   "Content-Length: {}\r\n\r\n",
                                   request.size())))
    send_all(socket, request);
  FrameReader frames([&](const nlohmann::json& head) { return answer.on_head(head); },
                     [&](std::string_view bytes) { return answer.on_bytes(bytes); });
  std::string head, piece(std::size_t{1} << 16, '\0');
  bool accepted = false;
  for (;;) {
    const ssize_t got = ::recv(socket, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
    if (!accepted) {
      head += bytes;
      const std::size_t end = head.find("\r\n\r\n");
      accepted = end != head.npos && head.starts_with("HTTP/1.1 200");
      if (!accepted) continue;
      bytes = std::string_view(head).substr(end + 4);
    }
    HMMJIT_TRY(frames.feed(bytes));
  }
  ::close(socket);
  HMMJIT_ASSIGN(const std::optional<int> exit, answer.end());
  if (exit) return *exit;
  const std::size_t text = head.find("\r\n\r\n");
  if (accepted || text == head.npos)
    return fail(ErrorCode::kResources, "the server ended before its answer", server,
                "see its messages");
  return fail(ErrorCode::kResources, head.substr(text + 4, head.find('\n', text + 4) - text - 4),
              server);
}

}  // namespace hmmjit::tools
