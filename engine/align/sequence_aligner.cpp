#include "align/sequence_aligner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "align/log_space.hpp"
#include "core/float_mode.hpp"
#include "domain/tables.hpp"

namespace hmmjit::align {
namespace {

using build::PathElement;
using build::Step;
using domain::PathState;

constexpr std::size_t kMostChoiceBytes = std::size_t{8} << 20;

// See same_with_subnormals().
constexpr float kLargeN = 0x1p-40f, kLargestBackward = 0x1p30f, kLeastPosterior = 0x1p-10f;

// Posteriors outside the domain: of N before `first`, of C after `last`. `finite`: no row's factor
// of posteriors overflows.
struct Outside {
  std::vector<float> n, c;
  bool finite = true;
};
Outside posteriors_outside(const domain::AccuracyChoices& choices, int first, int last) {
  const domain::Job& job = choices.job;
  const domain::SpecialRows forward = choices.lanes.forward_of(job);
  const domain::SpecialRows backward = choices.lanes.backward_of(job);
  Outside outside;
  float scale = domain::inverse_of(backward[0].N);
  for (int i = 1; i <= job.L; ++i) {
    if (i < first) outside.n.push_back(forward[i - 1].N * backward[i].N * job.loop * scale);
    if (i > last) outside.c.push_back(forward[i - 1].C * backward[i].C * job.loop * scale);
    outside.finite = outside.finite && !std::isinf(scale * forward[i].scale);
    if (job.own_scale) scale *= forward[i].scale / backward[i].scale;
  }
  return outside;
}

// Empty if posteriors overflow.
SequencePath path_of(const domain::AccuracyChoices& choices, std::vector<PathState>& states) {
  domain::trace(choices, states);
  SequencePath path;
  if (states.empty()) return path;
  std::ranges::reverse(states);
  const Outside outside = posteriors_outside(choices, states.front().i, states.back().i);
  if (!outside.finite) return path;
  const auto add = [&path](Step step, int k, int residue, float posterior) {
    path.elements.push_back({step, k, static_cast<std::uint32_t>(std::max(residue - 1, 0))});
    path.posteriors.push_back(posterior);
  };
  add(Step::kBegin, 0, 0, 0);
  int i = 0;
  for (const float posterior : outside.n) add(Step::kInsert, 0, ++i, posterior);
  for (const PathState& state : states) {
    const Step step = state.state == PathState::kM   ? Step::kMatch
                      : state.state == PathState::kD ? Step::kDelete
                                                     : Step::kInsert;
    i = state.i;
    add(step, state.k, i, state.posterior);
  }
  for (const float posterior : outside.c) add(Step::kInsert, choices.tables.M, ++i, posterior);
  add(Step::kEnd, 0, 0, 0);
  return path;
}

// Whether a path found with flush-to-zero is that with subnormals. A lost Forward value is below
// 2^-126; its share of the posteriors is at most this times its Backward cell, which is at most the
// largest B from its row on / the least entry + M * E. Rows with a large N lose nothing that
// matters: B's part of each sum outweighs it. 2^30 cells lose less than 2^-60 in all. That alters
// the rounding of a posterior above 2^-10, if at all, with a chance of 2^-26. Rescaling bounds
// Forward's cells, and thus what Backward loses.
bool same_with_subnormals(const domain::AccuracyChoices& choices, const SequencePath& path) {
  const domain::Job& job = choices.job;
  if (path.elements.empty() || job.own_scale) return false;
  const domain::SpecialRows forward = choices.lanes.forward_of(job);
  const domain::SpecialRows backward = choices.lanes.backward_of(job);
  if (forward[job.L].N >= kLargeN) return true;
  const auto M = static_cast<float>(choices.tables.M);
  const std::span nodes(choices.tables.nodes.data() + 1, std::size_t(choices.tables.M));
  const float least_entry = std::ranges::min(nodes, {}, &domain::NodeTransitions::bm).bm;
  const float scale = domain::inverse_of(backward[0].N);
  for (int i = job.L; forward[i].N < kLargeN; --i) {
    const float cell = backward[i].B / least_entry + M * backward[i].E;
    if (!(cell * forward[i].scale * scale <= kLargestBackward)) return false;
  }
  for (std::size_t z = 0; z < path.elements.size(); ++z) {
    const Step step = path.elements[z].step;
    const bool emits = step == Step::kMatch || step == Step::kInsert;
    if (emits && !(path.posteriors[z] >= kLeastPosterior)) return false;
  }
  return true;
}

}  // namespace

SequenceAligner::SequenceAligner(const Hmm& hmm)
    : model_(make_search_model(hmm)), tables_(*model_) {}

Result<std::vector<SequencePath>> SequenceAligner::align(
    std::span<const TargetView> sequences) const {
  std::vector<domain::Job> jobs;
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    const int L = sequences[n].length();
    if (L > 0) jobs.push_back(domain::make_job(sequences[n].residues, length_model(L, false), n));
  }
  std::vector<SequencePath> paths(sequences.size());
  std::vector<PathState> states;
  domain::EnvelopeScorer& scorer = scorers_.local();
  scorer.keep_all_posteriors();
  // Unlike HMMER's other programs, hmmalign computes with subnormals, which slow processors down.
  // They are used only where they may matter.
  for (const FloatMode mode : {kFlushToZero, kDefaultFloatMode}) {
    const FloatControlScope scope({.mode = mode});
    std::vector<domain::Job> again;
    scorer.start(tables_, tables_.tables().emission, std::move(jobs), false, kMostChoiceBytes);
    for (;;) {
      const std::span<const domain::Job> set = scorer.next();
      if (set.empty()) break;
      for (const domain::Job& job : set) {
        SequencePath& path = paths[job.owner];
        const TargetView& sequence = sequences[job.owner];
        path = {};
        if (!std::isnan(scorer.forward_nats(job))) {
          if (job.decoded.sound) path = path_of(scorer.choices(job), states);
          if (path.elements.empty() && mode == kDefaultFloatMode)
            path = align_in_log_space(model_->profile, sequence.residues);
        }
        if (mode == kFlushToZero) {
          if (!same_with_subnormals(scorer.choices(job), path)) again.push_back(job);
        } else if (path.elements.empty()) {
          return fail(ErrorCode::kInput, "the model cannot emit the sequence",
                      fmt::format("sequence {}", sequence.name), "leave it out");
        }
      }
    }
    jobs = std::move(again);
  }
  return paths;
}

}  // namespace hmmjit::align
