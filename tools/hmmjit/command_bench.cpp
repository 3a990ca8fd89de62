// `hmmjit bench`: exactness and speed of the filter kernels on this machine's GPU. `hmmjit tune`:
// finds the fastest of the planner's candidates there, and stores them for later searches.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "bench/bench.hpp"
#include "compile/tuning_store.hpp"
#include "core/diagnostics.hpp"
#include "core/numbers.hpp"
#include "gpu/chain_plans.hpp"
#include "hmmjit/command.hpp"
#include "hmmjit/command_cache.hpp"
#include "hmmjit/measurement_tables.hpp"
#include "hmmjit/search_options.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"

namespace hmmjit::tools {
namespace {

using bench::Measurement;
using plan::Stage;

constexpr std::array kMeasuredStages{Stage::kSsv, Stage::kMsv, Stage::kBias, Stage::kViterbi,
                                     Stage::kForward};

/// The request on the command line.
struct BenchRequest {
  std::vector<std::string> models, targets, variants;
  std::vector<Stage> stages;
  bench::Settings settings;
  plan::Policy policy = plan::Policy::kDefault;
  std::size_t candidates = 1;
  int device = 0;
  bool json = false, paper = false, exact_length = false;
};

/// "200M": a count with an optional k (or K), M or G.
Result<std::uint64_t> parse_count(const std::string& text) {
  const std::string digits = text.substr(0, text.find_first_not_of("0123456789"));
  const std::string unit = text.substr(digits.size());
  const auto value = parse_int(digits);
  std::uint64_t factor = 1;
  if (unit == "k" || unit == "K") factor = 1000;
  if (unit == "M") factor = 1000000;
  if (unit == "G") factor = 1000000000;
  if (!value || (factor == 1 && !unit.empty()) ||
      static_cast<std::uint64_t>(*value) > (std::uint64_t{1} << 40) / factor) {
    return fail(ErrorCode::kUsage, fmt::format("\"{}\" is no count", text), "--residues",
                "a number, as in 200000000 or 200M");
  }
  return static_cast<std::uint64_t>(*value) * factor;
}

Result<std::vector<Stage>> parse_stages(const std::vector<std::string>& names) {
  std::vector<Stage> out;
  for (const std::string& name : names) {
    const auto stage = plan::find_stage(name);
    if (!stage || std::ranges::find(kMeasuredStages, *stage) == kMeasuredStages.end()) {
      return fail(ErrorCode::kUsage, fmt::format("no stage \"{}\" to measure", name), "--stage",
                  "stages: ssv, msv, bias, viterbi, forward");
    }
    out.push_back(*stage);
  }
  if (out.empty()) out.assign(kMeasuredStages.begin(), kMeasuredStages.end());
  return out;
}

Result<std::vector<std::shared_ptr<const SearchModel>>> read_models(
    const std::vector<std::string>& files) {
  std::vector<std::shared_ptr<const SearchModel>> out;
  for (const std::string& file : files) {
    HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(file));
    for (;;) {
      HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader.next());
      if (!hmm) break;
      out.push_back(make_search_model(std::move(*hmm)));
    }
  }
  if (out.empty()) return fail(ErrorCode::kInput, "no models in the files", "--models");
  std::ranges::stable_sort(out, {}, [](const auto& model) { return model->hmm.M; });
  return out;
}

Result<bench::Sequences> read_targets(const std::vector<std::string>& files) {
  bench::Sequences out;
  for (const std::string& file : files) {
    HMMJIT_ASSIGN(SequenceReader reader,
                  SequenceReader::open(file, SequenceFormatOptions{amino_alphabet()}));
    for (;;) {
      TargetBlock block;
      constexpr std::uint64_t kBlockResidues = std::uint64_t{1} << 22;
      HMMJIT_ASSIGN(const bool more, reader.read_block(block, kBlockResidues));
      if (!more) break;
      for (std::size_t i = 0; i < block.size(); ++i) {
        const auto residues = block[i].residues;
        out.emplace_back(residues.begin(), residues.end());
      }
    }
  }
  if (out.empty()) return fail(ErrorCode::kInput, "no targets in the files", "--targets");
  return out;
}

Result<BenchRequest> make_request(const ParsedOptions& options) {
  BenchRequest request;
  request.models = options.list("--models");
  std::ranges::copy(options.arguments(), std::back_inserter(request.models));
  request.targets = options.list("--targets");
  HMMJIT_ASSIGN(request.stages, parse_stages(options.list("--stage")));
  if (request.models.empty())
    return fail(ErrorCode::kUsage, "no models", "--models", "give --models FILE");
  if (request.targets.empty())
    return fail(ErrorCode::kUsage, "no targets", "--targets", "give --targets FILE");
  HMMJIT_ASSIGN(request.settings.residues, parse_count(std::string(options.text("--residues"))));
  request.settings.distinct = static_cast<std::size_t>(options.integer("--distinct"));
  request.settings.repeats = options.integer("--repeats");
  request.settings.seconds = options.real("--seconds");
  request.settings.threads = options.integer("--cpu");
  HMMJIT_ASSIGN(request.device, gpu_ordinal(options.text("--device"), "--device"));
  request.candidates = static_cast<std::size_t>(options.integer("--candidates"));
  request.json = options.is_set("--json");
  return request;
}

/// The inputs of a measurement, opened in an order in which failures cost least.
struct Setup {
  std::vector<std::shared_ptr<const SearchModel>> models;
  std::unique_ptr<gpu::KernelSource> kernels;
  std::unique_ptr<bench::Bench> bench;
};

Result<Setup> set_up(const BenchRequest& request, const cache::Settings& cache_settings,
                     const char* command) {
  Setup out;
  bench::Settings settings = request.settings;
  settings.on_progress = [command](const std::string& text) {
    diagnose("hmmjit {}: {}\n", command, text);
  };
  const auto driver = driver::Driver::open();
  HMMJIT_TRY(driver->require());
  HMMJIT_ASSIGN(out.models, read_models(request.models));
  HMMJIT_ASSIGN(const bench::Sequences sequences, read_targets(request.targets));
  compile::ProviderSettings provider;
  HMMJIT_ASSIGN(out.kernels,
                gpu::open_kernel_source(driver->report().version / 1000, std::move(provider),
                                        cache::KernelCache::open(cache_settings)));
  HMMJIT_ASSIGN(out.bench, bench::Bench::create(driver, request.device, *out.kernels, sequences,
                                                std::move(settings)));
  return out;
}

/// The candidates to measure for one model and stage.
struct Choice {
  plan::Plan plan;
  plan::Candidate candidate;
};

std::vector<Choice> choices_for(const BenchRequest& request, Stage stage, const SearchModel& model,
                                const plan::DeviceTraits& device, MeasurementTables& tables) {
  std::vector<Choice> out;
  // Without names, the policy chooses. "all" and --paper: every variant of the stage.
  std::vector<std::string> variants = request.variants;
  if (request.paper || std::ranges::find(variants, "all") != variants.end()) {
    variants.clear();
    for (const plan::KernelVariant& v : plan::variants_of(stage)) variants.emplace_back(v.name);
  } else if (variants.empty()) {
    variants.emplace_back();
  }
  for (const std::string& variant : variants) {
    plan::PlanOptions options;
    options.variant = variant;
    options.policy = request.policy;
    options.exact_length = request.exact_length;
    const auto known = plan::variants_of(stage);
    if (!variant.empty() &&
        std::ranges::find(known, variant, &plan::KernelVariant::name) == known.end()) {
      continue;  // a variant of another stage
    }
    const auto planned = plan::make_plan(stage, model.hmm.M, model.bytes.Kp, device, options);
    if (!planned) {
      tables.add_refusal(planned.error().to_string());
      continue;
    }
    std::size_t taken = 0;
    std::set<std::string_view> placements;
    for (const plan::Candidate& c : bench::candidates_of(*planned)) {
      if (!variant.empty() && c.variant->name != variant) continue;
      // The papers compare places of a table: takes one candidate per place.
      const std::string_view place = c.expected.placement;
      const bool other_place =
          request.paper && !place.empty() && placements.insert(place).second && taken > 0;
      if (taken++ < request.candidates || other_place) out.push_back({*planned, c});
    }
  }
  return out;
}

/// The kernel that all models of a run could share: with the longest model's constants.
std::optional<Choice> generic_choice(Stage stage, const SearchModel& longest,
                                     const plan::DeviceTraits& device) {
  const auto wide = plan::make_plan(stage, longest.hmm.M, longest.bytes.Kp, device);
  if (!wide) return std::nullopt;
  return Choice{*wide, wide->chosen};
}

Result<int> run_bench(const ParsedOptions& options) {
  HMMJIT_ASSIGN(BenchRequest request, make_request(options));
  request.variants = options.list("--variant");
  for (const std::string& name : request.variants)
    if (name != "all") HMMJIT_TRY(plan::check_variant(name, "--variant"));
  request.policy = *plan::find_policy(options.text("--policy"));
  request.exact_length = options.is_set("--exact-length");
  request.paper = options.is_set("--paper");
  HMMJIT_ASSIGN(const cache::Settings settings, cache_settings(options, "bench"));
  HMMJIT_ASSIGN(const Setup setup, set_up(request, settings, "bench"));
  bench::Bench& bench = *setup.bench;
  MeasurementTables tables(bench, !request.json);
  // Requests all kernels first: they compile in parallel during the first measurements.
  std::map<std::pair<std::size_t, Stage>, std::vector<Choice>> choices;
  for (std::size_t i = 0; i < setup.models.size(); ++i) {
    const SearchModel& model = *setup.models[i];
    for (const Stage stage : request.stages) {
      std::vector<Choice> found = choices_for(request, stage, model, bench.device(), tables);
      for (const Choice& c : found) bench.prepare(c.plan, c.candidate);
      if (request.paper && !found.empty()) {
        if (const auto wide = generic_choice(stage, *setup.models.back(), bench.device()))
          bench.prepare(wide->plan, wide->candidate);
      }
      choices.emplace(std::pair{i, stage}, std::move(found));
    }
  }
  for (std::size_t i = 0; i < setup.models.size(); ++i) {
    bench.use_model(setup.models[i]);
    for (const Stage stage : request.stages) {
      const auto& wanted = choices.at({i, stage});
      for (const Choice& c : wanted) {
        HMMJIT_ASSIGN(const Measurement measured, bench.measure(c.plan, c.candidate));
        tables.add(measured);
      }
      if (!request.paper || wanted.empty()) continue;
      if (const auto wide = generic_choice(stage, *setup.models.back(), bench.device())) {
        HMMJIT_ASSIGN(const Measurement measured, bench.measure(wide->plan, wide->candidate));
        tables.add_generic(measured);
      }
      constexpr double kSecondsOfOneCore = 0.2;
      tables.add_one_core(stage, setup.models[i]->hmm.M,
                          bench.oracle().one_core_gcups(stage, kSecondsOfOneCore));
    }
  }
  if (request.json) {
    fmt::print("{}\n", tables.json());
  } else {
    fmt::print("{}", tables.summary());
    if (request.paper) fmt::print("{}", tables.paper());
  }
  if (tables.wrong() > 0) return static_cast<int>(ErrorCode::kInternal);
  if (tables.measured() == 0) return fail(ErrorCode::kCompile, "no kernel could be measured");
  return tables.failed() > 0 ? static_cast<int>(ErrorCode::kCompile) : 0;
}

Result<int> run_tune(const ParsedOptions& options) {
  HMMJIT_ASSIGN(const cache::Settings settings, cache_settings(options, "tune"));
  HMMJIT_ASSIGN(const auto templates, render::TemplateLibrary::from_environment());
  const std::string catalogue = compile::catalogue_version(templates);
  const std::string path = compile::tuning_path(settings);
  if (options.is_set("--clear")) {
    HMMJIT_ASSIGN(const bool cleared, compile::clear_tuning(settings));
    fmt::print("{}: {}\n", path, cleared ? "removed" : "nothing to remove");
    return 0;
  }
  compile::LoadedTuning kept = compile::load_tuning(settings, catalogue);
  if (options.is_set("--show")) {
    const std::string text = kept.table.text();
    fmt::print("{}", text);
    if (text.empty())
      diagnose("hmmjit tune: nothing is measured yet; {}\n",
               path.empty() ? "the kernel cache is off or has no folder"
                            : "it would be kept in " + path);
    if (kept.skipped > 0)
      diagnose("hmmjit tune: {} lines of other kernel versions are not used\n", kept.skipped);
    return 0;
  }
  HMMJIT_ASSIGN(const BenchRequest request, make_request(options));
  if (!options.is_set("--dry-run")) HMMJIT_TRY(compile::prepare_tuning(settings));
  HMMJIT_ASSIGN(const Setup setup, set_up(request, settings, "tune"));
  bench::Bench& bench = *setup.bench;
  MeasurementTables tables(bench, !request.json);
  std::set<std::pair<Stage, int>> done;
  std::size_t chosen = 0;
  for (const auto& model : setup.models) {
    bench.use_model(model);
    // The plans for the length classes in which a search shares kernels.
    const std::vector<plan::Plan> plans =
        gpu::search_plans(model->hmm.M, model->bytes.Kp, bench.device(), nullptr);
    for (const Stage stage : request.stages) {
      const auto plan = std::ranges::find(plans, stage, &plan::Plan::stage);
      if (plan == plans.end()) {
        tables.add_refusal(
            fmt::format("{}: no kernel for {} positions", plan::stage_name(stage), model->hmm.M));
        continue;
      }
      if (!done.emplace(stage, plan->class_length).second) continue;
      const auto tuned = bench::tune(bench, *plan, catalogue, request.candidates);
      if (!tuned) {
        if (tuned.error().code != ErrorCode::kCompile) return std::unexpected(tuned.error());
        tables.add_refusal(tuned.error().to_string());
        continue;
      }
      for (const Measurement& m : tuned->measurements) tables.add(m);
      if (!tuned->choice) continue;
      const plan::TunedChoice& choice = *tuned->choice;
      if (!request.json) {
        fmt::print("  -> {} {} up to {}: {} ({}), {:.0f} GCUPS, {:+.1f} %\n", choice.device,
                   plan::stage_name(stage), choice.class_length, choice.variant,
                   bench::constants_text(choice.constants), choice.gcups,
                   choice.planned_gcups > 0 ? 100 * (choice.gcups / choice.planned_gcups - 1) : 0);
        std::fflush(stdout);
      }
      kept.table.add(choice);
      ++chosen;
    }
  }
  if (request.json) fmt::print("{}\n", tables.json());
  if (tables.wrong() > 0) {
    diagnose("hmmjit tune: {} wrong answers; nothing is kept\n", tables.wrong());
    return static_cast<int>(ErrorCode::kInternal);
  }
  if (chosen == 0) return fail(ErrorCode::kCompile, "no kernel could be measured");
  if (options.is_set("--dry-run")) return 0;
  HMMJIT_TRY(compile::store_tuning(settings, kept.table));
  diagnose("hmmjit tune: {} choices kept in {}\n", chosen, path);
  return 0;
}

// The options of both commands: shared ones, `own` ones, and those of the cache.
std::vector<OptionSpec> all_options(std::initializer_list<OptionSpec> own) {
  std::vector<OptionSpec> all = {
      help_option(),
      {kPlain, "--models,-m", "@f", "profile HMM file; may be repeated", kSeveral},
      {kPlain, "--targets,-t", "@f", "sequence file; may be repeated", kSeveral},
      {kPlain, "--stage", "s", "ssv, msv, bias, viterbi, forward; default: all",
       list_of("ssv,msv,bias,viterbi,forward")},
      {kPlain, "--residues", "count=0",
       "repeat the targets until there are so many residues, as in 200M; 0: one copy"},
      {kPlain, "--distinct", "n=0 n>=0",
       "at most <n> distinct targets: an even selection, and each of them reversed; 0: all"},
      {kPlain, "--repeats", "n=3 n>0", "timed launches, of which the median counts"},
      {kPlain, "--seconds", "x=0.5 x>0",
       "kernels predicted to take longer are measured on a sample"},
      {kPlain, "--device", "s=gpu:0", "the GPU: gpu or gpu:N", offering("gpu")},
      {kPlain, "--cpu", "n=0 n>=0", "threads of the CPU filters; 0: all cores"},
      kPrintJson};
  all.insert(all.end(), own);
  return with_cache_options(std::move(all));
}

}  // namespace

CommandSpec bench_command() {
  return {
      "bench",
      "check and time the filter kernels on the GPU of this machine",
      {{"files", "profile HMM files, as with --models", false, true}},
      all_options(
          {{kPlain, "--variant", "s",
            "these kernel variants, or all; default: the planner's choice", kListed},
           {kPlain, "--policy", "s=default", "default or cudampfpp", one_of("default,cudampfpp")},
           {kPlain, "--candidates", "n=1 n>0", "configurations of each variant"},
           {kPlain, "--exact-length", "",
            "kernels for the model's own length instead of its size class"},
           {kPlain, "--paper", "",
            "all variants, and the tables of the CUDAMPF papers: GCUPS over model length, "
            "run-time constants against one kernel for all, where tables lie, one CPU core"}}),
      run_bench};
}

CommandSpec tune_command() {
  return {"tune",
          "measure the planner's candidates on this GPU and keep the fastest",
          {{"files", "profile HMM files, as with --models", false, true}},
          all_options({{kPlain, "--candidates", "n=4 n>0", "configurations of each variant"},
                       {kPlain, "--dry-run", "", "measure and print, keep nothing"},
                       {kPlain, "--show", "", "print what is kept"},
                       {kPlain, "--clear", "", "forget what is kept"}}),
          run_tune};
}

}  // namespace hmmjit::tools
