// hmmjit search: hmmsearch with the same options, files and bytes.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>

#include "command.hpp"
#include "compile_afterwards.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "nucleotide/device_scan.hpp"
#include "nucleotide_queries.hpp"
#include "option_table.hpp"
#include "output_names.hpp"
#include "part_search.hpp"
#include "progress.hpp"
#include "report/features.hpp"
#include "report/report_header.hpp"
#include "report/report_writer.hpp"
#include "report/run_statistics.hpp"
#include "run_context.hpp"
#include "run_text.hpp"
#include "search/device_choice.hpp"
#include "search/hits.hpp"
#include "search/memory_shares.hpp"
#include "search/search.hpp"
#include "search/session.hpp"
#include "search_inputs.hpp"
#include "search_options.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds / 1e9 : 0.0; }

std::string description_of_run(const SearchStatistics& s, const std::optional<gpu::Statistics>& gpu,
                               const std::string& note) {
  std::string text;
  if (!gpu) {
    text = fmt::format("hmmjit: GPU not used: {}\n", note);
  } else {
    const gpu::Statistics& g = *gpu;
    const std::string& reason = g.reason.empty() ? note : g.reason;
    text = fmt::format(
        "hmmjit: GPU {}{}{}; ready after {:.2f} s, {} launches, {} kernels ({} compiled), "
        "busy {:.2f} s of {:.2f} s, {:.0f} GCUPS\n",
        g.state, reason.empty() ? "" : ": ", reason, g.ready_seconds, g.launches,
        g.distinct_kernels, g.kernels.compiled, g.busy_seconds, g.active_seconds,
        rate(static_cast<double>(g.cells), g.busy_seconds));
  }
  text += fmt::format(
      "hmmjit: {} x {} ({}) in {:.2f} s; {}, {}; {}\n", counted(s.models, "model"),
      counted(s.targets, "target"), counted(s.residues, "residue"), s.wall_seconds,
      counted(static_cast<std::uint64_t>(s.threads), "thread"), s.backend,
      s.streamed ? fmt::format("targets streamed in {}{}",
                               counted(static_cast<std::uint64_t>(s.passes), "pass", "passes"),
                               s.spooled ? ", spooled to a temporary file" : "")
                 : std::string("targets kept in memory"));
  return text + fmt::format(
                    "hmmjit: core-seconds: read {:.2f}, set-up {:.2f}, SSV {:.2f}, MSV {:.2f}, "
                    "bias {:.2f}, "
                    "Viterbi {:.2f}, Forward and domains {:.2f}, report {:.2f}; peak {} MB\n",
                    s.read_seconds, s.setup_seconds, s.filters.ssv, s.filters.msv, s.filters.bias,
                    s.filters.viterbi, s.scoring_seconds, s.report_seconds,
                    peak_resident_memory() >> 20);
}

// Large blocks are mappings of their own, which leave the process when they are freed; smaller ones
// stay in the arena of a thread. The C library raises the limit between the two up to 32 MiB as
// larger blocks are freed. An arena returns its free end when that exceeds `kept` bytes.
void return_memory_early(int kept) {
#ifdef M_MMAP_THRESHOLD
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
  ::mallopt(M_TRIM_THRESHOLD, kept);
#else
  (void)kept;
#endif
}
// Under a memory bound, the memory of finished blocks of targets returns to the system.
constexpr int kKeptUnderBound = 128 << 10;
// With a device, a large block is freed early: the copy of the uploaded targets. The C library then
// raises its limit, and all scratch memory that threads outgrow would stay with them, a third of
// what a search takes on the CPU alone. A compile frees some megabytes again and again, which are
// worth keeping.
constexpr int kKeptBesideDevice = 8 << 20;

// A core goes to a thread of the device three times as readily as to one that works.
constexpr int kLowerPriority = 5;

std::vector<NamedFile> outputs_of(const SearchProgram& program, const ParsedOptions& options,
                                  const std::optional<PartRequest>& part) {
  std::vector<NamedFile> files;
  if (part && part->part.first == part->part.last)
    files.push_back({"--part-file", part->path(part->part.first)});
  std::ranges::copy(output_files(program.options(), options), std::back_inserter(files));
  return files;
}

// Passes results to the report, and to the feature files that are written at the end.
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

// Empty where it is not given, or this program has no such option.
std::string path_of(const ParsedOptions& options, std::string_view name) {
  return options.knows(name) ? std::string(options.text(name)) : std::string();
}

// Null where nothing of the kind is asked for.
Result<std::unique_ptr<FeatureWriter>> start_features(const ParsedOptions& options,
                                                      const std::string& target_path,
                                                      const SearchOptions& search) {
  const FeaturePaths paths{std::string(options.text("--gff")), std::string(options.text("--bed")),
                           std::string(options.text("--fasta")),
                           std::string(options.text("--domfasta"))};
  OverlapRule rule;
  rule.nucleotides = options.knows("--watson");
  rule.resolve = options.is_set("--resolve-overlaps") || options.is_set("--clans");
  bool resolved = false;
  for (const char* name :
       {"--tblout", "--domtblout", "--pfamtblout", "--dfamtblout", "--tsv", "--json"}) {
    const std::string path = path_of(options, name);
    resolved |= !path.empty();
    if (rule.resolve && path.find("{query}") != path.npos)
      return fail(ErrorCode::kUsage, "overlaps of several queries are not resolved in files of one",
                  name, "leave {query} out of its name");
  }
  if (rule.resolve && !paths.any() && !resolved)
    return fail(
        ErrorCode::kUsage,
        "overlaps are resolved in tables, --tsv, --json, --gff, --bed, --fasta and --domfasta", {},
        "add one of them");
  if (!paths.any() && !rule.resolve) return nullptr;
  if (paths.sequences_needed() && (target_path == "-" || is_pipe(target_path)))
    return fail(ErrorCode::kUsage, "--fasta and --domfasta read the sequences a second time",
                target_path, "give a file instead of a pipe");
  if (options.is_set("--clans")) {
    HMMJIT_ASSIGN(rule.clans, read_clans(std::string(options.text("--clans"))));
  }
  HMMJIT_ASSIGN(const std::uint64_t memory, memory_by_target(search));
  return FeatureWriter::create(paths, std::move(rule), memory);
}

// The parsed command line.
struct SearchRequest {
  SearchOptions search;
  ReportOptions report;
  DeviceChoice device;
  std::optional<PartRequest> part;
  std::optional<SequenceFormat> format;
};

// Fails with kUsage where files do not fit the program or outputs would be lost.
Status check_files(const SearchProgram& program, const ParsedOptions& options,
                   const std::optional<PartRequest>& part) {
  const std::string& models = options.arguments()[0];
  const std::string& targets = options.arguments()[1];
  if (models == "-" && targets == "-")
    return fail(ErrorCode::kUsage, fmt::format("either <{}> or <{}> may be '-', but not both",
                                               program.queries.name, program.targets.name));
  if (program.by_sequence && (models == "-" || is_pipe(models)))
    return fail(ErrorCode::kUsage, "the profiles are read several times",
                fmt::format("<{}>", program.queries.name),
                "give a file, not standard input or a pipe");
  return check_outputs(outputs_of(program, options, part), inputs_of(program, options, targets));
}

Result<SearchRequest> make_request(const SearchProgram& program, const ParsedOptions& options,
                                   const RunContext& context) {
  SearchRequest request;
  HMMJIT_ASSIGN(request.part, make_part_request(options));
  HMMJIT_TRY(check_files(program, options, request.part));
  HMMJIT_ASSIGN(request.search, make_search_options(options));
  request.search.on_warning = context.warn;
  if (const auto& bounds = context.request) {
    request.search.cancellation = bounds->cancellation;
    request.search.threads = std::min(request.search.threads, bounds->threads);
    // 0, which is no bound, counts as the largest.
    request.search.memory = std::min(request.search.memory - 1, bounds->memory - 1) + 1;
  }
  request.report = make_report_options(options);
  HMMJIT_ASSIGN(const parts::Share slice, slice_of(options));
  request.report.begins = slice.first == 1;
  request.report.ends = slice.last == slice.of;
  HMMJIT_ASSIGN(request.device, make_device_choice(options));
  HMMJIT_ASSIGN(request.format,
                asserted_format(options, program.by_sequence ? "--qformat" : "--tformat"));
  return request;
}

// Objects that outlive the search: threads of the GPU may still work when all results are written.
struct Run {
  const RunContext& context;
  std::optional<Trace> trace = {};
  std::shared_ptr<Session> session = {};
  std::unique_ptr<nucleotide::DeviceScan> scan = {};  // instead, for long targets
  bool uses_device() const {
    return scan != nullptr || (session != nullptr && session->devices() != nullptr);
  }
  std::optional<gpu::Statistics> device_statistics() const {
    return scan != nullptr ? std::optional(scan->statistics()) : session->device_statistics();
  }
  // The search has failed because of a wrong kernel and can be repeated on the CPU; it is being
  // repeated.
  bool repeatable = false, repeated = false;
};

// Whether an output cannot be taken back, besides the main report on standard output.
bool any_stream(std::span<const NamedFile> outputs) {
  return std::ranges::any_of(outputs, [](const NamedFile& file) {
    return file.path == "-" || file.path.starts_with("/dev/") || is_pipe(file.path);
  });
}

// Sizes of the inputs, estimated from their files.
struct InputSizes {
  SizeOf positions, residues;
};

InputSizes sizes_of_inputs(const SearchProgram& program, const ParsedOptions& options,
                           const SearchRequest& request) {
  const std::string& path = options.arguments()[0];
  const std::string models = program.by_sequence ? find_profile_database(path) : path;
  return {.positions =
              [&program, models] {
                const bool profiles =
                    program.long_targets ? holds_profiles(models) : program.open_queries == nullptr;
                return profiles ? positions_of_file(models) : residues_of_file(models);
              },
          .residues =
              [&program, &options, &request] {
                std::optional<double> all = residues_of_file(options.arguments()[1]);
                if (all && request.part) *all *= request.part->fraction();
                if (all && program.long_targets) *all *= 2;  // both strands
                return all;
              }};
}

gpu::Settings settings_of_start(SearchRequest& request, const InputSizes& sizes,
                                const DeviceChoice& started) {
  if (request.search.memory == 0) return_memory_early(kKeptBesideDevice);
  request.search.lower_priority = kLowerPriority;
  return gpu_settings(started, sizes.positions(), request.search.trace);
}

// Long targets: a device runs SSV and the Viterbi filter of windows.
Status start_scan(SearchRequest& request, const InputSizes& sizes, Run& run) {
  if (request.device.use == DeviceChoice::Use::kGpu && request.device.ordinals.size() > 1)
    return fail(ErrorCode::kUsage, "long targets are searched with one device", "--device",
                "name one");
  request.device.ordinals.resize(1);
  std::string note;
  HMMJIT_ASSIGN(const bool starts, starts_devices(request.device, request.search, sizes.positions,
                                                  sizes.residues, note));
  if (starts)
    run.scan =
        std::make_unique<nucleotide::DeviceScan>(settings_of_start(request, sizes, request.device));
  run.session = std::make_shared<Session>(std::move(note));
  return {};
}

// A request uses the devices of its server.
Status share_session(SearchRequest& request, const InputSizes& sizes, Run& run) {
  const std::shared_ptr<Session>& shared = run.context.request->session;
  const auto devices = shared->device_statistics();
  request.device.started = devices && devices->state != "failed";
  SearchOptions share = request.search;
  share.threads = std::max(1, share.threads / run.context.request->running);
  std::string note;
  HMMJIT_ASSIGN(const bool starts,
                starts_devices(request.device, share, sizes.positions, sizes.residues, note));
  if (starts && request.device.started) {
    run.session = shared;
    return {};
  }
  if (starts && request.device.use == DeviceChoice::Use::kGpu)
    return fail(ErrorCode::kNoDevice, "the server has no GPU", "--device",
                "start it on a machine with one, or leave the option out");
  if (starts) note = "the server has none";
  run.session = std::make_shared<Session>(std::move(note));
  return {};
}

// Starts the devices that the search uses: the driver takes a third of a second, in which files are
// opened and read.
Status start_devices(const SearchProgram& program, const ParsedOptions& options,
                     SearchRequest& request, Run& run) {
  const InputSizes sizes = sizes_of_inputs(program, options, request);
  if (program.long_targets) return start_scan(request, sizes, run);
  if (run.context.request) return share_session(request, sizes, run);
  run.session = std::make_shared<Session>();
  return run.session->start(
      request.device, request.search, sizes.positions, sizes.residues,
      [&](const DeviceChoice& started) { return settings_of_start(request, sizes, started); });
}

// --stats and --trace.
class RunFiles {
 public:
  RunFiles(const SearchProgram& program, const ParsedOptions& options, Run& run)
      : program_(program), options_(options), run_(run) {}
  Status begin() {
    if (run_.trace) {
      HMMJIT_ASSIGN(trace_, OutputFile::create(std::string(options_.text("--trace"))));
    }
    if (options_.is_set("--stats")) {
      HMMJIT_ASSIGN(statistics_, OutputFile::create(std::string(options_.text("--stats"))));
    }
    return {};
  }
  /// Writes them. The returned file is complete except for its name.
  std::vector<OutputFile*> write(const SearchStatistics& statistics) {
    std::vector<OutputFile*> files;
    if (statistics_) {
      statistics_->write(
          run_statistics_json({fmt::format("hmmjit {}", program_.name), HMMJIT_VERSION, statistics,
                               run_.device_statistics(), run_.session->device_note()}));
      files.push_back(&*statistics_);
    }
    if (trace_) {
      trace_->write(run_.trace->json());
      files.push_back(&*trace_);
    }
    return files;
  }
  void describe(const SearchStatistics& statistics) const {
    if (options_.is_set("--verbose"))
      run_.context.say(
          description_of_run(statistics, run_.device_statistics(), run_.session->device_note()));
  }

 private:
  const SearchProgram& program_;
  const ParsedOptions& options_;
  Run& run_;
  std::optional<OutputFile> statistics_, trace_;
};

// Models or query sequences, and targets, opened.
class SearchInputs {
 public:
  SearchInputs(const SearchProgram& program, const ParsedOptions& options,
               const RunContext& context, const SearchRequest& request, ModelFile& models)
      : program_(program),
        options_(options),
        context_(context),
        request_(request),
        model_file_(models) {}
  Status open_models() {
    const std::string& path = options_.arguments()[0];
    if (program_.open_queries != nullptr) {
      HMMJIT_ASSIGN(queries_, program_.open_queries(options_, path));
      alphabet_ = queries_->alphabet;
      return {};
    }
    const bool skip = options_.text("--cut-missing") == "skip";
    HMMJIT_ASSIGN(HmmReader opened, model_file_.open());
    reader_.emplace(std::move(opened), request_.search.thresholds, skip, context_.warn);
    HMMJIT_ASSIGN(first_, reader_->next());
    if (!first_ && skip)
      return fail(ErrorCode::kInput, "no model of the file has the cutoffs asked for", path,
                  "search without --cut_*");
    if (!first_)
      return fail(ErrorCode::kInput, "no model in the file", path, "give a profile HMM file");
    alphabet_ = first_->alphabet;
    return {};
  }
  Status open_targets() {
    HMMJIT_ASSIGN(targets, reopened_targets());
    return {};
  }
  Result<std::unique_ptr<TargetSource>> reopened_targets() const {
    return tools::open_targets(options_, context_, options_.arguments()[1], sequence_options());
  }
  ModelSource profiles() {
    return [this]() -> Result<std::optional<Query>> {
      if (first_) return std::exchange(first_, std::nullopt);
      return reader_->next();
    };
  }
  SequenceQueries* queries() { return queries_ ? &*queries_ : nullptr; }
  const Alphabet& alphabet() const { return *alphabet_; }

  std::unique_ptr<TargetSource> targets;

 private:
  SequenceFormatOptions sequence_options() const {
    return {.alphabet = *alphabet_, .format = request_.format, .model = first_ ? first_->name : ""};
  }

  const SearchProgram& program_;
  const ParsedOptions& options_;
  const RunContext& context_;
  const SearchRequest& request_;
  ModelFile& model_file_;
  const Alphabet* alphabet_ = &amino_alphabet();
  std::optional<ModelsToSearch> reader_;
  std::optional<Hmm> first_;
  std::optional<SequenceQueries> queries_;
};

// The lines above the first result.
std::string report_header(const SearchProgram& program, const ParsedOptions& run_options) {
  const ParsedOptions& options = run_options.given();
  std::string header = author_of(program, options).banner();
  header += ReportHeader::kRule;
  std::pair<std::string_view, std::string> labels[] = {
      {program.query_label, options.arguments()[0]},
      {program.target_label, options.arguments()[1]}};
  if (program.by_sequence) std::swap(labels[0], labels[1]);
  for (const auto& [label, path] : labels) header += ReportHeader::line(label, path);
  std::vector<HeaderSetting> settings = options.changed();
  if (program.reference == "nhmmer" && !options.is_set("--cpu"))
    settings.push_back({"--cpu", std::to_string(available_cores())});
  header += ReportHeader::settings(program.reference, settings);
  return (header += ReportHeader::kRule) + "\n";
}

// The description of the run in outputs.
RunDescription describe_run(const SearchProgram& program, const ParsedOptions& run_options,
                            const RunContext& context) {
  const ParsedOptions& options = run_options.given();
  const std::string& models = options.arguments()[0];
  const std::string& targets = options.arguments()[1];
  const Author author = author_of(program, options);
  RunDescription run;
  run.program = fmt::format("hmmjit {}", program.name);
  run.version = HMMJIT_VERSION;
  if (author.as_hmmer) run.hmmer_program = author.hmmer;
  run.query_file = models;
  run.target_file = targets;
  run.option_settings = author.program() + " " + options.settings() + models + " " + targets + " ";
  run.folder = context.folder;
  run.date = date_text();
  run.by_sequence = program.by_sequence;
  run.scan = options.text("--as") == "hmmscan" || program.by_sequence;
  return run;
}

// Settings for tables by target: hmmscan's Z and the memory for the hits of all models.
Status set_scan_view(const ParsedOptions& options, SearchRequest& request) {
  Thresholds& thresholds = request.search.thresholds;
  if (!thresholds.Z) {
    HMMJIT_ASSIGN(thresholds.Z, count_models(options.arguments()[0], thresholds,
                                             options.text("--cut-missing") == "skip"));
  }
  for (const char* table : {"--tblout", "--domtblout"}) {
    if (options.text(table).find("{query}") != std::string_view::npos)
      return fail(ErrorCode::kUsage, "tables by target do not go with {query}", table,
                  "leave it out of the name");
  }
  request.report.scan = thresholds;
  HMMJIT_ASSIGN(request.report.scan_memory, memory_by_target(request.search));
  return {};
}

// Searches and writes all outputs. `afterwards`: of the process, when these have their names.
Status write_results(const SearchProgram& program, const ParsedOptions& options,
                     SearchRequest& request, ModelFile& models, RunFiles& run_files, Run& run,
                     OutputFile::Afterwards afterwards, JoinedOutputs* joined) {
  const std::string& model_path = options.arguments()[0];
  const std::string& target_path = options.arguments()[1];
  const RunContext& context = run.context;
  SearchInputs inputs(program, options, context, request, models);
  // A pipe may be long in coming: outputs are begun and progress is shown meanwhile, and what is
  // wrong with a name or a place is said at once. Files are looked at first, so that one that
  // cannot be read leaves no header.
  const bool models_later = is_pipe(model_path);
  const bool targets_later = models_later || is_pipe(target_path);
  if (!models_later) HMMJIT_TRY(inputs.open_models());
  if (!targets_later) HMMJIT_TRY(inputs.open_targets());

  HMMJIT_TRY(run_files.begin());
  const ReportPaths paths = report_paths(options, context.report);
  request.report.records.by_sequence = program.by_sequence;
  const bool header_is_out = run.repeated && paths.main.empty();
  HMMJIT_ASSIGN(const std::unique_ptr<ReportWriter> writer,
                ReportWriter::create(paths, request.report, request.search.filters,
                                     author_of(program, options).signature(),
                                     header_is_out ? "" : report_header(program, options), joined));
  writer->describe(describe_run(program, options, context));
  HMMJIT_ASSIGN(const std::unique_ptr<FeatureWriter> features,
                start_features(options, target_path, request.search));
  SearchProgress shown;
  SearchProgress& progress = context.request ? context.request->progress : shown;
  std::optional<ProgressDisplay> display;
  if (!context.request && !options.is_set("--quiet") && progress_fits(!paths.main.empty()))
    display.emplace(progress, models.bytes_read(), models.bytes_total());
  if (models_later) HMMJIT_TRY(inputs.open_models());
  if (targets_later) HMMJIT_TRY(inputs.open_targets());

  SequenceQueries* const queries = inputs.queries();
  if (queries != nullptr) request.search.calibration = queries->calibration;
  std::vector<OutputFile> further_files;
  ProgramRun own{program,
                 options,
                 request.search,
                 request.report,
                 paths,
                 queries,
                 inputs.profiles(),
                 context.request ? context.request->models : nullptr,
                 inputs.targets,
                 {*run.session, run.scan.get()},
                 *writer,
                 progress,
                 further_files,
                 {}};
  if (features != nullptr)
    own.add_features = [&](const ModelResult& result) { return features->add(result); };
  ReportAndFeatures sink(*writer, features.get());
  const auto statistics =
      program.search != nullptr
          ? program.search(own)
          : run.session->search(request.search,
                                queries != nullptr ? queries->models : inputs.profiles(),
                                *inputs.targets, sink, progress);
  display.reset();
  // A table of several searches may have some rows of this one.
  const bool any_joined = joined != nullptr && (joined->tsv || joined->target_tsv || joined->json);
  run.repeatable = !statistics && !any_joined && !models_later && !targets_later &&
                   !any_stream(outputs_of(program, options, request.part)) &&
                   (progress.results_delivered == 0 || !paths.main.empty()) &&
                   run.session->leave_devices(request.search, progress, statistics.error());
  if (!statistics) return std::unexpected(statistics.error());

  if (features != nullptr) {
    std::unique_ptr<TargetSource> again;
    if (options.is_set("--fasta") || options.is_set("--domfasta")) {
      HMMJIT_ASSIGN(again, inputs.reopened_targets());
    }
    HMMJIT_TRY(features->write(again.get(), inputs.alphabet()));
    writer->resolve(features->kept());
  }
  std::vector<OutputFile*> others = run_files.write(*statistics);
  for (OutputFile& file : further_files) others.push_back(&file);
  if (features != nullptr) {
    for (OutputFile* file : features->files()) others.push_back(file);
  }
  HMMJIT_TRY(writer->complete(describe_run(program, options, context), others, afterwards));
  run_files.describe(*statistics);
  return {};
}

Status run_search(const SearchProgram& program, const ParsedOptions& options, Run& run,
                  OutputFile::Afterwards afterwards, JoinedOutputs* joined) {
  if (options.is_set("--verbose")) {
    std::string command = options.given().settings();
    for (const std::string& argument : options.given().arguments()) command += argument + " ";
    run.context.say(
        fmt::format("hmmjit: version {}; hmmjit {} {}\n", HMMJIT_VERSION, program.name, command));
  }
  HMMJIT_ASSIGN(SearchRequest request, make_request(program, options, run.context));
  if (joined != nullptr) request.report.records.target_file = options.arguments()[1];
  SearchOptions& search_options = request.search;
  if (search_options.memory > 0 && !run.context.request) return_memory_early(kKeptUnderBound);
  if (options.is_set("--trace")) search_options.trace = &run.trace.emplace();
  search_options.own_run = options.is_set("--stats") || options.is_set("--verbose");
  if (!run.repeated) HMMJIT_TRY(start_devices(program, options, request, run));
  if (options.text("--as") == "hmmscan") HMMJIT_TRY(set_scan_view(options, request));
  const std::string& model_path = options.arguments()[0];
  if (search_options.thresholds.cutoffs != ModelCutoffs::kNone && program.open_queries == nullptr &&
      !program.by_sequence && options.text("--cut-missing") == "error" &&
      is_regular_file(model_path))
    HMMJIT_TRY(check_cutoffs(model_path, search_options.thresholds));
  ModelFile models(program.by_sequence ? find_profile_database(model_path) : model_path,
                   run.context.warn);
  RunFiles run_files(program, options, run);
  if (!request.part)
    return write_results(program, options, request, models, run_files, run, afterwards, joined);
  if (is_pipe(model_path))
    return fail(ErrorCode::kUsage, "models from a pipe do not go with --part", model_path,
                "write them to a file");
  HMMJIT_TRY(run_files.begin());
  PartSearch work{*request.part,
                  options,
                  search_options,
                  model_path,
                  options.arguments()[1],
                  [&models] { return models.open(); },
                  *run.session,
                  models.bytes_read(),
                  models.bytes_total(),
                  [&run_files](const SearchStatistics& statistics) -> Status {
                    for (OutputFile* file : run_files.write(statistics)) HMMJIT_TRY(file->commit());
                    run_files.describe(statistics);
                    return {};
                  }};
  return search_parts(work, run.repeatable);
}

// Where a GPU kernel computes wrong scores, the search is repeated on the CPU.
Status search_and_repeat(const SearchProgram& program, const ParsedOptions& options, Run& run,
                         OutputFile::Afterwards afterwards = OutputFile::Afterwards::kProcessEnds,
                         JoinedOutputs* joined = nullptr) {
  const Status status = run_search(program, options, run, afterwards, joined);
  if (status || !run.repeatable) return status;
  run.repeated = true;
  return run_search(program, options, run, afterwards, joined);
}

// A device or pipe that is written: every search may write to it in turn.
bool takes_all_outputs(const std::string& path) { return path != "-" && is_pipe(path); }

Status check_for_several_targets(const SearchProgram& program, const ParsedOptions& options) {
  const std::string& models = options.arguments()[0];
  if (models == "-" || is_pipe(models))
    return fail(ErrorCode::kUsage,
                fmt::format("the {} of several target files are read several times",
                            program.open_queries != nullptr ? "queries" : "models"),
                models, "give a file instead of a pipe");
  for (const char* option : {"--chkhmm", "--chkali", "--slice"}) {
    if (options.knows(option) && options.is_set(option))
      return fail(ErrorCode::kUsage, fmt::format("several target files do not go with {}", option),
                  {}, "search one database at a time");
  }
  if (options.is_set("--part"))
    return fail(ErrorCode::kUsage, "several target files do not go with --part", {},
                "search the parts of one database at a time");
  return {};
}

// The tables that all searches write one after the other into one file, which has one name.
JoinedOutputs joined_outputs(const ParsedOptions& options, std::vector<std::string>& names) {
  JoinedOutputs joined;
  for (const auto& [option, is_joined] : {std::pair{"--tsv", &joined.tsv},
                                          {"--target-tsv", &joined.target_tsv},
                                          {"--json", &joined.json}}) {
    if (!options.knows(option) || !options.is_set(option)) continue;
    const std::string_view name = options.text(option);
    *is_joined = std::ranges::none_of(
        std::array{"{target}", "{folder}", "{path}", "{query}"},
        [&](const char* word) { return name.find(word) != std::string_view::npos; });
    if (*is_joined) names.emplace_back(option);
  }
  return joined;
}

// Opens every input and begins every output of several searches, so that an error in one of a
// thousand files is reported before the first search.
Status check_all_files(const SearchProgram& program, std::span<const ParsedOptions> searches,
                       std::span<const std::string> joined, const RunContext& context) {
  std::vector<NamedFile> outputs, inputs;
  std::vector<std::string> target_files;
  std::vector<std::vector<NamedFile>> outputs_of_targets;
  for (const ParsedOptions& one : searches) {
    target_files.push_back(one.arguments()[1]);
    for (const NamedFile& output :
         outputs_of_targets.emplace_back(outputs_of(program, one, std::nullopt))) {
      const bool again = &one != &searches.front();
      if (!again || std::ranges::find(joined, output.option) == joined.end())
        outputs.push_back(output);
    }
    std::ranges::copy(inputs_of(program, one, one.arguments()[1]), std::back_inserter(inputs));
  }
  HMMJIT_TRY(check_target_outputs(target_files, outputs_of_targets, joined));
  HMMJIT_TRY(check_outputs(outputs, inputs));
  HMMJIT_ASSIGN(const SearchRequest request, make_request(program, searches.front(), context));
  ModelFile models(searches.front().arguments()[0], context.warn);
  SearchInputs opened(program, searches.front(), context, request, models);
  HMMJIT_TRY(opened.open_models());
  for (const ParsedOptions& one : searches) {
    const std::string& targets = one.arguments()[1];
    if (targets != "-" && !is_pipe(targets))
      HMMJIT_TRY(open_targets(one, context, targets,
                              {.alphabet = opened.alphabet(), .format = request.format}));
  }
  for (const NamedFile& output : outputs) {
    if (!takes_all_outputs(output.path)) HMMJIT_TRY(OutputFile::create(output.path));
  }
  return {};
}

// Several target files: a search of each, one after the other, with outputs of its own.
Status run_searches(const SearchProgram& program, const ParsedOptions& options,
                    const RunContext& context) {
  HMMJIT_TRY(check_for_several_targets(program, options));
  const std::string& models = options.arguments()[0];
  std::vector<ParsedOptions> searches;
  for (const std::string& target : options.arguments() | std::views::drop(1))
    searches.push_back(for_target(options, models, target));
  std::vector<std::string> joined_options;
  JoinedOutputs joined = joined_outputs(options, joined_options);
  HMMJIT_TRY(check_all_files(program, searches, joined_options, context));
  for (const ParsedOptions& one : searches) {
    Run run{context};
    joined.ends = &one == &searches.back();
    // Only the last may put signals off for good.
    HMMJIT_TRY(search_and_repeat(program, one, run,
                                 &one == &searches.back() ? OutputFile::Afterwards::kProcessEnds
                                                          : OutputFile::Afterwards::kProcessGoesOn,
                                 &joined));
  }
  return {};
}

}  // namespace

gpu::Settings gpu_settings(const DeviceChoice& choice, std::optional<double> positions,
                           Trace* trace) {
  gpu::Settings settings = device_settings(choice);
  settings.trace = trace;
  settings.on_warning = warn;
  constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
  if (const auto visible =
          visible_devices_up_to(*std::ranges::max_element(choice.ordinals), std::getenv(kVisible)))
    ::setenv(kVisible, visible->c_str(), 1);
  if (const auto queues = driver_queues(positions))
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(*queues).c_str(), 0);
  return settings;
}

ReportPaths report_paths(const ParsedOptions& options, int standard_output) {
  const auto path = [&](std::string_view name) { return path_of(options, name); };
  return {path("-o"),
          path("-A"),
          path("--tblout"),
          path("--domtblout"),
          path("--pfamtblout"),
          path("--tsv"),
          path("--json"),
          path("--a3m"),
          path("--target-tsv"),
          standard_output,
          path("--dfamtblout"),
          path("--aliscoresout"),
          path_of(options.given(), "-A")};
}

Author author_of(const SearchProgram& program, const ParsedOptions& options) {
  return {program.name, program.reference, program.title, options.is_set("--hmmer-banner")};
}

namespace {

constexpr std::string_view kOutputWords[] = {"{target}", "{folder}", "{path}", "{query}"};

Result<int> run_by_server(const SearchProgram& program, const ParsedOptions& options) {
  HMMJIT_TRY(check_served(options));
  const auto& given = options.arguments();
  if (given.size() > 2)
    return fail(ErrorCode::kUsage, "several target files do not go with --server", {},
                "search one database at a time");
  const ParsedOptions one = for_target(options, given[0], given[1]);
  HMMJIT_TRY(check_files(program, one, std::nullopt));
  return ask_server(program, one);
}

Result<int> run_program(const SearchProgram& program, const ParsedOptions& options) {
  HMMJIT_TRY(check_output_words(output_files(program.options(), options), kOutputWords));
  if (served(program) && options.is_set("--server")) return run_by_server(program, options);
  const RunContext context;
  Run run{context};
  const auto& given = options.arguments();
  const Status status =
      program.targets.several && given.size() > 2 ? run_searches(program, options, context)
      : given.size() == 2 ? search_and_repeat(program, for_target(options, given[0], given[1]), run)
                          : search_and_repeat(program, options, run);
  if (!status && !run.uses_device()) return std::unexpected(status.error());
  if (!status)
    std::_Exit(
        report_failure(fmt::format("hmmjit {}", program.name), status.error(), program.options()));
  if (run.uses_device()) {
    // Everything is written. Waiting for a driver that is still starting, and freeing what the
    // system frees anyway, would take longer than many a search.
    std::fflush(nullptr);
    if (const auto devices = run.session->devices())
      compile_afterwards(devices->unfinished_kernels());
    std::_Exit(0);
  }
  return 0;
}

}  // namespace

bool served(const SearchProgram& program) {
  return std::ranges::any_of(program.options(), [](const OptionSpec& option) {
    return option.name == "--server" && !option.absent;
  });
}

Status check_served(const ParsedOptions& options) {
  for (const char* option : {"--part", "--part-file", "--model-part", "--trace"}) {
    if (options.knows(option) && options.is_set(option))
      return fail(ErrorCode::kUsage, fmt::format("option {} does not go with --server", option));
  }
  return {};
}

Status run_request(const SearchProgram& program, const ParsedOptions& options,
                   const RunContext& context) {
  HMMJIT_TRY(check_output_words(output_files(program.options(), options), kOutputWords));
  Run run{context};
  return search_and_repeat(program, options, run, OutputFile::Afterwards::kProcessGoesOn);
}

CommandSpec command_of(const SearchProgram& described, std::string_view summary) {
  const auto program = std::make_shared<const SearchProgram>(described);
  CommandSpec out{program->name, summary, {program->queries, program->targets}};
  const std::span<const OptionSpec> options = program->options();
  out.options.assign(options.begin(), options.end());
  out.program = program;
  out.run = [program](const ParsedOptions& given) { return run_program(*program, given); };
  out.banner = [program](const ParsedOptions& given) {
    return author_of(*program, given).banner();
  };
  return out;
}

ArgumentSpec target_databases() {
  return {"seqdb",
          "sequences, or a database of them; - for standard input; several, with {target}, {folder} "
          "or {path} in the names of outputs; {query}: an output for each query",
          true, true};
}

SearchProgram scan_program(std::string_view name, std::string_view title,
                           std::string_view reference) {
  SearchProgram p;
  p.name = name;
  p.title = title;
  p.reference = reference;
  p.queries = {"hmmdb", "profile HMMs, pressed or not"};
  p.targets = {"seqfile", "query sequences; - for standard input"};
  p.query_label = "target HMM database:";
  p.target_label = "query sequence file:";
  p.by_sequence = true;
  return p;
}

CommandSpec search_command() {
  SearchProgram program;
  program.name = "search";
  program.title = "search profile(s) against a sequence database";
  program.reference = "hmmsearch";
  program.queries = {"hmmfile", "profile HMMs; - for standard input"};
  program.targets = target_databases();
  program.query_label = "query HMM file:";
  program.options = search_option_table;
  return command_of(program, "search profile(s) against sequences, as hmmsearch does");
}

}  // namespace hmmjit::tools
