// hmmjit serve: keeps databases and devices ready for the queries of clients.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "command.hpp"
#include "core/descriptor.hpp"
#include "core/diagnostics.hpp"
#include "core/folder.hpp"
#include "core/output_file.hpp"
#include "core/read_only_file.hpp"
#include "io/byte_source.hpp"
#include "progress.hpp"
#include "report/html_page.hpp"
#include "result_file.hpp"
#include "search_options.hpp"
#include "search_program.hpp"
#include "server_http.hpp"
#include "server_query.hpp"
#include "server_wire.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;
constexpr std::size_t kLongestCommand = std::size_t{1} << 20;  // in bytes
constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr std::string_view kBounds = "Bounds";
constexpr OptionSpec kServeOptions[] = {
    {kBasic, "-h,--help", "", "show this help"},
    {kBasic, "--db", "s", "NAME=FILE: serve the sequences or profiles of FILE under NAME",
     kSeveral},
    {kBasic, "--socket", "path", "listen on a Unix socket that only this user can open"},
    {kBasic, "--listen", "HOST:PORT", "listen on a TCP port, for clients with the token",
     needing("--token-file")},
    {kBasic, "--token-file", "file", "the token that clients of --listen send"},
    {kBounds, "--running", "n=4 0<n<=1000", "queries that run at a time"},
    {kBounds, "--queued", "n=64 0<=n<=10000", "queries that wait; more are refused"},
    {kBounds, "--time-limit", "n=0 n>=0", "seconds that a query may run; 0: any number"},
    {kBounds, "--max-request", "size=256M", "the largest request, also when decompressed"},
    {kBounds, "--longest-query", "n=100000 n>0", "residues of a query of phmmer or jackhmmer"},
};

// A query in the server.
struct Job {
  explicit Job(TemporaryFolder folder) : query(std::move(folder)) {}
  Query query;
  bool runs = false;
  std::atomic<bool> done = false;                      // the query's results are readable
  const Descriptor signal{::eventfd(0, EFD_CLOEXEC)};  // readable once done
};

// Runs jobs in order of arrival, several at a time.
class JobQueue {
 public:
  // `has_run`: receives each query that has run, before Job::done.
  JobQueue(std::size_t running, std::size_t queued, QueryBounds bounds,
           std::function<void(const Query&)> has_run)
      : queued_(queued), bounds_(std::move(bounds)), has_run_(std::move(has_run)) {
    workers_.reserve(running);
    while (workers_.size() < running)
      workers_.emplace_back([this](const std::stop_token& ended) { work(ended); });
  }
  // Queues a job; sets Job::done and the signal at its end. False if the queue is full.
  bool submit(std::shared_ptr<Job> job) {
    {
      const std::lock_guard lock(mutex_);
      if (full()) return false;
      waiting_.push_back(std::move(job));
    }
    wake_.notify_one();
    return true;
  }
  bool refuses() {
    const std::lock_guard lock(mutex_);
    return full();
  }
  std::pair<std::size_t, std::size_t> running_and_waiting() {
    const std::lock_guard lock(mutex_);
    forget_cancelled();
    return {running_, waiting_.size()};
  }

 private:
  void forget_cancelled() {
    std::erase_if(waiting_, [](const auto& job) { return job->query.cancelled(); });
  }
  bool full() {
    forget_cancelled();
    return waiting_.size() + running_ >= queued_ + workers_.size();
  }
  // Runs jobs until `ended`, then the remaining queue.
  void work(const std::stop_token& ended) {
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, ended, [this] { return !waiting_.empty(); })) {
      const std::shared_ptr<Job> job = std::move(waiting_.front());
      waiting_.pop_front();
      const auto running = static_cast<int>(++running_);
      lock.unlock();
      if (!job->query.cancelled()) {  // while it waited
        job->query.run(bounds_, running);
        has_run_(job->query);
      }
      lock.lock();
      --running_;
      job->done = true;
      ::eventfd_write(job->signal.get(), 1);
    }
  }

  const std::size_t queued_;
  const QueryBounds bounds_;
  const std::function<void(const Query&)> has_run_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::size_t running_ = 0;
  std::vector<std::jthread> workers_;  // destroyed first: they use the other members
};

// The folder of a server, with a folder per query. A running server holds its lock.
class ServerFolder {
 public:
  // Makes a folder in `parent`. Fails with kOutput.
  static Result<std::unique_ptr<ServerFolder>> create(const std::string& parent) {
    HMMJIT_ASSIGN(TemporaryFolder folder, TemporaryFolder::create(parent));
    const std::string path = folder.path() + kLock;
    std::unique_ptr<ServerFolder> made(new ServerFolder(std::move(folder)));
    made->lock_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    // systemd-tmpfiles skips locked folders.
    made->tree_ = Descriptor(::open(made->path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ::flock(made->tree_.get(), LOCK_SH | LOCK_NB);
    if (made->lock_.get() < 0 || ::flock(made->lock_.get(), LOCK_EX | LOCK_NB) != 0 ||
        ::access(path.c_str(), F_OK) != 0)
      return fail(ErrorCode::kOutput, "another server removed this one's folder", made->path(),
                  "start it again");
    return made;
  }
  // Removes the folders of killed servers.
  static void remove_abandoned(const std::string& parent) {
    const auto names = names_in_folder(parent);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      const std::string path = parent + "/" + name;
      struct stat info {};
      if (!name.starts_with("hmmjit-serve-") || ::lstat(path.c_str(), &info) != 0 ||
          !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
        continue;
      const Descriptor lock(::open((path + kLock).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
      std::error_code ignored;
      if (lock.get() >= 0 && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0)
        std::filesystem::remove_all(path, ignored);
    }
  }
  const std::string& path() const { return folder_.path(); }

 private:
  static constexpr const char* kLock = "/hmmjit-serve.lock";
  explicit ServerFolder(TemporaryFolder folder) : folder_(std::move(folder)) {}
  TemporaryFolder folder_;
  Descriptor lock_, tree_;
};

class Server {
 public:
  struct Settings {
    std::map<std::string, std::string> files;  // by name
    std::string token, parent;                 // of the server's folder
    std::size_t running, queued;
    std::uint64_t memory;
    QueryBounds bounds;
  };
  explicit Server(Settings settings)
      : settings_(std::move(settings)),
        queue_(settings_.running, settings_.queued, settings_.bounds,
               [this](const Query& query) { count(query); }) {}
  ~Server() {
    const std::lock_guard lock(mutex_);  // waits until the last connection releases it
  }

  // Opens databases, on later calls only replaced ones; running queries keep the old ones. Fails
  // only on the first call.
  Status load() {
    for (const auto& [name, file] : settings_.files) {
      const std::shared_ptr<const Database> old = databases()[name];
      if (old != nullptr && !old->replaced()) continue;
      auto opened = open(name, file);
      if (!opened && old == nullptr) return std::unexpected(opened.error());
      if (opened && old != nullptr && (old->targets == nullptr) != ((*opened)->targets == nullptr))
        opened = fail(ErrorCode::kInput,
                      old->targets ? "these are profiles now" : "these are sequences now", file);
      if (opened) {
        const std::lock_guard lock(mutex_);
        databases_[name] = *opened;
      }
      if (old == nullptr) continue;
      diagnose("hmmjit serve: {}: {}\n", name,
               opened ? "opened again" : opened.error().to_string() + "; the old one stays");
    }
    return {};
  }

  // Serves a connection, in its own thread.
  void accept(int socket, bool needs_token) {
    const std::size_t most = settings_.running + settings_.queued + 16;
    const auto [running, waiting] = queue_.running_and_waiting();
    bool busy = false;
    {
      const std::lock_guard lock(mutex_);
      busy = connections_ >= most;
      // A server without queries must be able to end, even if clients keep sending requests.
      if ((ending_ && running + waiting == 0) || connections_ >= 2 * most) {
        ++refused_;
        ::close(socket);
        return;
      }
      ++connections_;
    }
    try {
      std::thread([this, socket, needs_token, busy] {
        try {
          HttpConnection connection(socket, settings_.bounds.input);
          if (busy)
            refuse(connection, "too many queries; try again later\n");
          else
            answer(connection, needs_token);
        } catch (const std::exception& error) {
          diagnose("hmmjit serve: a request failed: {}\n", error.what());
        }
        leave();
      }).detach();
    } catch (const std::system_error&) {
      ::close(socket);
      leave();
    }
  }

  // Refuses queries from now on; signals `idle` after the answer to the last one.
  void end(int idle) {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    idle_ = idle;
    if (connections_ == 0) ::eventfd_write(idle, 1);
  }

  // Makes a folder for a query in the server's folder, which a cleaner of TMPDIR may have removed.
  // Fails with kOutput.
  Result<TemporaryFolder> make_folder() {
    const std::lock_guard lock(mutex_);
    if (folder_ == nullptr || ::access(folder_->path().c_str(), F_OK) != 0) {
      HMMJIT_ASSIGN(folder_, ServerFolder::create(settings_.parent));
    }
    return TemporaryFolder::create(folder_->path());
  }
  void remove_folder() {
    const std::lock_guard lock(mutex_);
    folder_.reset();
  }

 private:
  Result<std::shared_ptr<const Database>> open(const std::string& name, const std::string& file) {
    std::uint64_t held = 0;  // by the other databases
    for (const auto& [other, database] : databases()) held += other == name ? 0 : database->bytes();
    const std::uint64_t all = settings_.memory / 2;
    try {
      auto opened = Database::open(file, all == 0 ? 0 : std::max(all, held + 1) - held);
      if (!opened && opened.error().where.empty()) opened.error().where = file;
      return opened;
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::kResources, "out of memory", file);
    } catch (const std::system_error& error) {
      return std::unexpected(refused_threads("the threads that read it", error));
    }
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--connections_ == 0 && ending_) ::eventfd_write(idle_, 1);
  }
  std::string device_state() const {
    const auto devices = settings_.bounds.session->device_statistics();
    // Devices that were never ready do not exist.
    const bool none = !devices || (devices->state == "failed" && devices->ready_seconds == 0);
    return none ? "none" : devices->state;
  }
  Databases databases() {
    const std::lock_guard lock(mutex_);
    return databases_;
  }

  void answer(HttpConnection& connection, bool needs_token) {
    const std::optional<HttpRequest> request = connection.read_head();
    if (!request) return;
    if (needs_token && !same(request->token, settings_.token))
      return connection.answer(401, kText, "the token is missing or wrong\n");
    if (request->method == "GET" && request->path == "/health")
      return connection.answer(200, "application/json", health());
    if (request->method == "GET" && request->path == "/metrics")
      return connection.answer(200, "text/plain; version=0.0.4", metrics());
    if (request->method != "POST" || !request->path.starts_with("/v1/"))
      return connection.answer(404, kText, "no such path; hmmjit's docs/serve.md lists them\n");
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return connection.answer(503, kText, "the server is ending\n");
    }
    if (queue_.refuses()) return refuse_query(connection);
    auto folder = make_folder();
    if (!folder) return connection.answer(507, kText, folder.error().to_string() + "\n");
    const auto job = std::make_shared<Job>(*std::move(folder));
    if (request->path == "/v1/run")
      run_frames(connection, job);
    else
      run_simple(connection, *request, job);
  }

  static bool same(std::string_view given, std::string_view token) {
    unsigned differ = given.size() != token.size();
    for (std::size_t i = 0; i < std::min(given.size(), token.size()); ++i)
      differ |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(token[i]);
    return differ == 0;
  }

  void refuse(HttpConnection& connection, std::string_view text) {
    ++refused_;
    connection.answer(503, kText, text);
  }
  void refuse_query(HttpConnection& connection) {
    refuse(connection, fmt::format("{} queries wait; try again later\n", settings_.queued));
  }

  // Unpacks a request, frames (docs/serve.md), into the folder of its query.
  Status unpack(Job& job, const std::string& body) {
    std::string command, strings;
    std::optional<OutputFile> file;
    std::time_t modified = 0;
    const auto end_file = [&]() -> Status {
      if (!file) return {};
      HMMJIT_TRY(file->commit());
      const timespec times[2] = {{modified, 0}, {modified, 0}};
      ::utimensat(AT_FDCWD, file->path().c_str(), times, 0);
      file.reset();
      return {};
    };
    FrameReader frames(
        [&](const nlohmann::json& head) -> Status {
          HMMJIT_TRY(end_file());
          command = head.value("command", command);
          if (!head.contains("input")) return {};
          HMMJIT_ASSIGN(const std::string path,
                        job.query.input_path(head.value("input", ""), head.value("ending", "")));
          if (::access(path.c_str(), F_OK) == 0)
            return fail(ErrorCode::kInput, "an input comes twice", head.value("input", ""));
          modified = head.value("modified", std::time_t{0});
          if (head.value("folder", false)) {
            ::mkdir(path.c_str(), 0700);
            return {};
          }
          HMMJIT_ASSIGN(file, OutputFile::create(path));
          return {};
        },
        [&](std::string_view bytes) -> Status {
          if (file) {
            file->write(bytes);
            return file->status();
          }
          if (strings.size() + bytes.size() > kLongestCommand)
            return fail(ErrorCode::kInput, "the command is too long");
          strings += bytes;
          return {};
        });
    try {
      HMMJIT_ASSIGN(const ReadOnlyFile received, ReadOnlyFile::open(body));
      std::string piece(kPiece, '\0');
      for (std::uint64_t at = 0; at < received.size(); at += piece.size()) {
        piece.resize(std::min<std::uint64_t>(kPiece, received.size() - at));
        HMMJIT_TRY(received.read(at, piece));
        HMMJIT_TRY(frames.feed(piece));
      }
    } catch (const nlohmann::json::exception& error) {
      return fail(ErrorCode::kInput, error.what());
    }
    HMMJIT_TRY(end_file());
    std::vector<std::string> words = split_list(strings, '\0');
    if (!frames.complete() || words.empty())
      return fail(ErrorCode::kInput, "the request is incomplete");
    const std::string folder = words.front();
    words.erase(words.begin());
    job.runs = job.query.prepare(command, words, folder, databases());
    return {};
  }

  void run_frames(HttpConnection& connection, const std::shared_ptr<Job>& job) {
    Query& query = job->query;
    const std::string body = query.folder() + "/request";
    if (!connection.read_body(body)) return;
    if (const Status unpacked = unpack(*job, body); !unpacked)
      return connection.answer(unpacked.error().code == ErrorCode::kOutput ? 507 : 400, kText,
                               unpacked.error().to_string() + "\n");
    ::unlink(body.c_str());
    if (job->runs && !queue_.submit(job)) return refuse_query(connection);
    bool there = connection.begin(200, "application/octet-stream");
    const auto begun = std::chrono::steady_clock::now();
    std::uint64_t shown = 0;
    // The last line, [ok], follows the other files, as without a server.
    const auto show_report = [&](std::uint64_t held = std::string_view("[ok]\n").size()) {
      if (!query.begun()) return true;
      const auto report = ReadOnlyFile::open(query.report());
      if (!report) return false;
      const std::uint64_t end = std::max(shown, report->size() - std::min(held, report->size()));
      const std::uint64_t from = std::exchange(shown, end);
      return from == end || (connection.write(frame_head({{"output", ""}}, end - from)) &&
                             send(connection, *report, from, end));
    };
    for (bool done = !job->runs; there && !done;) {
      there = connection.wait(job->signal.get(), std::chrono::seconds(1));
      done = job->done;
      if (done || !there) break;
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun;
      there = connection.write(frame_head(
                  {{"progress", progress_line(query.progress(), {}, time.count(), 80)}})) &&
              show_report();
    }
    if (!there) return query.cancel();
    if (!job->runs) count(query);
    there = show_report();
    for (const Query::Output& output : query.outputs()) {
      const auto file = ReadOnlyFile::open(output.path);
      there =
          there && file &&
          connection.write(frame_head(
              {{"output", output.option}, {"part", percent_encoded(output.part)}}, file->size())) &&
          send(connection, *file, 0, file->size());
    }
    there = there && show_report(0);
    const std::string messages = query.take_messages();
    if (there)
      connection.write(frame_head({{"messages", true}}, messages.size()) + messages +
                       frame_head({{"exit", query.exit_status()}}));
  }

  // Sends bytes [from, end) of a file; false: the file is unreadable, or the client is gone.
  static bool send(HttpConnection& connection, const ReadOnlyFile& file, std::uint64_t from,
                   std::uint64_t end) {
    std::string piece;
    for (; from < end; from += piece.size()) {
      piece.resize(std::min<std::uint64_t>(kPiece, end - from));
      if (!file.read(from, piece) || !connection.write(piece)) return false;
    }
    return true;
  }

  // The simple interface: a file of queries, with options as parameters; answers with one output of
  // the program.
  void run_simple(HttpConnection& connection, const HttpRequest& request,
                  const std::shared_ptr<Job>& job) {
    Query& query = job->query;
    std::string database, output;
    bool page = false;
    std::vector<std::string> words;
    for (const auto& [name, value] : request.parameters) {
      const std::string option = (name.size() == 1 ? "-" : "--") + name;
      if (name == "db")
        database = value;
      else if (name == "output" && value == "page") {
        page = true;
        words.emplace_back((output = "--json") + "=-");
      } else if (name == "output")
        words.push_back((output = (value.size() == 1 ? "-" : "--") + value) +
                        (value.size() == 1 ? "-" : "=-"));
      else
        words.push_back(name.size() == 1 ? option + value
                        : value.empty()  ? option
                                         : option + "=" + value);
    }
    if (!connection.read_body(*query.input_path("query"))) return;
    const std::string command = request.path.substr(4);
    words.insert(words.end(), {"--", "-", database});
    if (command == "scan") std::swap(words[words.size() - 2], words.back());
    const bool runs = query.prepare(command, words, "/", databases());
    if (runs && !queue_.submit(job)) return refuse_query(connection);
    while (runs && !job->done) {
      if (!connection.wait(job->signal.get(), std::chrono::hours(1))) return query.cancel();
    }
    if (!runs) count(query);
    const int exit = query.exit_status();
    if (exit != 0)
      return connection.answer(query.command().empty()  ? 404
                               : exit == 2 || exit == 3 ? 400
                               : exit == 5              ? 503
                                                        : 500,
                               kText, query.take_messages());
    std::string place = output.empty() ? query.report() : "";
    for (const Query::Output& one : query.outputs()) {
      if (one.option == output) place = one.path;
    }
    if (place.empty())
      return connection.answer(
          400, kText,
          fmt::format("hmmjit {}: no output {}; write its full name\n", command, output));
    if (page) {
      const std::string result = std::exchange(place, query.folder() + "/page");
      const Status made = make_page(result, place, command + " in " + database);
      if (!made)
        return connection.answer(made.error().code == ErrorCode::kOutput ? 507 : 500, kText,
                                 made.error().to_string() + "\n");
    }
    const auto file = ReadOnlyFile::open(place);
    if (!file) return connection.answer(500, kText, file.error().to_string() + "\n");
    if (connection.begin(200, page ? kHtml : kText, file->size()))
      send(connection, *file, 0, file->size());
  }

  // Makes the page of `hmmjit report` from a result.
  static Status make_page(const std::string& result, const std::string& path, std::string title) {
    HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(result));
    HMMJIT_ASSIGN(std::vector<Page> pages, read_results(std::move(source)));
    if (pages.empty()) return fail(ErrorCode::kInternal, "no result for a page");
    pages.front().title = std::move(title);
    HMMJIT_ASSIGN(OutputFile file, OutputFile::create(path));
    write_html_page(pages.front(), [&file](std::string_view piece) { file.write(piece); });
    return file.commit();
  }

  void count(const Query& query) {
    if (query.command().empty()) return;  // no such command
    const std::lock_guard lock(mutex_);
    auto& [number, seconds] = counts_[{query.command(), query.exit_status()}];
    ++number;
    seconds += query.seconds();
  }

  std::string health() {
    nlohmann::json all = {{"version", HMMJIT_VERSION}, {"device", device_state()}};
    for (const auto& [name, database] : databases())
      all["databases"][name] = {{"file", database->path},
                                {"holds", database->targets ? "sequences" : "profiles"}};
    const std::lock_guard lock(mutex_);
    all["status"] = ending_ ? "ending" : "ready";
    return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  std::string metrics() {
    const auto [running, waiting] = queue_.running_and_waiting();
    std::string text = "# TYPE hmmjit_queries_total counter\n";
    std::string seconds = "# TYPE hmmjit_query_seconds_total counter\n";
    const std::lock_guard lock(mutex_);
    for (const auto& [key, value] : counts_) {
      const std::string labels =
          fmt::format("{{command=\"{}\",exit=\"{}\"}}", key.first, key.second);
      text += fmt::format("hmmjit_queries_total{} {}\n", labels, value.first);
      seconds += fmt::format("hmmjit_query_seconds_total{} {}\n", labels, value.second);
    }
    return text + seconds +
           fmt::format(
               "# TYPE hmmjit_refused_total counter\nhmmjit_refused_total {}\n"
               "# TYPE hmmjit_running gauge\nhmmjit_running {}\n"
               "# TYPE hmmjit_queued gauge\nhmmjit_queued {}\n"
               "# TYPE hmmjit_device gauge\nhmmjit_device{{state=\"{}\"}} 1\n",
               refused_.load(), running, waiting, device_state());
  }

  const Settings settings_;
  std::mutex mutex_;
  Databases databases_;
  std::size_t connections_ = 0;
  bool ending_ = false;
  int idle_ = -1;
  std::unique_ptr<ServerFolder> folder_;
  std::atomic<std::uint64_t> refused_ = 0;
  std::map<std::pair<std::string, int>, std::pair<std::uint64_t, double>> counts_;
  JobQueue queue_;  // destroyed first: its jobs use the other members
};

struct Listener {
  int descriptor;
  bool needs_token;
};

Result<std::vector<Listener>> listeners(const ParsedOptions& options) {
  std::vector<Listener> all;
  // LISTEN_FDS: number of sockets that systemd opened, from descriptor 3 on.
  const char* const process = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  if (process != nullptr && count != nullptr && std::to_string(::getpid()) == process) {
    for (int i = 3; i < 3 + std::atoi(count); ++i) {
      sockaddr address{};
      socklen_t size = sizeof address;
      ::getsockname(i, &address, &size);
      if (address.sa_family != AF_UNIX && !options.is_set("--token-file"))
        return fail(ErrorCode::kUsage, "a socket that is not of Unix needs a token", {},
                    "add --token-file");
      all.push_back({i, address.sa_family != AF_UNIX});
    }
  }
  if (options.is_set("--socket")) {
    HMMJIT_ASSIGN(const int one, listen_at(options.path("--socket")));
    all.push_back({one, false});
  }
  if (options.is_set("--listen")) {
    HMMJIT_ASSIGN(const int one, listen_at_port(std::string(options.text("--listen"))));
    all.push_back({one, true});
  }
  if (all.empty()) return fail(ErrorCode::kUsage, "no socket to listen on", {}, "add --socket");
  return all;
}

Result<Server::Settings> make_settings(const ParsedOptions& options) {
  Server::Settings settings{};
  const char* const given = std::getenv("TMPDIR");
  settings.parent = given != nullptr && *given != '\0' ? given : "/tmp";
  for (const std::string& one : options.list("--db")) {
    const std::size_t equals = one.find('=');
    if (equals == one.npos || equals == 0)
      return fail(ErrorCode::kUsage, "no name for a database", one, "write --db NAME=FILE");
    if (!settings.files.emplace(one.substr(0, equals), one.substr(equals + 1)).second)
      return fail(ErrorCode::kUsage, "another database has this name", one,
                  "give each --db a name of its own");
  }
  if (settings.files.empty())
    return fail(ErrorCode::kUsage, "no database", {}, "add --db NAME=FILE");
  if (options.is_set("--token-file")) {
    const std::string path(options.text("--token-file"));
    HMMJIT_ASSIGN(const std::string text, read_whole_file(path));
    settings.token = text.substr(0, text.find_first_of("\r\n"));
    if (settings.token.empty())
      return fail(ErrorCode::kInput, "no token in the file", path, "write a long random word");
  }
  settings.running = static_cast<std::size_t>(options.integer("--running"));
  settings.queued = static_cast<std::size_t>(options.integer("--queued"));
  HMMJIT_ASSIGN(settings.bounds.input, options.bytes("--max-request"));
  settings.bounds.longest_query = static_cast<std::size_t>(options.integer("--longest-query"));
  HMMJIT_ASSIGN(settings.memory, options.bytes("--mem"));
  // Databases may take half of it.
  settings.bounds.memory = settings.memory / 2 / settings.running;
  settings.bounds.threads = options.threads();
  settings.bounds.time = std::chrono::seconds(options.integer("--time-limit"));
  return settings;
}

Result<int> serve(const ParsedOptions& options) {
  if (!http_is_built_in())
    return fail(ErrorCode::kUsage, "this program was built without a server", {},
                "build it where Boost's headers are (Debian: libboost-dev)");
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const int signal_events = ::signalfd(-1, &signals, SFD_CLOEXEC);

  rlimit files{};  // a connection takes several
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }

  HMMJIT_ASSIGN(Server::Settings settings, make_settings(options));
  HMMJIT_ASSIGN(const DeviceChoice choice, make_device_choice(options));
  const auto session = settings.bounds.session = std::make_shared<Session>();
  HMMJIT_TRY(session->start(choice, {}, {}, {}, [](const DeviceChoice& started) {
    return gpu_settings(started, std::nullopt, nullptr);
  }));
  const std::size_t names = settings.files.size();
  ServerFolder::remove_abandoned(settings.parent);
  Server server(std::move(settings));
  // Until the server is ready, SIGTERM and SIGINT end the process at once: nothing needs to finish.
  ::sigdelset(&signals, SIGHUP);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  if (choice.use == DeviceChoice::Use::kGpu) {
    gpu::Statistics devices;
    while ((devices = *session->device_statistics()).state == "starting")
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (devices.state == "failed") return fail(ErrorCode::kNoDevice, devices.reason);
  }
  const Status loaded = server.load();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  HMMJIT_TRY(loaded);
  if (const auto folder = server.make_folder(); !folder) return std::unexpected(folder.error());
  HMMJIT_ASSIGN(const std::vector<Listener> sockets, listeners(options));
  const std::string socket_path = options.path("--socket");
  struct stat bound {};
  ::lstat(socket_path.c_str(), &bound);
  const int idle = ::eventfd(0, EFD_CLOEXEC);
  diagnose("hmmjit serve: ready with {}\n", counted(names, "database"));

  std::vector<pollfd> events = {{signal_events, POLLIN, 0}, {idle, POLLIN, 0}};
  for (const Listener& one : sockets) events.push_back({one.descriptor, POLLIN, 0});
  bool ending = false;
  std::atomic<int> reloads = 0;  // requested and not yet covered by a reload
  std::jthread reloading;
  const auto reload = [&] {
    int begun = 0;
    do {
      begun = reloads;
      (void)server.load();
    } while (!reloads.compare_exchange_strong(begun, 0));
  };
  while (true) {
    if (::poll(events.data(), events.size(), -1) < 0) continue;
    if (events[1].revents != 0) break;
    if (events[0].revents != 0) {
      signalfd_siginfo signal{};
      if (::read(signal_events, &signal, sizeof signal) != sizeof signal) continue;
      if (signal.ssi_signo == SIGHUP) {
        if (reloads++ > 0) continue;
        try {
          reloading = std::jthread(reload);
        } catch (const std::system_error&) {  // no thread
          reload();
        }
      } else if (std::exchange(ending, true)) {
        break;  // second signal: end now
      } else {
        diagnose("hmmjit serve: ending; running queries finish\n");
        server.end(idle);
      }
    }
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      if (events[i + 2].revents == 0) continue;
      const int socket = ::accept4(sockets[i].descriptor, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0)
        server.accept(socket, sockets[i].needs_token);
      else  // without a free descriptor the connection waits until another one ends
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  // Another server may already listen there.
  struct stat there {};
  if (::lstat(socket_path.c_str(), &there) == 0 && there.st_dev == bound.st_dev &&
      there.st_ino == bound.st_ino)
    ::unlink(socket_path.c_str());
  pollfd answered{idle, POLLIN, 0};
  const bool complete = ::poll(&answered, 1, 0) > 0;
  if (complete && reloads == 0) return 0;
  server.remove_folder();
  std::_Exit(complete ? 0 : static_cast<int>(ErrorCode::kInterrupted));
}

}  // namespace

CommandSpec serve_command() {
  CommandSpec command{"serve", "keep databases and devices ready for searches with --server"};
  command.options.assign(std::begin(kServeOptions), std::end(kServeOptions));
  for (const char* name : {"--cpu", "--mem", "--device", "--vram"}) {
    OptionSpec option = *std::ranges::find(search_option_table(), name, &OptionSpec::name);
    option.group = kBounds;
    option.environment = {};
    command.options.push_back(option);
  }
  std::ranges::find(command.options, std::string_view("--cpu"), &OptionSpec::name)->help =
      "busy threads of a query at most; default: all available cores";
  std::ranges::find(command.options, std::string_view("--mem"), &OptionSpec::name)->help =
      "bound on memory: half for databases that are not mapped, half for queries";
  command.run = serve;
  return command;
}

}  // namespace hmmjit::tools
