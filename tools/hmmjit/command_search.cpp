// hmmjit search: hmmsearch with the same options, files and bytes.
#include <fmt/format.h>
#include <fmt/ranges.h>
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
#include "compile_afterwards.hpp"
#include "core/diagnostics.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "io/blast_database.hpp"
#include "io/hmm_file.hpp"
#include "option_table.hpp"
#include "part_search.hpp"
#include "progress.hpp"
#include "query_options.hpp"
#include "report/features.hpp"
#include "report/report_header.hpp"
#include "report/report_writer.hpp"
#include "report/run_statistics.hpp"
#include "run_text.hpp"
#include "search/device_choice.hpp"
#include "search/hits.hpp"
#include "search/memory_shares.hpp"
#include "search/model_cutoffs.hpp"
#include "search/reader_source.hpp"
#include "search/search.hpp"
#include "search_options.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

void warn(const std::string& text) { diagnose("hmmjit: warning: {}\n", text); }

std::string usage(const SearchProgram& program) {
  return fmt::format("Usage: hmmjit {} [options] <{}> <{}>\n", program.name,
                     program.queries.names.front(), program.targets.names.front());
}

std::string banner(const SearchProgram& program) {
  return ReportHeader::banner(fmt::format("hmmjit {}", program.name), program.title, HMMJIT_VERSION,
                              program.reference);
}

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

bool is_regular_file(const std::string& path) {
  struct stat info {};
  return path != "-" && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// Data that come when they come, and once only.
bool is_pipe(const std::string& path) {
  struct stat info {};
  if (path == "-" ? ::fstat(STDIN_FILENO, &info) != 0 : ::stat(path.c_str(), &info) != 0)
    return false;
  return !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

// Models as they are read, without those that lack the cutoffs asked for where these are skipped.
// One thread at a time.
class ModelsToSearch {
 public:
  ModelsToSearch(HmmReader reader, const Thresholds& thresholds, bool skip)
      : reader_(std::move(reader)), thresholds_(thresholds), skip_(skip) {}

  Result<std::optional<Hmm>> next() {
    for (;;) {
      HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader_.next());
      if (!hmm) {
        if (without_ > kNamed)
          warn(fmt::format("{} more models without {} cutoffs", without_ - kNamed, tag()));
        without_ = 0;
        return hmm;
      }
      const bool asked = thresholds_.cutoffs != ModelCutoffs::kNone &&
                         (skip_ || thresholds_.missing == MissingCutoffs::kDefault);
      if (!asked || cutoff_of(*hmm, thresholds_)) return hmm;
      if (++without_ <= kNamed)
        warn(fmt::format("model {} has no {} cutoffs: {}", hmm->name, tag(),
                         skip_ ? "not searched" : "searched with the default thresholds"));
      if (!skip_) return hmm;
    }
  }

 private:
  std::string_view tag() const { return cutoff_name(thresholds_.cutoffs); }

  static constexpr std::uint64_t kNamed = 10;
  HmmReader reader_;
  Thresholds thresholds_;
  bool skip_;
  std::uint64_t without_ = 0;
};

// A model without cutoffs is found before hours of work, not after them.
Status check_cutoffs(const std::string& path, const Thresholds& rules) {
  HMMJIT_ASSIGN(const MissingCutoffModels missing, models_without_cutoffs(path, rules));
  if (missing.without == 0) return {};
  const std::string others =
      missing.without > missing.names.size()
          ? fmt::format(" and {} more", missing.without - missing.names.size())
          : std::string();
  return fail(
      ErrorCode::kInput,
      fmt::format("{} bit thresholds unavailable on {} of {} models: {}{}", cutoff_name(rules.cutoffs),
                  missing.without, missing.models, fmt::join(missing.names, ", "), others),
      path, "add --cut-missing skip or --cut-missing default, or search without --cut_*");
}

// hmmscan's Z. The models are read once more for it.
Result<double> count_models(const std::string& path, const Thresholds& rules, bool skip) {
  if (path == "-" || is_pipe(path))
    return fail(ErrorCode::kUsage, "the number of models in a pipe is not known before",
                "--as hmmscan", "add -Z with that number");
  if (skip) {
    HMMJIT_ASSIGN(const MissingCutoffModels found, models_without_cutoffs(path, rules));
    return static_cast<double>(found.models - found.without);
  }
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  for (double count = 0;; ++count) {
    HMMJIT_ASSIGN(const std::optional<Hmm> hmm, reader.next());
    if (!hmm) return count;
  }
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
  diagnose("hmmjit: {} x {} ({}) in {:.2f} s; {}, {}; {}\n", counted(s.models, "model"),
           counted(s.targets, "target"), counted(s.residues, "residue"), s.wall_seconds,
           counted(static_cast<std::uint64_t>(s.threads), "thread"), s.backend,
           s.streamed ? fmt::format("targets streamed in {}{}",
                                    counted(static_cast<std::uint64_t>(s.passes), "pass", "passes"),
                                    s.spooled ? ", spooled to a temporary file" : "")
                      : std::string("targets kept in memory"));
  diagnose(
      "hmmjit: core-seconds: read {:.2f}, set-up {:.2f}, SSV {:.2f}, MSV {:.2f}, bias {:.2f}, "
      "Viterbi {:.2f}, Forward and domains {:.2f}, report {:.2f}; peak {} MB\n",
      s.read_seconds, s.setup_seconds, s.filters.ssv, s.filters.msv, s.filters.bias,
      s.filters.viterbi, s.scoring_seconds, s.report_seconds, peak_resident_memory() >> 20);
}

std::unique_ptr<gpu::GpuFilters> start_gpu(const DeviceChoice& choice,
                                           std::optional<double> positions, Trace* trace) {
  gpu::Settings settings = device_settings(choice);
  settings.trace = trace;
  settings.on_warning = warn;
  constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
  if (const auto visible =
          visible_devices_up_to(*std::ranges::max_element(choice.ordinals), std::getenv(kVisible)))
    ::setenv(kVisible, visible->c_str(), 1);
  if (const auto queues = driver_queues(positions))
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(*queues).c_str(), 0);
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

std::vector<NamedFile> outputs_of(const SearchProgram& program, const ParsedOptions& options,
                                  const std::optional<PartRequest>& part) {
  std::vector<NamedFile> files;
  if (part && part->part.first == part->part.last)
    files.push_back({"--part-file", part->path(part->part.first)});
  for (const OptionSpec& option : program.options()) {
    if (option.type == ValueType::kFile && options.is_set(option.name))
      files.push_back({std::string(option.name), std::string(options.text(option.name))});
  }
  return files;
}

std::vector<NamedFile> inputs_of(const SearchProgram& program, const std::string& models,
                                 const std::string& targets) {
  const bool sequences = program.open_queries != nullptr;
  std::vector<NamedFile> files = {{sequences ? "query file" : "profile file", models},
                                  {"sequence file", find_sequence_file(targets)}};
  if (const std::string path = find_sequence_file(targets); is_blast_database(path)) {
    for (const char* suffix : {".pin", ".phr", ".psq"})
      files.push_back({"file of the BLAST database", path + suffix});
  }
  if (models == "-" || sequences) return files;
  for (const char* suffix : {".h3m", ".h3i", ".h3f", ".h3p"})
    files.push_back({"pressed profile file", models + suffix});
  return files;
}

// Hands results to the report, and to what is written of features at the end.
class ReportAndFeatures final : public ResultSink {
 public:
  ReportAndFeatures(ReportWriter& report, FeatureWriter* features)
      : report_(report), features_(features) {}
  std::shared_ptr<PreparedResult> prepare(const ModelResult& result) const override {
    return report_.prepare(result);
  }
  Status receive(const ModelResult& result) override {
    if (features_ != nullptr) HMMJIT_TRY(features_->add(result));
    return report_.receive(result);
  }
  bool takes_stored_hits() const override { return true; }

 private:
  ReportWriter& report_;
  FeatureWriter* features_;
};

// Null where nothing of the kind is asked for.
Result<std::unique_ptr<FeatureWriter>> start_features(const ParsedOptions& options,
                                                      const std::string& target_path,
                                                      const SearchOptions& search) {
  const FeaturePaths paths{std::string(options.text("--gff")), std::string(options.text("--bed")),
                           std::string(options.text("--fasta")),
                           std::string(options.text("--domfasta"))};
  OverlapRule rule;
  rule.resolve = options.is_set("--resolve-overlaps") || options.is_set("--clans");
  if (!paths.any()) {
    if (rule.resolve)
      return fail(ErrorCode::kUsage,
                  "overlaps are resolved in --gff, --bed, --fasta and --domfasta", {},
                  "add one of them");
    return nullptr;
  }
  if (paths.sequences_needed() && (target_path == "-" || is_pipe(target_path)))
    return fail(ErrorCode::kUsage, "--fasta and --domfasta read the sequences a second time",
                target_path, "give a file instead of a pipe");
  if (options.is_set("--clans")) {
    HMMJIT_ASSIGN(rule.clans, read_clans(std::string(options.text("--clans"))));
  }
  HMMJIT_ASSIGN(const std::uint64_t memory, memory_by_target(search));
  return FeatureWriter::create(paths, std::move(rule), memory);
}

// What outlives the search: threads of the GPU may still be at work when all results are written.
struct Session {
  std::optional<Trace> trace;
  std::unique_ptr<gpu::GpuFilters> gpu;
};

std::optional<double> residues_of_part(const std::string& path, const PartRequest& part) {
  std::optional<double> residues = residues_of_file(path);
  if (residues) *residues *= part.fraction();
  return residues;
}

// `afterwards`: of the process, when all outputs have their names.
Status run_search(const SearchProgram& program, const ParsedOptions& options, Session& session,
                  OutputFile::Afterwards afterwards = OutputFile::Afterwards::kProcessEnds) {
  const bool sequences = program.open_queries != nullptr;
  const std::string program_name = fmt::format("hmmjit {}", program.name);
  if (options.is_set("--verbose")) {
    std::string command = options.settings();
    for (const std::string& argument : options.arguments()) command += argument + " ";
    diagnose("hmmjit: version {}; {} {}\n", HMMJIT_VERSION, program_name, command);
  }
  if (options.arguments().size() != 2)
    return fail(ErrorCode::kUsage, "incorrect number of command line arguments", {},
                sequences ? "give a file of queries and one of targets, options before them"
                          : "give a profile file and a sequence file, options before them");
  const std::string& model_path = options.arguments()[0];
  const std::string& target_path = options.arguments()[1];
  if (model_path == "-" && target_path == "-")
    return fail(ErrorCode::kUsage,
                fmt::format("either <{}> or <{}> may be '-', but not both",
                            program.queries.names.front(), program.targets.names.front()));
  if (program.by_sequence && (model_path == "-" || is_pipe(model_path)))
    return fail(ErrorCode::kUsage, "the profiles are read several times",
                fmt::format("<{}>", program.queries.names.front()),
                "give a file, not standard input or a pipe");

  HMMJIT_ASSIGN(const std::optional<PartRequest> part, make_part_request(options));
  std::vector<NamedFile> inputs = inputs_of(program, model_path, target_path);
  if (options.is_set("--clans")) inputs.push_back({"clans", std::string(options.text("--clans"))});
  if (options.is_set("--cut-file"))
    inputs.push_back({"cutoffs", std::string(options.text("--cut-file"))});
  HMMJIT_TRY(check_outputs(outputs_of(program, options, part), inputs));
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
  if (program.by_sequence) {
    device_note = "this report needs counts that devices do not give";
  } else {
    const auto positions = [&] {
      return sequences ? residues_of_file(model_path) : positions_of_file(model_path);
    };
    const auto residues = [&] {
      return part ? residues_of_part(target_path, *part) : residues_of_file(target_path);
    };
    HMMJIT_ASSIGN(const bool starts,
                  starts_devices(device, search_options, positions, residues, device_note));
    if (starts) {
      if (search_options.memory == 0) return_memory_early(kKeptBesideDevice);
      gpu = start_gpu(device, positions(), search_options.trace);
      search_options.lower_priority = kLowerPriority;
    }
  }
  std::optional<SequenceFormat> format;
  if (options.is_set("--tformat")) {
    HMMJIT_ASSIGN(format, parse_sequence_format(options.text("--tformat")));
  }
  if (program.by_sequence) {
    HMMJIT_ASSIGN(format, query_format(options));
  }

  const bool skip = options.text("--cut-missing") == "skip";
  if (options.text("--as") == "hmmscan") {
    if (!search_options.thresholds.Z) {
      HMMJIT_ASSIGN(search_options.thresholds.Z,
                    count_models(model_path, search_options.thresholds, skip));
    }
    report_options.scan = search_options.thresholds;
    HMMJIT_ASSIGN(report_options.scan_memory, memory_by_target(search_options));
  }
  std::atomic<std::uint64_t> model_bytes{0};
  std::atomic<std::uint64_t> model_bytes_total{0};
  const auto open_model_reader = [&] {
    return open_models(model_path, model_bytes, model_bytes_total);
  };
  std::optional<OutputFile> statistics_file, trace_file;
  const auto begin_run_files = [&]() -> Status {
    if (trace) {
      HMMJIT_ASSIGN(trace_file, OutputFile::create(std::string(options.text("--trace"))));
    }
    if (options.is_set("--stats")) {
      HMMJIT_ASSIGN(statistics_file, OutputFile::create(std::string(options.text("--stats"))));
    }
    return {};
  };
  // Writes them; what is returned is complete but for its name.
  const auto write_run_files = [&](const SearchStatistics& statistics) {
    std::vector<OutputFile*> files;
    if (statistics_file) {
      std::optional<gpu::Statistics> gpu_statistics;
      if (gpu != nullptr) gpu_statistics = gpu->statistics();
      statistics_file->write(run_statistics_json(
          {program_name, HMMJIT_VERSION, statistics, gpu_statistics, device_note}));
      files.push_back(&*statistics_file);
    }
    if (trace_file) {
      trace_file->write(trace->json());
      files.push_back(&*trace_file);
    }
    return files;
  };
  const auto finish_run_files = [&](const SearchStatistics& statistics) -> Status {
    for (OutputFile* file : write_run_files(statistics)) HMMJIT_TRY(file->commit());
    if (options.is_set("--verbose")) describe_run(statistics, gpu.get(), device_note);
    return {};
  };
  const std::unique_ptr<FilterBackend> backend =
      gpu != nullptr ? make_device_backend(*gpu) : make_cpu_backend();
  if (search_options.thresholds.cutoffs != ModelCutoffs::kNone && !sequences &&
      !program.by_sequence && options.text("--cut-missing") == "error" &&
      is_regular_file(model_path))
    HMMJIT_TRY(check_cutoffs(model_path, search_options.thresholds));
  if (part) {
    if (is_pipe(model_path))
      return fail(ErrorCode::kUsage, "models from a pipe do not go with --part", model_path,
                  "write them to a file");
    HMMJIT_TRY(begin_run_files());
    PartSearch work{
        *part,    options,     search_options,    model_path,      target_path, open_model_reader,
        *backend, model_bytes, model_bytes_total, finish_run_files};
    return search_parts(work);
  }
  std::optional<ModelsToSearch> reader;
  std::optional<Hmm> first;
  std::optional<SequenceQueries> queries;
  std::unique_ptr<TargetSource> targets;
  const Alphabet* alphabet = nullptr;
  const auto open_model_file = [&]() -> Status {
    if (sequences) {
      HMMJIT_ASSIGN(queries, program.open_queries(options, model_path));
      search_options.calibration = queries->calibration;
      return {};
    }
    HMMJIT_ASSIGN(HmmReader opened, open_model_reader());
    reader.emplace(std::move(opened), search_options.thresholds, skip);
    HMMJIT_ASSIGN(first, reader->next());
    if (!first && skip)
      return fail(ErrorCode::kInput, "no model of the file has the cutoffs asked for", model_path,
                  "search without --cut_*");
    if (!first)
      return fail(ErrorCode::kInput, "no model in the file", model_path, "give a profile HMM file");
    return {};
  };
  const auto opened_targets = [&]() -> Result<std::unique_ptr<TargetSource>> {
    const SequenceFormatOptions sequence_options{.alphabet = *alphabet, .format = format};
    HMMJIT_ASSIGN(std::unique_ptr<TargetSource> source,
                  open_target_file(target_path, sequence_options));
    if (options.is_set("--restrictdb_stkey") || options.is_set("--restrictdb_n")) {
      std::optional<std::uint64_t> count;
      if (options.is_set("--restrictdb_n"))
        count = static_cast<std::uint64_t>(options.integer("--restrictdb_n"));
      source = restrict_targets(std::move(source), *alphabet,
                                std::string(options.text("--restrictdb_stkey")), count);
    }
    return source;
  };
  const auto open_targets = [&]() -> Status {
    alphabet = sequences ? &amino_alphabet() : first->alphabet;
    HMMJIT_ASSIGN(targets, opened_targets());
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
  std::string header = banner(program) + ReportHeader::kRule;
  std::pair<std::string_view, std::string> labels[] = {{program.query_label, model_path},
                                                       {program.target_label, target_path}};
  if (program.by_sequence) std::swap(labels[0], labels[1]);
  for (const auto& [label, path] : labels) header += ReportHeader::line(label, path);
  header += describe_options(options);
  if (sequences) header += describe_query_options(options);
  if (program.describe != nullptr) header += program.describe(options);
  header += std::string(ReportHeader::kRule) + "\n";
  HMMJIT_TRY(begin_run_files());
  HMMJIT_ASSIGN(const std::unique_ptr<ReportWriter> writer,
                ReportWriter::create(paths, report_options, search_options.filters,
                                     author_of(program), header));

  HMMJIT_ASSIGN(const std::unique_ptr<FeatureWriter> features,
                start_features(options, target_path, search_options));

  SearchProgress progress;
  std::optional<ProgressDisplay> display;
  if (!options.is_set("--quiet") && progress_fits(!paths.main.empty()))
    display.emplace(progress, model_bytes, model_bytes_total);
  if (models_later) HMMJIT_TRY(open_model_file());
  if (targets_later) HMMJIT_TRY(open_targets());
  const ModelSource profiles = [&]() -> Result<std::optional<Query>> {
    if (first) return std::exchange(first, std::nullopt);
    return reader->next();
  };
  std::vector<OutputFile> further_files;
  ProgramRun own{
      options,      search_options, report_options, paths,   queries ? &*queries : nullptr,
      profiles,     targets,        *backend,       *writer, progress,
      further_files};
  ReportAndFeatures sink(*writer, features.get());
  auto statistics = program.search != nullptr
                        ? program.search(own)
                        : search(search_options, queries ? queries->models : profiles, *targets,
                                 *backend, sink, &progress);
  display.reset();
  if (!statistics) return std::unexpected(statistics.error());

  if (features != nullptr) {
    std::unique_ptr<TargetSource> again;
    if (options.is_set("--fasta") || options.is_set("--domfasta")) {
      HMMJIT_ASSIGN(again, opened_targets());
    }
    HMMJIT_TRY(features->write(again.get(), *alphabet));
  }

  RunDescription run;
  run.program = program_name;
  run.version = HMMJIT_VERSION;
  run.query_file = model_path;
  run.target_file = target_path;
  run.option_settings =
      program_name + " " + options.settings() + model_path + " " + target_path + " ";
  run.folder = current_folder();
  run.date = date_text();
  run.scan = report_options.scan.has_value() || program.by_sequence;
  std::vector<OutputFile*> others = write_run_files(*statistics);
  for (OutputFile& file : further_files) others.push_back(&file);
  if (features != nullptr) {
    for (OutputFile* file : features->files()) others.push_back(file);
  }
  HMMJIT_TRY(writer->complete(run, others, afterwards));
  if (options.is_set("--verbose")) describe_run(*statistics, gpu.get(), device_note);
  return {};
}

// Several target files: a search of each, one after the other, with outputs of its own.
Status run_searches(const SearchProgram& program, const ParsedOptions& options) {
  constexpr std::string_view kPlaceholder = "{target}";
  const std::string& models = options.arguments()[0];
  if (models == "-" || is_pipe(models))
    return fail(ErrorCode::kUsage,
                fmt::format("the {} of several target files are read several times",
                            program.open_queries != nullptr ? "queries" : "models"),
                models, "give a file instead of a pipe");
  for (const char* option : {"--chkhmm", "--chkali"}) {
    if (program.search != nullptr && options.is_set(option))
      return fail(ErrorCode::kUsage, fmt::format("several target files do not go with {}", option),
                  {}, "search one database at a time");
  }
  if (options.is_set("--part"))
    return fail(ErrorCode::kUsage, "several target files do not go with --part", {},
                "search the parts of one database at a time");
  for (const NamedFile& output : outputs_of(program, options, std::nullopt)) {
    if (output.path.find(kPlaceholder) == output.path.npos)
      return fail(ErrorCode::kUsage, "several target files, and one output: " + output.path,
                  output.option, "write {target} in its name, where that of the target file goes");
  }
  std::vector<ParsedOptions> searches;
  std::vector<NamedFile> outputs, inputs;
  for (std::size_t i = 1; i < options.arguments().size(); ++i) {
    const std::string& target = options.arguments()[i];
    // Without folder, what says that it is compressed, and the format's extension.
    std::string name = std::filesystem::path(target).filename().string();
    for (const std::string_view suffix : {".gz", ".zst"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    }
    if (const std::size_t dot = name.rfind('.'); dot != name.npos && dot > 0) name.resize(dot);
    searches.push_back(options.with({models, target}, kPlaceholder, name));
    for (const NamedFile& file : outputs_of(program, searches.back(), std::nullopt))
      outputs.push_back(file);
    for (const NamedFile& file : inputs_of(program, models, target)) inputs.push_back(file);
  }
  HMMJIT_TRY(check_outputs(outputs, inputs));
  for (const ParsedOptions& one : searches) {
    Session session;
    // Only the last may put signals off for good.
    HMMJIT_TRY(run_search(program, one, session,
                          &one == &searches.back() ? OutputFile::Afterwards::kProcessEnds
                                                   : OutputFile::Afterwards::kProcessGoesOn));
  }
  return {};
}

}  // namespace

std::string author_of(const SearchProgram& program) {
  return fmt::format("hmmjit {} (hmmjit {})", program.name, HMMJIT_VERSION);
}

void add(SearchStatistics& sum, const SearchStatistics& other) {
  if (sum.backend.empty()) {
    sum = other;
    return;
  }
  sum.models += other.models;
  sum.passes += other.passes;
  sum.streamed |= other.streamed;
  sum.spooled |= other.spooled;
  sum.scored_alone += other.scored_alone;
  sum.wall_seconds += other.wall_seconds;
  sum.read_seconds += other.read_seconds;
  sum.setup_seconds += other.setup_seconds;
  sum.report_seconds += other.report_seconds;
  sum.filters += other.filters;
  sum.scoring_seconds += other.scoring_seconds;
  sum.forward_cells += other.forward_cells;
  sum.domain += other.domain;
  sum.counters += other.counters;
  sum.hits_reported += other.hits_reported;
  sum.domains_reported += other.domains_reported;
  sum.verified += other.verified;
  sum.verified_chains += other.verified_chains;
  sum.verify_seconds += other.verify_seconds;
  sum.differences += other.differences;
  sum.searched_again += other.searched_again;
}

int run_search_program(const SearchProgram& program, const std::vector<std::string>& arguments) {
  const std::span<const OptionSpec> table = program.options();
  const auto report = [&](const Error& error) {
    // The program ends as others do whose output nobody reads (main.cpp).
    if (error.code == ErrorCode::kOutput && error.where == kStandardOutput &&
        standard_output_unread())
      return static_cast<int>(error.code);
    diagnose("hmmjit {}: {}\n", program.name, error.to_string());
    if (error.code == ErrorCode::kUsage) print_diagnostic(usage(program));
    return static_cast<int>(error.code);
  };
  std::vector<OptionText> files = {program.queries, program.targets};
  for (OptionText& file : files) file.takes_file = file.required = true;
  if (describes(table, files)) return 0;
  const auto options = parse_options(table, arguments);
  if (!options) return report(options.error());
  if (options->is_set("-h") || options->is_set("--help")) {
    fmt::print("{}{}\n{}", banner(program), usage(program), option_help(table));
    return 0;
  }
  if (program.targets.repeated && options->arguments().size() > 2) {
    const Status status = run_searches(program, *options);
    return status ? 0 : report(status.error());
  }
  Session session;
  const Status status = run_search(program, *options, session);
  const int code = status ? 0 : report(status.error());
  if (session.gpu != nullptr) {
    // Everything is written. Waiting for a driver that is still starting, and freeing what the
    // system frees anyway, would take longer than many a search.
    std::fflush(nullptr);
    if (status) compile_afterwards(session.gpu->unfinished_kernels());
    std::_Exit(code);
  }
  return code;
}

OptionText target_databases() {
  OptionText text;
  text.names = {"seqdb"};
  text.help =
      "sequences, or a database of them; - for standard input; several, with {target} in the "
      "names of outputs";
  text.repeated = true;
  return text;
}

int command_search(const std::vector<std::string>& arguments) {
  static const SearchProgram program = [] {
    SearchProgram p;
    p.name = "search";
    p.title = "search profile(s) against a sequence database";
    p.reference = "hmmsearch";
    p.queries.names = {"hmmfile"};
    p.queries.help = "profile HMMs; - for standard input";
    p.targets = target_databases();
    p.query_label = "query HMM file:";
    p.options = search_option_table;
    return p;
  }();
  return run_search_program(program, arguments);
}

}  // namespace hmmjit::tools
