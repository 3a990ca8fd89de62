// Searches in rounds for host programs.
#include "hmmjit/iteration.hpp"

#include <algorithm>
#include <utility>

#include "api/build.hpp"
#include "api/handles.hpp"
#include "api/inputs.hpp"
#include "api/iteration.hpp"
#include "api/results.hpp"
#include "build/sequence_model.hpp"
#include "core/memory.hpp"
#include "report/report_header.hpp"
#include "search/kept_targets.hpp"
#include "search/search.hpp"

namespace hmmjit::v0 {
namespace {

// One round of all active queries.
class RoundHook final : public SearchHook, public ResultSink {
 public:
  RoundHook(IterativeSearch::Impl& state, std::vector<std::size_t> active)
      : state_(state), active_(std::move(active)) {}

  void begin(hmmjit::SearchOptions& options, const hmmjit::Alphabet&, ModelSource) override {
    options.calibration = state_.calibration;
  }
  ModelSource models() override {
    return [this, next = std::size_t{0}]() mutable -> Result<std::optional<hmmjit::Query>> {
      if (next == active_.size()) return std::nullopt;
      return state_.queries[active_[next++]].rounds->query();
    };
  }
  std::shared_ptr<TargetSource> targets() override {
    if (state_.kept != nullptr) return state_.kept;
    return value(open_targets(state_.targets.impl(), amino_alphabet()));
  }
  ResultSink& sink() override { return *this; }

  Status receive(const hmmjit::ModelResult& given) override {
    const std::size_t number = active_[given.index];
    IterativeSearch::Impl::Query& query = state_.queries[number];
    QueryRounds& rounds = *query.rounds;
    build::BuiltModel model = rounds.model();
    model.hmm.calibration = given.calibration;
    model.hmm.needs_calibration = false;
    const QueryNames names = rounds.names();
    Model made = make_model(std::move(model), {names.name, names.accession.value_or(""),
                                               names.description.value_or("")});
    HMMJIT_TRY(rounds.finish_round(given));
    if (const auto& error = rounds.error()) return std::unexpected(*error);
    query.result = make_result(given);
    QueryRounds::Checkpoint checkpoint = rounds.take_checkpoint();
    state_.finished.push_back({number, static_cast<int>(rounds.checkpoints().size()), *query.result,
                               std::move(made), std::move(checkpoint.alignment.text),
                               checkpoint.rows, checkpoint.new_targets, rounds.converged(),
                               rounds.done()});
    return {};
  }

 private:
  IterativeSearch::Impl& state_;
  std::vector<std::size_t> active_;
};

}  // namespace

IterativeSearch::IterativeSearch(const Targets& targets, const IterationOptions& options)
    : impl_(guarded([&] { return std::make_shared<Impl>(); })) {
  guarded([&] {
    require(options.rounds > 0, "rounds", "1 or more");
    require(options.text_width == 0 || options.text_width >= kNarrowestText, "text_width",
            "120 columns or more, or 0 for no limit");
    require(options.search.cutoffs == ModelCutoffs::kNone, "cutoffs",
            "none: models of sequences have no cutoffs");
    require(options.search.first_target.empty() && !options.search.target_count,
            "first_target, target_count", "none: every round searches all targets");
    check_options(options.build);
    Impl& state = *impl_;
    state.search = options.search;
    state.targets = targets;
    state.calibration = to_calibration(options.build);
    const bool alignments = options.search.keep_alignments || options.rounds > 1;
    state.search.keep_alignments = alignments;
    RoundOptions& rounds = state.options;
    rounds.rounds = options.rounds;
    rounds.alignment = to_alignment_options(options.build);
    rounds.alignment.columns = build::AlignmentOptions::Columns::kReference;
    rounds.output.report = {.prefer_accession = options.prefer_accession,
                            .alignments = options.alignments && alignments,
                            .text_width = options.text_width};
    rounds.output.filters = to_options(options.search).filters;
    rounds.output.author = "libhmmjit " HMMJIT_VERSION;
    rounds.program = "libhmmjit " HMMJIT_VERSION;
    rounds.alignment_path = options.alignment_file;
    if (options.a3m) rounds.tables.insert(OutputKind::kA3m);
    rounds.alignment_checkpoints = alignments;
    require(alignments || (!options.a3m && options.alignment_file.empty()), "keep_alignments",
            "true where alignments are wanted");
  });
}
IterativeSearch::IterativeSearch(const Targets& queries, const Targets& targets,
                                 const IterationOptions& options)
    : IterativeSearch(targets, options) {
  guarded([&] {
    const build::ScoreSystem system = to_score_system(options.build, amino_alphabet());
    for_each_query(queries, amino_alphabet(), [&](const TargetView& sequence) {
      impl_->queries.push_back(
          {std::make_unique<QueryRounds>(
               impl_->options, names_of(sequence), sequence.residues,
               build::build_from_sequence(system, std::string(sequence.name), sequence.residues)),
           {}});
    });
  });
}
IterativeSearch::IterativeSearch(const Models& queries, const Targets& targets,
                                 const IterationOptions& options)
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
          {std::make_unique<QueryRounds>(impl_->options, names, std::span<const Residue>(), built),
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
      // Rounds that were finished before a call failed are returned first.
      if (std::ranges::any_of(state.finished, [&](const Round& r) { return r.query == i; }))
        continue;
      active.push_back(i);
      models.add(make_model(state.queries[i].rounds->model()));
    }
    if (!active.empty()) {
      if (state.kept != nullptr) {
        check(state.kept->rewind());
      } else if (!state.targets.impl()->path.empty()) {
        const std::uint64_t bound = value(grant_memory(state.search.memory, 1)).bound;
        state.kept =
            keep_targets(value(open_targets(state.targets.impl(), amino_alphabet())), bound / 3);
      }
      RoundHook hook(state, std::move(active));
      search_with(hook, models, state.targets, state.search, callbacks, host);
    }
    std::ranges::stable_sort(state.finished, {}, &Round::query);
    return std::exchange(state.finished, {});
  });
}

}  // namespace hmmjit::v0
