#include "search_run.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "core/memory.hpp"
#include "core/threads.hpp"
#include "nucleotide_queries.hpp"
#include "output_names.hpp"
#include "progress.hpp"
#include "report/features.hpp"
#include "report/report_header.hpp"
#include "report/run_statistics.hpp"
#include "run_text.hpp"
#include "search/memory_shares.hpp"
#include "search_options.hpp"

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

// The C library maps large blocks separately and unmaps freed ones; smaller blocks stay in a
// thread's arena. Whenever a mapped block is freed, the library raises the limit between both to
// its size, up to 32 MiB. An arena returns its free end if that exceeds `kept` bytes.
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
// raises its limit, and outgrown scratch memory would stay in the arenas, a third of a CPU search's
// memory. Compiles repeatedly free some megabytes, which are worth keeping.
constexpr int kKeptBesideDevice = 8 << 20;

// Gives threads that serve a device three times the CPU share of worker threads.
constexpr int kLowerPriority = 5;

// Passes results to the report and to the feature files, which are written at the end.
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

// Null if no feature files are requested.
Result<std::unique_ptr<FeatureWriter>> start_features(const ParsedOptions& options,
                                                      const std::string& target_path,
                                                      const SearchOptions& search) {
  const FeaturePaths paths{options.path("--gff"), options.path("--bed"), options.path("--fasta"),
                           options.path("--domfasta")};
  OverlapRule rule;
  rule.nucleotides = options.knows("--watson");
  rule.resolve = options.is_set("--resolve-overlaps") || options.is_set("--clans");
  bool resolved = false;
  for (const char* name :
       {"--tblout", "--domtblout", "--pfamtblout", "--dfamtblout", "--tsv", "--json"}) {
    const std::string path = options.path(name);
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
    HMMJIT_ASSIGN(rule.clans, read_clans(options.path("--clans")));
  }
  HMMJIT_ASSIGN(const std::uint64_t memory, memory_by_target(search));
  return FeatureWriter::create(paths, std::move(rule), memory);
}

}  // namespace

std::vector<NamedFile> outputs_of(const SearchProgram& program, const ParsedOptions& options,
                                  const std::optional<PartRequest>& part) {
  std::vector<NamedFile> files;
  if (part && part->part.first == part->part.last)
    files.push_back({"--part-file", part->path(part->part.first)});
  std::ranges::copy(output_files(program.options(), options), std::back_inserter(files));
  for (const char* option : {"--chkhmm", "--chkali"}) {
    if (!options.knows(option) || !options.is_set(option)) continue;
    // No query takes so many rounds, and looking for a million files would take long.
    for (int round = 1; round <= std::min(options.integer("-N"), 1000); ++round)
      files.push_back(file_of_round(options, option, static_cast<std::size_t>(round)));
  }
  return files;
}

Status check_files(const SearchProgram& program, const ParsedOptions& options,
                   const std::optional<PartRequest>& part) {
  const std::string& models = options.arguments()[0];
  const std::vector<NamedFile> inputs = inputs_of(program, options, options.arguments()[1]);
  HMMJIT_TRY(check_inputs(inputs));
  if (program.by_sequence && (models == "-" || is_pipe(models)))
    return fail(ErrorCode::kUsage, "the profiles are read several times",
                fmt::format("<{}>", program.queries.name),
                "give a file, not standard input or a pipe");
  return check_outputs(with_standard_output(outputs_of(program, options, part), options), inputs);
}

Result<SearchRequest> make_request(const SearchProgram& program, const ParsedOptions& options,
                                   const RunContext& context) {
  SearchRequest request;
  HMMJIT_ASSIGN(request.part, make_part_request(options));
  HMMJIT_TRY(check_files(program, options, request.part));
  HMMJIT_ASSIGN(request.search, make_search_options(options));
  request.search.on_warning = [warn = context.warn, say = context.say](const Error& error) {
    // A device has computed wrong scores: said under HMMER's names, too.
    if (error.code == ErrorCode::kInternal)
      say(fmt::format("hmmjit: warning: {}\n", error.to_string()));
    else
      warn(error.to_string());
  };
  if (const auto& bounds = context.request) {
    request.search.cancellation = bounds->cancellation;
    request.search.threads = std::min(request.search.threads, bounds->threads);
    // 0, no bound, wraps to the largest value.
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

Status SearchInputs::open_models() {
  if (program_.open_queries != nullptr) {
    HMMJIT_ASSIGN(queries_, program_.open_queries(options_, options_.arguments()[0]));
    alphabet_ = queries_->alphabet;
    return {};
  }
  const bool skip = options_.text("--cut-missing") == "skip";
  HMMJIT_ASSIGN(HmmReader opened, model_file_.open());
  models_.emplace(std::move(opened), request_.search.thresholds, skip, model_file_);
  HMMJIT_TRY(models_->begin());
  alphabet_ = models_->first().alphabet;
  model_name_ = models_->first().name;
  return {};
}

Status SearchInputs::open_targets() {
  HMMJIT_ASSIGN(targets, targets_of(options_));
  return {};
}

Result<std::unique_ptr<TargetSource>> SearchInputs::targets_of(const ParsedOptions& options) const {
  const std::string& file = options.arguments()[1];
  const bool is_nhmmer = program_.long_targets && !program_.by_sequence;
  if (is_nhmmer && !options.is_set("--dna") && !options.is_set("--rna"))
    HMMJIT_TRY(check_nucleotides(file));
  return tools::open_targets(options, context_, file,
                             {.alphabet = *alphabet_,
                              .format = request_.format,
                              .model = model_name_,
                              .text_mode = is_nhmmer});
}

ModelSource SearchInputs::profiles() {
  return [this] { return models_->next(); };
}

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
  ReportPaths paths{.files = {},
                    .standard_output = standard_output,
                    .alignment_name = options.given().path("-A")};
  for (const auto& [option, kind] : kReportFiles) paths.files[kind] = options.path(option);
  return paths;
}

namespace {

// True if an output cannot be withdrawn, apart from the main report on standard output.
bool any_stream(std::span<const NamedFile> outputs) {
  return std::ranges::any_of(outputs, [](const NamedFile& file) {
    return file.path == "-" || file.path.starts_with("/dev/") || is_pipe(file.path);
  });
}

// True if the first file holds profiles.
bool reads_profiles(const SearchProgram& program, const std::string& path) {
  return program.long_targets ? holds_profiles(path) : program.open_queries == nullptr;
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
                return reads_profiles(program, models) ? positions_of_file(models)
                                                       : residues_of_file(models);
              },
          .residues =
              [&program, &options, &request] {
                std::optional<double> all = residues_of_file(options.arguments()[1]);
                if (all && request.part) *all *= request.part->fraction();
                if (all && program.long_targets) *all *= 2;  // both strands
                // Many queries converge in the third round.
                if (all && options.knows("-N")) *all *= std::min(options.integer("-N"), 3);
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
    run.earlier = *devices;
    return {};
  }
  if (starts && request.device.use == DeviceChoice::Use::kGpu)
    return devices && devices->ready_seconds > 0
               ? fail(ErrorCode::kNoDevice, "the server's GPU has failed", "--device",
                      "its messages say why; leave the option out")
               : fail(ErrorCode::kNoDevice, "the server has no GPU", "--device",
                      "start it on a machine with one, or leave the option out");
  if (starts) note = "the server has none";
  run.session = std::make_shared<Session>(std::move(note));
  return {};
}

// Starts the devices of the search. Starting the driver takes a third of a second; files are opened
// and read meanwhile.
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
    HMMJIT_ASSIGN(trace_, create_file(options_, "--trace"));
    HMMJIT_ASSIGN(statistics_, create_file(options_, "--stats"));
    return {};
  }
  /// Writes both. The returned files are complete except for their names.
  Result<std::vector<OutputFile*>> write(const SearchStatistics& statistics) {
    std::vector<OutputFile*> files;
    if (statistics_) {
      statistics_->write(
          run_statistics_json({fmt::format("hmmjit {}", program_.name), HMMJIT_VERSION, statistics,
                               run_.device_statistics(), run_.session->device_note()}));
      HMMJIT_TRY(statistics_->flush());
      files.push_back(&statistics_->file());
    }
    if (trace_) {
      trace_->write(run_.trace->json());
      HMMJIT_TRY(trace_->flush());
      files.push_back(&trace_->file());
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
  std::optional<TextOutput> statistics_, trace_;
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

// The reports of a search, open before it begins.
struct Outputs {
  std::unique_ptr<ReportWriter> writer = {};
  std::unique_ptr<FeatureWriter> features = {};  // null: no GFF3, BED or FASTA output
  std::vector<OutputFile> further_files = {};
};

Result<Outputs> open_outputs(const SearchProgram& program, const ParsedOptions& options,
                             SearchRequest& request, const Run& run, JoinedOutputs* joined) {
  Outputs out;
  request.report.records.by_sequence = program.by_sequence;
  const bool header_is_out = run.repeated && options.path("-o").empty();
  HMMJIT_ASSIGN(out.writer, ReportWriter::create(
                                report_paths(options, run.context.report), request.report,
                                request.search.filters, author_of(program, options).signature(),
                                header_is_out ? "" : report_header(program, options), joined));
  out.writer->describe(describe_run(program, options, run.context));
  std::vector<NamedFile> files = inputs_of(program, options, options.arguments()[1]);
  std::ranges::move(outputs_of(program, options, request.part), std::back_inserter(files));
  out.writer->protect(with_standard_output(std::move(files), options));
  HMMJIT_ASSIGN(out.features, start_features(options, options.arguments()[1], request.search));
  return out;
}

Result<SearchStatistics> search_with(const SearchProgram& program, const ParsedOptions& options,
                                     SearchRequest& request, SearchInputs& inputs, Outputs& outputs,
                                     const Run& run, SearchProgress& progress) {
  SequenceQueries* const queries = inputs.queries();
  if (queries != nullptr) request.search.calibration = queries->calibration;
  FeatureWriter* const features = outputs.features.get();
  if (program.search == nullptr) {
    ReportAndFeatures sink(*outputs.writer, features);
    return run.session->search(request.search,
                               queries != nullptr ? queries->models : inputs.profiles(),
                               *inputs.targets, sink, progress);
  }
  ProgramRun own{.program = program,
                 .options = options,
                 .search = request.search,
                 .report = request.report,
                 .queries = queries,
                 .profiles = inputs.profiles(),
                 .model_file = inputs.model_file(),
                 .kept_models = run.context.request ? run.context.request->models : nullptr,
                 .targets = inputs.targets,
                 .devices = {*run.session, run.scan.get()},
                 .writer = *outputs.writer,
                 .progress = progress,
                 .further_files = outputs.further_files,
                 .add_features = {}};
  if (features != nullptr)
    own.add_features = [features](const ModelResult& result) { return features->add(result); };
  return program.search(own);
}

// Completes all outputs; they get their names together.
Status publish(Outputs& outputs, const SearchInputs& inputs, const ParsedOptions& options,
               std::vector<OutputFile*> others, const RunDescription& description,
               OutputFile::Afterwards afterwards) {
  for (OutputFile& file : outputs.further_files) others.push_back(&file);
  if (FeatureWriter* const features = outputs.features.get(); features != nullptr) {
    // Rewind: after reopening, another file might have the name.
    if (options.is_set("--fasta") || options.is_set("--domfasta"))
      HMMJIT_TRY(inputs.targets->rewind());
    HMMJIT_TRY(features->write(inputs.targets.get(), inputs.alphabet()));
    outputs.writer->resolve(features->kept());
    for (OutputFile* file : features->files()) others.push_back(file);
  }
  return outputs.writer->complete(description, others, afterwards);
}

// Searches and writes all outputs. `afterwards`: what the process does once they have their names.
Status write_results(const SearchProgram& program, const ParsedOptions& options,
                     SearchRequest& request, ModelFile& models, RunFiles& run_files, Run& run,
                     OutputFile::Afterwards afterwards, JoinedOutputs* joined) {
  const RunContext& context = run.context;
  SearchInputs inputs(program, options, context, request, models);
  // A pipe may deliver late: outputs open first, to report a wrong name or place at once and to
  // show progress. Files open before outputs: an unreadable file must leave no header.
  const bool models_later = is_pipe(options.arguments()[0]);
  const bool targets_later = models_later || is_pipe(options.arguments()[1]);
  if (!models_later) HMMJIT_TRY(inputs.open_models());
  if (!targets_later) HMMJIT_TRY(inputs.open_targets());
  HMMJIT_TRY(run_files.begin());
  HMMJIT_ASSIGN(Outputs outputs, open_outputs(program, options, request, run, joined));
  const bool to_file = !options.path("-o").empty();
  SearchProgress shown;
  SearchProgress& progress = context.request ? context.request->progress : shown;
  std::optional<ProgressDisplay> display;
  if (!context.request && !options.is_set("--quiet") &&
      progress_fits(to_file, author_of(program, options).as_hmmer))
    display.emplace(progress, models.bytes_read, models.bytes_total);
  if (models_later) HMMJIT_TRY(inputs.open_models());
  if (targets_later) HMMJIT_TRY(inputs.open_targets());

  const auto statistics = search_with(program, options, request, inputs, outputs, run, progress);
  display.reset();
  // A shared table may already have rows of this search.
  const bool any_joined = joined != nullptr && !joined->kinds.empty();
  const bool repeatable = !any_joined && !models_later && !targets_later &&
                          !any_stream(outputs_of(program, options, request.part)) &&
                          (progress.results_delivered == 0 || to_file);
  run.repeatable = !statistics && run.session->leave_devices(request.search, progress,
                                                             statistics.error(), repeatable);
  // The devices belonged to the server.
  if (!statistics && progress.wrong_kernel && context.request)
    warn("the GPU is given up: " + statistics.error().to_string());
  if (!statistics) return std::unexpected(statistics.error());
  HMMJIT_ASSIGN(std::vector<OutputFile*> files, run_files.write(*statistics));
  HMMJIT_TRY(publish(outputs, inputs, options, std::move(files),
                     describe_run(program, options, context), afterwards));
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
  if (search_options.thresholds.cutoffs != ModelCutoffs::kNone && !program.by_sequence &&
      options.text("--cut-missing") == "error" && model_path != "-" && !is_pipe(model_path) &&
      reads_profiles(program, model_path))
    HMMJIT_TRY(check_cutoffs(options, search_options.thresholds));
  ModelFile models{program.by_sequence ? find_profile_database(model_path) : model_path,
                   run.context.warn};
  RunFiles run_files(program, options, run);
  if (!request.part)
    return write_results(program, options, request, models, run_files, run, afterwards, joined);
  if (is_pipe(model_path))
    return fail(ErrorCode::kUsage, "models from a pipe do not go with --part", model_path,
                "write them to a file");
  HMMJIT_TRY(run_files.begin());
  PartSearch work{.request = *request.part,
                  .options = options,
                  .search = search_options,
                  .models = models,
                  .session = *run.session,
                  .on_searched = [&run_files](const SearchStatistics& statistics) -> Status {
                    HMMJIT_ASSIGN(const std::vector<OutputFile*> files,
                                  run_files.write(statistics));
                    for (OutputFile* file : files) HMMJIT_TRY(file->commit());
                    if (statistics.threads > 0) run_files.describe(statistics);
                    return {};
                  }};
  return search_parts(work, run.repeatable);
}

}  // namespace

Status search_and_repeat(const SearchProgram& program, const ParsedOptions& options, Run& run,
                         OutputFile::Afterwards afterwards, JoinedOutputs* joined) {
  const Status status = run_search(program, options, run, afterwards, joined);
  if (status || !run.repeatable) return status;
  run.repeated = true;
  if (std::exchange(run.scan, nullptr))
    run.session = std::make_shared<Session>(status.error().to_string());
  return run_search(program, options, run, afterwards, joined);
}

}  // namespace hmmjit::tools
