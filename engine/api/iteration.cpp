// Searches in rounds for host programs.
#include "hmmjit/iteration.hpp"

#include <algorithm>
#include <utility>

#include "api/build.hpp"
#include "api/defaults.hpp"
#include "api/handles.hpp"
#include "api/inputs.hpp"
#include "api/iteration.hpp"
#include "api/results.hpp"
#include "api/structs.hpp"
#include "build/sequence_model.hpp"
#include "core/memory.hpp"
#include "report/report_header.hpp"
#include "search/kept_targets.hpp"
#include "search/search.hpp"

namespace hmmjit::v0 {
namespace {

// Ends a round of query `number`.
Status finish_round(IterativeSearch::Impl& state, std::size_t number,
                    const hmmjit::ModelResult& given) {
  IterativeSearch::Impl::Query& query = state.queries[number];
  QueryRounds& rounds = *query.rounds;
  build::BuiltModel model = rounds.model();
  model.hmm.calibration = given.calibration;
  model.hmm.needs_calibration = false;
  const QueryNames names = rounds.names();
  Model made = make_model(std::move(model), names);
  HMMJIT_TRY(rounds.finish_round(given));
  if (const auto& error = rounds.error()) return std::unexpected(*error);
  hmmjit::ModelResult numbered = given;
  numbered.index = number;
  query.result = make_result(std::move(numbered));
  QueryRounds::Checkpoint checkpoint = rounds.take_checkpoint();
  const hmmjit_round_info info{.size = sizeof info,
                               .query = number,
                               .number = static_cast<int>(rounds.checkpoints().size()),
                               .converged = rounds.converged(),
                               .last = rounds.done(),
                               .reserved = 0,
                               .included = checkpoint.rows,
                               .new_targets = checkpoint.new_targets};
  state.finished.push_back(
      {info, *query.result, std::move(made), std::move(checkpoint.alignment.text)});
  return {};
}

// The targets from the first one on. Keeps targets of a file between rounds.
TargetSource& targets_of_round(IterativeSearch::Impl& state) {
  const bool in_file = !state.targets.impl()->path.empty() && !state.targets.impl()->source;
  if (in_file && state.kept != nullptr) {
    check(state.kept->rewind());
    return *state.kept;
  }
  state.kept = value(open_targets(state.targets.impl(), amino_alphabet()));
  if (!in_file) return *state.kept;
  const std::uint64_t bound = value(grant_memory(state.search.memory, 1)).bound;
  state.kept = keep_targets(std::move(state.kept), bound / 3);
  return *state.kept;
}

}  // namespace

IterationOptions::IterationOptions() noexcept
    : hmmjit_iteration_options(hmmjit_defaults::kIterationOptions) {}

IterativeSearch::IterativeSearch(const Targets& targets, const hmmjit_iteration_options& options)
    : SharedHandle(guarded([&] { return std::make_shared<Impl>(); })) {
  guarded([&] {
    const hmmjit_search_options search = read(options.search, SearchOptions(Program::kJackhmmer));
    const hmmjit_build_options build = read(options.build, BuildOptions());
    const std::string alignment_file = text_of(options.alignment_file);
    require(options.rounds > 0, "rounds", "1 or more");
    require(options.text_width == 0 || options.text_width >= kNarrowestText, "text_width",
            "120 columns or more, or 0 for no limit");
    require(search.cutoffs == HMMJIT_CUT_NONE, "cutoffs",
            "none: models of sequences have no cutoffs");
    require(text_of(search.first_target).empty() && search.target_count == -1,
            "first_target, target_count", "none: every round searches all targets");
    check_options(search);
    check_options(build);
    Impl& state = *impl_;
    static_cast<hmmjit_search_options&>(state.search) = search;
    state.search.cutoff_table = nullptr;
    state.search.cutoff_count = 0;
    state.search.first_target = nullptr;
    if (search.cache != nullptr)
      state.search.cache = state.cache.emplace(search.cache->value).c_handle();
    state.gpus.assign(search.gpus, search.gpus + search.gpu_count);
    state.search.gpus = state.gpus.data();
    state.targets = targets;
    state.calibration = to_calibration(build);
    const bool alignments = search.keep_alignments != 0 || options.rounds > 1;
    state.search.keep_alignments = alignments;
    RoundOptions& rounds = state.options;
    rounds.rounds = options.rounds;
    rounds.alignment = to_alignment_options(build);
    rounds.alignment.columns = build::AlignmentOptions::Columns::kReference;
    rounds.output.report = {.prefer_accession = options.prefer_accession != 0,
                            .alignments = options.alignments != 0 && search.keep_alignments != 0,
                            .text_width = options.text_width};
    rounds.output.filters = to_options(search).filters;
    rounds.output.author = "libhmmjit " HMMJIT_VERSION;
    rounds.program = "libhmmjit " HMMJIT_VERSION;
    rounds.alignment_path = alignment_file;
    if (options.a3m != 0) rounds.tables.insert(OutputKind::kA3m);
    rounds.alignment_checkpoints = alignments;
    require(alignments || (options.a3m == 0 && alignment_file.empty()), "keep_alignments",
            "true where alignments are wanted");
  });
}
IterativeSearch::IterativeSearch(const Targets& queries, const Targets& targets,
                                 const hmmjit_iteration_options& options)
    : IterativeSearch(targets, options) {
  guarded([&] {
    const build::ScoreSystem system =
        to_score_system(read(options.build, BuildOptions()), amino_alphabet());
    for_each_query(queries, amino_alphabet(), [&](const TargetView& sequence) {
      impl_->queries.push_back(
          {std::make_unique<QueryRounds>(
               impl_->options, names_of(sequence), sequence.residues,
               build::build_from_sequence(system, std::string(sequence.name), sequence.residues),
               impl_->queries.size()),
           {}});
    });
  });
}
IterativeSearch::IterativeSearch(const Models& queries, const Targets& targets,
                                 const hmmjit_iteration_options& options)
    : IterativeSearch(targets, options) {
  queries.for_each([&](const Model& model) {
    guarded([&] {
      const build::BuiltModel& built = model.impl()->built;
      const Hmm& hmm = built.hmm;
      if (hmm.alphabet->type != AlphabetType::kAmino)
        throw Error(ErrorCode::kInput, "rounds begin with models of proteins only",
                    "model " + hmm.name);
      const QueryNames names{hmm.name, hmm.accession, hmm.description};
      impl_->queries.push_back(
          {std::make_unique<QueryRounds>(impl_->options, names, std::span<const Residue>(), built,
                                         impl_->queries.size()),
           {}});
    });
    return true;
  });
}

std::size_t IterativeSearch::queries() const { return impl_->queries.size(); }
bool IterativeSearch::done() const {
  return impl_->finished.empty() &&
         std::ranges::all_of(impl_->queries, [](const auto& q) { return q.rounds->done(); });
}

std::vector<Round> IterativeSearch::next(const SearchCallbacks& callbacks) {
  HostCalls host;
  return guarded(host, [&] {
    Impl& state = *impl_;
    std::vector<std::size_t> active;
    Models models;
    for (std::size_t i = 0; i < state.queries.size(); ++i) {
      if (state.queries[i].rounds->done()) continue;
      // First returns rounds that finished before a failed call.
      if (std::ranges::any_of(state.finished, [&](const Round& r) { return r.query == i; }))
        continue;
      active.push_back(i);
      models.add(make_model(state.queries[i].rounds->model()));
    }
    if (!active.empty()) {
      FunctionSink sink([&](const hmmjit::ModelResult& given) {
        return finish_round(state, active[given.index], given);
      });
      hmmjit::Session& session = session_of(state.targets, state.search, state.session);
      run_search(session, {}, models, state.targets, state.search, callbacks, host, false,
                 [&](hmmjit::SearchOptions options, const hmmjit::Alphabet&, const ModelSource&,
                     SearchProgress& progress) {
                   options.calibration = state.calibration;
                   const auto next =
                       [&, i = std::size_t{0}]() mutable -> Result<std::optional<hmmjit::Query>> {
                     if (i == active.size()) return std::nullopt;
                     return state.queries[active[i++]].rounds->query();
                   };
                   return session.search(options, next, targets_of_round(state), sink, progress);
                 });
    }
    std::ranges::stable_sort(state.finished, {}, &Round::query);
    return std::exchange(state.finished, {});
  });
}

}  // namespace hmmjit::v0
