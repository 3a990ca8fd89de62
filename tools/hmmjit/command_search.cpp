// hmmjit search: hmmsearch with the same options, files and bytes.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

#include "command_line.hpp"
#include "core/diagnostics.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "io/hmm_file.hpp"
#include "option_table.hpp"
#include "progress.hpp"
#include "report/report_writer.hpp"
#include "report/run_statistics.hpp"
#include "search/device_choice.hpp"
#include "search/reader_source.hpp"
#include "search/search.hpp"
#include "search_options.hpp"

namespace hmmjit::tools {
namespace {

constexpr const char* kUsage = "Usage: hmmjit search [options] <hmmfile> <seqdb>\n";
constexpr int kDeviceThreads = 36;
constexpr const char* kProgram = "hmmjit search";

// Model bytes read so far, for the progress display.
class CountedModels final : public ByteSource {
 public:
  CountedModels(std::unique_ptr<ByteSource> source, std::atomic<std::uint64_t>& bytes)
      : source_(std::move(source)), bytes_(bytes) {
    name_ = source_->name();
    compression_ = source_->compression();
  }
  Result<std::span<const char>> next() override {
    auto chunk = source_->next();
    if (chunk) bytes_ += chunk->size();
    return chunk;
  }
  Status rewind() override { return source_->rewind(); }
  bool rewindable() const override { return source_->rewindable(); }

 private:
  std::unique_ptr<ByteSource> source_;
  std::atomic<std::uint64_t>& bytes_;
};

Result<HmmReader> open_models(const std::string& path, std::atomic<std::uint64_t>& bytes_read,
                              std::atomic<std::uint64_t>& bytes_total) {
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  if (path == "-") return reader;
  // The name is now resolved (a pressed database may stand in for the file). What is no regular
  // file, such as a shell's <(...), has been read from already and is not opened again.
  struct stat info {};
  if (::stat(reader.name().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return reader;
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(reader.name()));
  if (source->compression() != Compression::kNone) return reader;
  bytes_total = static_cast<std::uint64_t>(info.st_size);
  return HmmReader::open(std::make_unique<CountedModels>(std::move(source), bytes_read));
}

// Data that come when they come, and once only.
bool is_pipe(const std::string& path) {
  struct stat info {};
  if (path == "-" ? ::fstat(STDIN_FILENO, &info) != 0 : ::stat(path.c_str(), &info) != 0)
    return false;
  return !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

// hmmscan's Z. The models are read once more for it.
Result<double> count_models(const std::string& path) {
  struct stat info {};
  if (path == "-" || (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)))
    return fail(ErrorCode::kUsage, "the number of models in a pipe is not known before",
                "--as hmmscan", "add -Z with that number");
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  for (double count = 0;; ++count) {
    HMMJIT_ASSIGN(const std::optional<Hmm> hmm, reader.next());
    if (!hmm) return count;
  }
}

std::string date_text() {
  // The form of ctime, spelled out here because strftime's names depend on the locale.
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  struct tm time {};
  ::localtime_r(&now, &time);
  return fmt::format("{} {} {:2} {:02}:{:02}:{:02} {}", kDays[time.tm_wday], kMonths[time.tm_mon],
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec, time.tm_year + 1900);
}

std::string current_folder() {
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  return error ? std::string("?") : folder.string();
}

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds / 1e9 : 0.0; }

void describe_run(const SearchStatistics& s, const gpu::GpuFilters* gpu, const std::string& note) {
  if (gpu == nullptr) {
    diagnose("hmmjit: GPU not used: {}\n", note);
  } else {
    const gpu::Statistics g = gpu->statistics();
    diagnose(
        "hmmjit: GPU {}{}{}; ready after {:.2f} s, {} launches, {} kernels ({} compiled), "
        "busy {:.2f} s of {:.2f} s, {:.0f} GCUPS\n",
        g.state, g.reason.empty() ? "" : ": ", g.reason, g.ready_seconds, g.launches,
        g.distinct_kernels, g.kernels.compiled, g.busy_seconds, g.active_seconds,
        rate(static_cast<double>(g.cells), g.busy_seconds));
  }
  diagnose("hmmjit: {} models x {} targets ({} residues) in {:.2f} s; {} thread(s), {}; {}\n",
           s.models, s.targets, s.residues, s.wall_seconds, s.threads, s.backend,
           s.streamed ? fmt::format("targets streamed in {} pass(es){}", s.passes,
                                    s.spooled ? ", spooled to a temporary file" : "")
                      : std::string("targets kept in memory"));
  diagnose(
      "hmmjit: core-seconds: read {:.2f}, set-up {:.2f}, SSV {:.2f}, MSV {:.2f}, bias {:.2f}, "
      "Viterbi {:.2f}, Forward and domains {:.2f}, report {:.2f}; peak {} MB\n",
      s.read_seconds, s.setup_seconds, s.filters.ssv, s.filters.msv, s.filters.bias,
      s.filters.viterbi, s.scoring_seconds, s.report_seconds, peak_resident_memory() >> 20);
}

void warn(const std::string& text) { diagnose("hmmjit search: warning: {}\n", text); }

std::unique_ptr<gpu::GpuFilters> start_gpu(const DeviceChoice& choice, Trace* trace) {
  gpu::Settings settings;
  settings.devices = choice.ordinals;
  settings.demanded = choice.use == DeviceChoice::Use::kGpu;
  settings.vram = choice.vram;
  settings.trace = trace;
  settings.on_warning = warn;
  constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
  if (const auto visible =
          visible_devices_up_to(*std::ranges::max_element(choice.ordinals), std::getenv(kVisible)))
    ::setenv(kVisible, visible->c_str(), 1);
  return std::make_unique<gpu::GpuFilters>(std::move(settings));
}

// From some size on a block is a mapping of its own, which leaves the process when it is freed;
// what is smaller stays with the arena of a thread. The C library raises that size up to 32 MiB as
// it sees larger blocks freed. An arena gives back its free end when that exceeds `kept` bytes.
void return_memory_early(int kept) {
#ifdef M_MMAP_THRESHOLD
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
  ::mallopt(M_TRIM_THRESHOLD, kept);
#else
  (void)kept;
#endif
}
// Under a memory bound, blocks of targets that are through must leave the process.
constexpr int kKeptUnderBound = 128 << 10;
// With a device such a larger block is freed early: the copy of the targets that went up. From then
// on all scratch memory that threads outgrow would stay with them, a third of what a search
// takes on the CPU alone. A compile frees some megabytes again and again, which are worth keeping.
constexpr int kKeptBesideDevice = 8 << 20;

// A core goes to a thread of the device three times as readily as to one that works.
constexpr int kLowerPriority = 5;

std::vector<NamedFile> outputs_of(const ParsedOptions& options) {
  std::vector<NamedFile> files;
  for (const OptionSpec& option : search_option_table()) {
    if (option.type == ValueType::kFile && options.is_set(option.name))
      files.push_back({std::string(option.name), std::string(options.text(option.name))});
  }
  return files;
}

std::vector<NamedFile> inputs_of(const std::string& models, const std::string& targets) {
  std::vector<NamedFile> files = {{"profile file", models},
                                  {"sequence file", find_sequence_file(targets)}};
  if (models == "-") return files;
  for (const char* suffix : {".h3m", ".h3i", ".h3f", ".h3p"})
    files.push_back({"pressed profile file", models + suffix});
  return files;
}

// What outlives the search: threads of the GPU may still be at work when all results are written.
struct Session {
  std::optional<Trace> trace;
  std::unique_ptr<gpu::GpuFilters> gpu;
};

Status run_search(const ParsedOptions& options, Session& session) {
  if (options.arguments().size() != 2)
    return fail(ErrorCode::kUsage, "incorrect number of command line arguments", {},
                "give a profile file and a sequence file, options before them");
  const std::string& model_path = options.arguments()[0];
  const std::string& target_path = options.arguments()[1];
  if (model_path == "-" && target_path == "-")
    return fail(ErrorCode::kUsage, "either <hmmfile> or <seqdb> may be '-', but not both");

  HMMJIT_TRY(check_outputs(outputs_of(options), inputs_of(model_path, target_path)));
  HMMJIT_ASSIGN(SearchOptions search_options, make_search_options(options));
  search_options.on_warning = warn;
  if (search_options.memory > 0) return_memory_early(kKeptUnderBound);
  ReportOptions report_options = make_report_options(options);
  HMMJIT_ASSIGN(const DeviceChoice device, make_device_choice(options));
  std::optional<Trace>& trace = session.trace;
  if (options.is_set("--trace")) search_options.trace = &trace.emplace();
  // The driver takes a third of a second to start: it does so while files are opened and read.
  std::string device_note;
  std::unique_ptr<gpu::GpuFilters>& gpu = session.gpu;
  if (device.use == DeviceChoice::Use::kCpu) {
    device_note = "demanded";
  } else if (device.use == DeviceChoice::Use::kGpu ||
             device_pays(search_options, positions_of_file(model_path),
                         residues_of_file(target_path), device_note)) {
    // A device takes threads of its own, which mostly wait: for its driver, for each stream of
    // work, for compiling. Where they are not to be had, the CPU's are needed more.
    const int wanted = kDeviceThreads + search_options.threads;
    if (startable_threads(wanted) == wanted) {
      if (search_options.memory == 0) return_memory_early(kKeptBesideDevice);
      gpu = start_gpu(device, search_options.trace);
      search_options.lower_priority = kLowerPriority;
    } else if (device.use == DeviceChoice::Use::kGpu) {
      return fail(ErrorCode::kResources, "the threads a GPU needs cannot be started", {},
                  "raise the limit on processes (ulimit -u), or use --device cpu");
    } else {
      device_note = "the threads it needs cannot be started";
    }
  }
  std::optional<SequenceFormat> format;
  if (options.is_set("--tformat")) {
    HMMJIT_ASSIGN(format, parse_sequence_format(options.text("--tformat")));
  }

  if (options.is_set("--as")) {
    if (!search_options.thresholds.Z) {
      HMMJIT_ASSIGN(search_options.thresholds.Z, count_models(model_path));
    }
    report_options.scan = search_options.thresholds;
  }
  std::atomic<std::uint64_t> model_bytes{0};
  std::atomic<std::uint64_t> model_bytes_total{0};
  std::optional<HmmReader> reader;
  std::optional<Hmm> first;
  std::unique_ptr<TargetSource> targets;
  const auto open_model_file = [&]() -> Status {
    HMMJIT_ASSIGN(reader, open_models(model_path, model_bytes, model_bytes_total));
    HMMJIT_ASSIGN(first, reader->next());
    if (!first)
      return fail(ErrorCode::kInput, "no model in the file", model_path, "give a profile HMM file");
    return {};
  };
  const auto open_targets = [&]() -> Status {
    const SequenceFormatOptions sequence_options{.alphabet = *first->alphabet, .format = format};
    HMMJIT_ASSIGN(targets, open_target_file(target_path, sequence_options));
    if (options.is_set("--restrictdb_stkey") || options.is_set("--restrictdb_n")) {
      std::optional<std::uint64_t> count;
      if (options.is_set("--restrictdb_n"))
        count = static_cast<std::uint64_t>(options.integer("--restrictdb_n"));
      targets = restrict_targets(std::move(targets),
                                 std::string(options.text("--restrictdb_stkey")), count);
    }
    return {};
  };
  // A pipe may be long in coming: outputs are begun and progress is shown meanwhile, and what is
  // wrong with a name or a place is said at once. Files are looked at first, so that one that
  // cannot be read leaves no header.
  const bool models_later = is_pipe(model_path);
  const bool targets_later = models_later || is_pipe(target_path);
  if (!models_later) HMMJIT_TRY(open_model_file());
  if (!targets_later) HMMJIT_TRY(open_targets());

  const ReportPaths paths{
      std::string(options.text("-o")),           std::string(options.text("-A")),
      std::string(options.text("--tblout")),     std::string(options.text("--domtblout")),
      std::string(options.text("--pfamtblout")), std::string(options.text("--tsv")),
      std::string(options.text("--json")),       std::string(options.text("--a3m"))};
  SearchHeader header(kProgram, HMMJIT_VERSION);
  header.set(HeaderLine::kQueryFile, model_path);
  header.set(HeaderLine::kTargetFile, target_path);
  describe_options(options, header);
  std::optional<OutputFile> statistics_file, trace_file;
  if (trace) {
    HMMJIT_ASSIGN(trace_file, OutputFile::create(std::string(options.text("--trace"))));
  }
  if (options.is_set("--stats")) {
    HMMJIT_ASSIGN(statistics_file, OutputFile::create(std::string(options.text("--stats"))));
  }
  HMMJIT_ASSIGN(const std::unique_ptr<ReportWriter> writer,
                ReportWriter::create(paths, report_options, search_options.filters,
                                     fmt::format("hmmjit search (hmmjit {})", HMMJIT_VERSION),
                                     header.text()));

  SearchProgress progress;
  std::optional<ProgressDisplay> display;
  if (!options.is_set("--quiet")) display.emplace(progress, model_bytes, model_bytes_total);
  if (models_later) HMMJIT_TRY(open_model_file());
  if (targets_later) HMMJIT_TRY(open_targets());
  const ModelSource models = [&]() -> Result<std::optional<Hmm>> {
    if (first) return std::exchange(first, std::nullopt);
    return reader->next();
  };
  const std::unique_ptr<FilterBackend> backend =
      gpu != nullptr ? make_device_backend(*gpu) : make_cpu_backend();
  auto statistics = search(search_options, models, *targets, *backend, *writer, &progress);
  display.reset();
  if (!statistics) return std::unexpected(statistics.error());

  RunDescription run;
  run.program = "hmmjit search";
  run.version = HMMJIT_VERSION;
  run.query_file = model_path;
  run.target_file = target_path;
  run.option_settings =
      "hmmjit search " + options.settings() + model_path + " " + target_path + " ";
  run.folder = current_folder();
  run.date = date_text();
  run.scan = report_options.scan.has_value();
  HMMJIT_TRY(writer->complete(run));
  if (statistics_file) {
    std::optional<gpu::Statistics> gpu_statistics;
    if (gpu != nullptr) gpu_statistics = gpu->statistics();
    statistics_file->write(run_statistics_json(
        {"hmmjit search", HMMJIT_VERSION, *statistics, gpu_statistics, device_note}));
    HMMJIT_TRY(statistics_file->commit());
  }
  if (trace_file) {
    trace_file->write(trace->json());
    HMMJIT_TRY(trace_file->commit());
  }
  if (options.is_set("--verbose")) describe_run(*statistics, gpu.get(), device_note);
  return {};
}

}  // namespace

int command_search(const std::vector<std::string>& arguments) {
  const auto report = [](const Error& error) {
    diagnose("hmmjit search: {}\n", error.to_string());
    if (error.code == ErrorCode::kUsage) print_diagnostic(kUsage);
    return static_cast<int>(error.code);
  };
  std::vector<OptionText> files(2);
  files[0].names = {"hmmfile"};
  files[0].help = "profile HMMs; - for standard input";
  files[1].names = {"seqdb"};
  files[1].help = "sequences, or a database of them; - for standard input";
  for (OptionText& file : files) file.takes_file = file.required = true;
  if (describes(search_option_table(), files)) return 0;
  const auto options = parse_options(search_option_table(), arguments);
  if (!options) return report(options.error());
  if (options->is_set("-h") || options->is_set("--help")) {
    fmt::print("{}{}\n{}", search_banner(kProgram, HMMJIT_VERSION), kUsage,
               option_help(search_option_table()));
    return 0;
  }
  Session session;
  const Status status = run_search(*options, session);
  const int code = status ? 0 : report(status.error());
  if (session.gpu != nullptr) {
    // Everything is written. Waiting for a driver that is still starting, and freeing what the
    // system frees anyway, would take longer than many a search.
    std::fflush(nullptr);
    std::_Exit(code);
  }
  return code;
}

}  // namespace hmmjit::tools
