// `hmmjit bench`: exactness and speed of the filter kernels on the GPU of this machine; `hmmjit
// tune`: which of the planner's candidates are the fastest there, kept for later searches.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "bench/bench.hpp"
#include "bench/tune.hpp"
#include "compile/tuning_store.hpp"
#include "core/diagnostics.hpp"
#include "core/numbers.hpp"
#include "core/output_file.hpp"
#include "hmmjit/command_cache.hpp"
#include "hmmjit/command_line.hpp"
#include "hmmjit/measurement_tables.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"

namespace hmmjit::tools {
namespace {

using bench::Measurement;
using plan::Stage;

constexpr std::array kMeasuredStages{Stage::kSsv, Stage::kMsv, Stage::kBias, Stage::kViterbi,
                                     Stage::kForward};

struct BenchArguments {
  std::vector<std::string> models, targets, stages, variants;
  std::string residues = "0", output, policy = "default";
  std::size_t distinct = 0, candidates = 1;
  int repeats = 3, device = 0, threads = 0;
  double seconds = 0.5;
  bool json = false, paper = false, exact_length = false;
  bool clear = false, show = false, dry_run = false;  // tune
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
  if (out.empty()) return fail(ErrorCode::kUsage, "no models", "--models", "give --models FILE");
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
  if (out.empty()) return fail(ErrorCode::kUsage, "no targets", "--targets", "give --targets FILE");
  return out;
}

/// Everything a measurement needs, opened in the order in which failures are cheapest.
struct Setup {
  std::vector<Stage> stages;
  std::vector<std::shared_ptr<const SearchModel>> models;
  std::unique_ptr<gpu::KernelSource> kernels;
  std::unique_ptr<bench::Bench> bench;
};

Result<Setup> set_up(const BenchArguments& arguments, const cache::Settings& cache_settings,
                     const char* command) {
  Setup out;
  HMMJIT_ASSIGN(out.stages, parse_stages(arguments.stages));
  bench::Settings settings;
  HMMJIT_ASSIGN(settings.residues, parse_count(arguments.residues));
  settings.distinct = arguments.distinct;
  settings.repeats = arguments.repeats;
  settings.seconds = arguments.seconds;
  settings.threads = arguments.threads;
  settings.on_progress = [command](const std::string& text) {
    diagnose("hmmjit {}: {}\n", command, text);
  };
  const auto driver = driver::Driver::open();
  HMMJIT_TRY(driver->require());
  HMMJIT_ASSIGN(out.models, read_models(arguments.models));
  HMMJIT_ASSIGN(const bench::Sequences sequences, read_targets(arguments.targets));
  compile::ProviderSettings provider;
  HMMJIT_ASSIGN(out.kernels,
                gpu::open_kernel_source(driver->report().version / 1000, std::move(provider),
                                        cache::KernelCache::open(cache_settings)));
  HMMJIT_ASSIGN(out.bench, bench::Bench::create(driver, arguments.device, *out.kernels, sequences,
                                                std::move(settings)));
  return out;
}

void add_common_options(CLI::App& app, BenchArguments& given) {
  app.add_option("-m,--models,files", given.models, "profile HMM file(s)");
  app.add_option("-t,--targets", given.targets, "sequence file(s)");
  app.add_option("--stage", given.stages, "ssv, msv, bias, viterbi, forward [all]");
  app.add_option("--residues", given.residues,
                 "copies of the targets until there are so many, as in 200M [one copy]");
  app.add_option("--distinct", given.distinct,
                 "at most so many distinct targets, evenly chosen; each is reversed as well [all]");
  app.add_option("--repeats", given.repeats, "timed launches, of which the median counts [3]")
      ->check(CLI::Range(1, 1000));
  app.add_option("--seconds", given.seconds,
                 "kernels predicted to take longer are measured on a sample [0.5]")
      ->check(CLI::PositiveNumber);
  app.add_option("--device", given.device, "ordinal of the GPU [0]")->check(CLI::NonNegativeNumber);
  app.add_option("--threads", given.threads, "threads of the CPU filters [all cores]")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--json", given.json, "machine-readable output");
}

/// What is measured of one model and stage.
struct Choice {
  plan::Plan plan;
  plan::Candidate candidate;
};

Result<std::vector<Choice>> choices_for(const BenchArguments& arguments, Stage stage,
                                        const SearchModel& model, const plan::DeviceTraits& device,
                                        std::vector<std::string>& refusals) {
  std::vector<Choice> out;
  const auto policy = plan::find_policy(arguments.policy);
  if (!policy) {
    return fail(ErrorCode::kUsage, fmt::format("no policy \"{}\"", arguments.policy), "--policy",
                "policies: default, cudampfpp");
  }
  // Without names: what the policy chooses. "all" or --paper: every variant of the stage.
  std::vector<std::string> variants = arguments.variants;
  if (arguments.paper || std::ranges::find(variants, "all") != variants.end()) {
    variants.clear();
    for (const plan::KernelVariant& v : plan::variants_of(stage)) variants.emplace_back(v.name);
  } else if (variants.empty()) {
    variants.emplace_back();
  }
  for (const std::string& variant : variants) {
    plan::PlanOptions options;
    options.variant = variant;
    options.policy = *policy;
    options.exact_length = arguments.exact_length;
    const auto known = plan::variants_of(stage);
    if (!variant.empty() &&
        std::ranges::find(known, variant, &plan::KernelVariant::name) == known.end()) {
      continue;  // a variant of another stage
    }
    const auto planned = plan::make_plan(stage, model.hmm.M, model.bytes.Kp, device, options);
    if (!planned) {
      refusals.push_back(planned.error().to_string());
      continue;
    }
    std::size_t taken = 0;
    std::set<std::string_view> placements;
    for (const plan::Candidate& c : bench::candidates_of(*planned)) {
      if (!variant.empty() && c.variant->name != variant) continue;
      // The papers compare where a table lies: one candidate for each place.
      const std::string_view place = c.expected.placement;
      const bool other_place =
          arguments.paper && !place.empty() && placements.insert(place).second && taken > 0;
      if (taken++ < arguments.candidates || other_place) out.push_back({*planned, c});
    }
  }
  return out;
}

/// The kernel that every model of a run could share: constants of the longest.
Result<std::optional<Choice>> generic_choice(Stage stage, const SearchModel& model,
                                             const SearchModel& longest,
                                             const plan::DeviceTraits& device) {
  HMMJIT_ASSIGN(const plan::Plan own, plan::make_plan(stage, model.hmm.M, model.bytes.Kp, device));
  const auto wide = plan::make_plan(stage, longest.hmm.M, longest.bytes.Kp, device);
  if (!wide) return std::nullopt;
  Choice out{own, wide->chosen};
  out.candidate.predicted_gcups *= static_cast<double>(model.hmm.M) / longest.hmm.M;
  return out;
}

int run_bench(const BenchArguments& arguments, const cache::Settings& cache_settings) {
  auto setup = set_up(arguments, cache_settings, "bench");
  if (!setup) return report_failure("bench", setup.error());
  bench::Bench& bench = *setup->bench;
  MeasurementTables tables(bench);
  if (!arguments.json) fmt::print("{}", tables.heading());
  // All kernels are asked for first: they compile side by side while the first are measured.
  std::map<std::pair<std::size_t, Stage>, std::vector<Choice>> choices;
  std::map<std::pair<std::size_t, Stage>, Choice> generic;
  for (std::size_t i = 0; i < setup->models.size(); ++i) {
    const SearchModel& model = *setup->models[i];
    for (const Stage stage : setup->stages) {
      std::vector<std::string> refusals;
      auto found = choices_for(arguments, stage, model, bench.device(), refusals);
      if (!found) return report_failure("bench", found.error());
      for (const std::string& refusal : refusals) tables.add_refusal(refusal);
      for (const Choice& c : *found) bench.prepare(c.plan, c.candidate);
      if (arguments.paper && !found->empty()) {
        auto wide = generic_choice(stage, model, *setup->models.back(), bench.device());
        if (!wide) return report_failure("bench", wide.error());
        if (*wide) {
          bench.prepare((*wide)->plan, (*wide)->candidate);
          generic.emplace(std::pair{i, stage}, std::move(**wide));
        }
      }
      choices.emplace(std::pair{i, stage}, std::move(*found));
    }
  }
  for (std::size_t i = 0; i < setup->models.size(); ++i) {
    bench.use_model(setup->models[i]);
    for (const Stage stage : setup->stages) {
      const auto& wanted = choices.at({i, stage});
      for (const Choice& c : wanted) {
        const auto measured = bench.measure(c.plan, c.candidate);
        if (!measured) return report_failure("bench", measured.error());
        tables.add(*measured);
        if (!arguments.json) {
          fmt::print("{}", MeasurementTables::row(*measured));
          std::fflush(stdout);
        }
      }
      if (!arguments.paper || wanted.empty()) continue;
      if (const auto wide = generic.find({i, stage}); wide != generic.end()) {
        const auto measured = bench.measure(wide->second.plan, wide->second.candidate);
        if (!measured) return report_failure("bench", measured.error());
        tables.add_generic(*measured);
      }
      constexpr double kSecondsOfOneCore = 0.2;
      tables.add_one_core(stage, setup->models[i]->hmm.M,
                          bench.oracle().one_core_gcups(stage, kSecondsOfOneCore));
    }
  }
  if (arguments.json) {
    fmt::print("{}\n", tables.json());
  } else {
    fmt::print("{}", tables.summary());
    if (arguments.paper) fmt::print("{}", tables.paper());
  }
  if (tables.wrong() > 0) return static_cast<int>(ErrorCode::kInternal);
  return tables.measured() == 0 || tables.failed() > 0 ? static_cast<int>(ErrorCode::kCompile) : 0;
}

int run_tune(const BenchArguments& arguments, const cache::Settings& cache_settings) {
  const auto templates = render::TemplateLibrary::from_environment();
  if (!templates) return report_failure("tune", templates.error());
  const std::string catalogue = compile::catalogue_version(*templates);
  if (arguments.clear) {
    const auto cleared = compile::clear_tuning(cache_settings);
    if (!cleared) return report_failure("tune", cleared.error());
    fmt::print("{}: {}\n", compile::tuning_path(cache_settings),
               *cleared ? "removed" : "nothing to remove");
    return 0;
  }
  compile::LoadedTuning kept = compile::load_tuning(cache_settings, catalogue);
  if (arguments.show) {
    fmt::print("{}", kept.table.text());
    if (kept.skipped > 0) {
      diagnose("hmmjit tune: {} lines of other kernel versions are not used\n", kept.skipped);
    }
    return 0;
  }
  auto setup = set_up(arguments, cache_settings, "tune");
  if (!setup) return report_failure("tune", setup.error());
  bench::Bench& bench = *setup->bench;
  MeasurementTables tables(bench);
  if (!arguments.json) fmt::print("{}", tables.heading());
  std::set<std::pair<Stage, int>> done;
  std::size_t chosen = 0;
  for (const auto& model : setup->models) {
    bench.use_model(model);
    for (const Stage stage : setup->stages) {
      if (!done.emplace(stage, plan::class_length(model->hmm.M)).second) continue;
      const auto tuned = bench::tune(bench, *model, stage, catalogue, arguments.candidates);
      if (!tuned) {
        if (tuned.error().code != ErrorCode::kCompile) return report_failure("tune", tuned.error());
        tables.add_refusal(tuned.error().to_string());
        continue;
      }
      for (const Measurement& m : tuned->measurements) {
        tables.add(m);
        if (!arguments.json) fmt::print("{}", MeasurementTables::row(m));
      }
      if (!tuned->choice) continue;
      const plan::TunedChoice& choice = *tuned->choice;
      if (!arguments.json) {
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
  if (arguments.json) fmt::print("{}\n", tables.json());
  if (tables.wrong() > 0) {
    diagnose("hmmjit tune: {} wrong answers; nothing is kept\n", tables.wrong());
    return static_cast<int>(ErrorCode::kInternal);
  }
  if (chosen == 0) {
    return report_failure("tune", Error{ErrorCode::kCompile, "no kernel could be measured", "", ""});
  }
  if (arguments.dry_run) return 0;
  if (const Status stored = compile::store_tuning(cache_settings, kept.table); !stored) {
    return report_failure("tune", stored.error());
  }
  diagnose("hmmjit tune: {} choices kept in {}\n", chosen, compile::tuning_path(cache_settings));
  return 0;
}

int parse_and_run(CLI::App& app, CacheOptions& cache_options,
                  const std::vector<std::string>& arguments, const char* command,
                  const std::function<int(const cache::Settings&)>& run) {
  if (const auto status = parse_command_line(app, arguments)) return *status;
  auto settings = cache_options.settings();
  if (!settings) return report_failure(command, settings.error());
  settings->on_warning = [command](const Error& warning) {
    diagnose("hmmjit {}: warning: {}\n", command, warning.to_string());
  };
  return run(*settings);
}

}  // namespace

int command_bench(const std::vector<std::string>& arguments) {
  BenchArguments given;
  CLI::App app{
      "Checks every score of the GPU's filter kernels against the CPU filters, then times "
      "them.",
      "hmmjit bench"};
  add_common_options(app, given);
  app.add_option("--variant", given.variants,
                 "these kernel variants, or all [the planner's choice]");
  app.add_option("--policy", given.policy, "default or cudampfpp [default]");
  app.add_option("--candidates", given.candidates, "configurations of each variant [1]")
      ->check(CLI::PositiveNumber);
  app.add_flag("--exact-length", given.exact_length,
               "kernels for the model's own length instead of its size class");
  app.add_flag("--paper", given.paper,
               "all variants, and the tables of the CUDAMPF papers: GCUPS over model length, "
               "run-time constants against one kernel for all, where tables lie, one CPU core");
  CacheOptions cache_options;
  cache_options.add_to(app);
  return parse_and_run(app, cache_options, arguments, "bench",
                       [&](const cache::Settings& s) { return run_bench(given, s); });
}

int command_tune(const std::vector<std::string>& arguments) {
  BenchArguments given;
  given.candidates = 4;
  CLI::App app{
      "Measures the planner's candidates for given models on the GPU of this machine and "
      "keeps the fastest exact ones for later plans.",
      "hmmjit tune"};
  add_common_options(app, given);
  app.add_option("--candidates", given.candidates, "configurations of each variant [4]")
      ->check(CLI::PositiveNumber);
  app.add_flag("--dry-run", given.dry_run, "measure and print, keep nothing");
  app.add_flag("--show", given.show, "print what is kept");
  app.add_flag("--clear", given.clear, "forget what is kept");
  CacheOptions cache_options;
  cache_options.add_to(app);
  return parse_and_run(app, cache_options, arguments, "tune",
                       [&](const cache::Settings& s) { return run_tune(given, s); });
}

}  // namespace hmmjit::tools
