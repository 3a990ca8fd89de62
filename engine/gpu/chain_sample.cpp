#include "gpu/chain_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "layout/stages.hpp"
#include "model/score_statistics.hpp"
#include "reference/filters.hpp"

namespace hmmjit::gpu {
namespace {

namespace dev = hmmjit_device;

// Number of targets examined for those nearest to a threshold.
constexpr std::size_t kWindow = 2048;
// Value of `results` before a chain; no kernel writes this status.
constexpr std::uint32_t kNoStatus = 3;

std::uint32_t status_of(dev::FilterResult result) { return (result >> 16) & 3u; }

// The lists of a chain, copied to the host.
class FetchedLists {
 public:
  explicit FetchedLists(const ChainLists& lists) : lists_(lists) {}

  Status fetch() {
    std::vector<ListCopy> copies;
    std::size_t end = 0;
    for_each_list([&](auto& list, std::size_t offset, std::size_t entries) {
      list.resize(entries);
      copies.push_back({offset, entries * sizeof(list.front()), end});
      end += layout::aligned_size(copies.back().bytes);
    });
    HMMJIT_ASSIGN(const std::byte* const host, lists_.download(copies));
    auto copy = copies.begin();
    for_each_list([&](auto& list, std::size_t, std::size_t) {
      if (copy->bytes > 0) std::memcpy(list.data(), host + copy->to, copy->bytes);
      ++copy;
    });
    for (const dev::Survivor& s : survivors) HMMJIT_TRY(known(s.target, "survivors"));
    for (const dev::Candidate& c : viterbi) HMMJIT_TRY(known(c.target, "viterbi"));
    for (const dev::Candidate& c : forward) HMMJIT_TRY(known(c.target, "forward"));
    std::erase_if(flagged, [&](std::uint32_t slot) { return slot >= viterbi.size(); });
    std::ranges::sort(flagged);
    return {};
  }
  std::size_t size() const { return lists_.packed.targets.size(); }
  const TargetOrigin& origin(std::uint32_t target) const {
    return lists_.packed.origins[lists_.packed.targets.original[target]];
  }
  int length(std::uint32_t target) const {
    return static_cast<int>(lists_.packed.targets.length[target]);
  }
  // A target's slot in a list; the list's size if absent.
  template <typename Entry>
  static std::size_t slot_of(const std::vector<Entry>& list, std::uint32_t target) {
    return static_cast<std::size_t>(std::ranges::find(list, target, &Entry::target) - list.begin());
  }

  // True if the exact Viterbi kernel computed the score.
  bool exact(std::size_t slot) const {
    return !lists_.stages.fast_viterbi ||
           std::ranges::binary_search(flagged, static_cast<std::uint32_t>(slot));
  }
  float viterbi_nats(std::size_t slot) const {
    return layout::word_answer(lists_.model.words, words[slot], length(viterbi[slot].target)).nats;
  }

  std::vector<std::uint32_t> results;
  std::vector<dev::Survivor> survivors;
  std::vector<float> sums, scores;
  std::vector<dev::Candidate> viterbi, forward;
  std::vector<dev::WordResult> words;
  std::vector<std::uint32_t> flagged;  // slots, ascending

 private:
  // Calls `use` with each list, its offset on the device, and its number of entries.
  template <typename Use>
  void for_each_list(Use&& use) {
    const ChainStages& stages = lists_.stages;
    const ListOffsets& at = lists_.at;
    const std::size_t to_viterbi = stages.viterbi ? lists_.gate.viterbi : 0;
    const std::size_t to_forward = stages.forward ? lists_.gate.forward : 0;
    use(results, at.results, size());
    use(survivors, at.survivors, lists_.survivors);
    use(sums, at.sums, stages.gated && stages.bias ? lists_.survivors : 0);
    use(viterbi, at.viterbi, to_viterbi);
    use(words, at.words, to_viterbi);
    use(flagged, at.flagged, lists_.flagged);
    use(forward, at.forward, to_forward);
    use(scores, at.scores, to_forward);
  }

  Status known(std::uint32_t target, std::string_view list) const {
    if (target < size()) return {};
    return fail(ErrorCode::kInternal,
                fmt::format("a kernel returned an impossible target in {} for model {}", list,
                            lists_.model.hmm.name));
  }

  const ChainLists& lists_;
};

// Chooses targets, and checks the lists against one another.
class Sampler {
 public:
  Sampler(const ChainLists& lists, const SampleRequest& request, std::vector<FilteredBlock>& blocks)
      : lists_(lists), host_(lists), request_(request), blocks_(blocks), random_(request.seed) {}

  Status run() {
    HMMJIT_TRY(host_.fetch());
    find_lost();
    // The stages that decide most targets come first.
    if (lists_.stages.forward) choose_late(plan::Stage::kForward, host_.forward, request_.forward);
    if (lists_.stages.viterbi) {
      choose_late(plan::Stage::kViterbi, host_.viterbi, request_.viterbi);
      if (request_.viterbi > 0 && !host_.flagged.empty())
        choose(host_.viterbi[host_.flagged[below(host_.flagged.size())]].target,
               plan::Stage::kViterbi);
    }
    if (lists_.stages.gated) choose_survivors();
    choose_any();
    return {};
  }

 private:
  void note_lost(plan::Stage stage, std::uint64_t expected, std::uint64_t found) {
    const auto first = std::ranges::find(lists_.claimed, true);
    if (expected == found || first == lists_.claimed.end()) return;
    auto& lost = blocks_[static_cast<std::size_t>(first - lists_.claimed.begin())].sample.lost;
    if (!lost) lost = LostTargets{stage, expected, found};
  }

  void find_lost() {
    std::uint64_t answered = 0, passed = 0, undecided = 0;
    for (const std::uint32_t result : host_.results) {
      const std::uint32_t status = status_of(result);
      answered += status != kNoStatus;
      undecided += status == dev::kStatusNoResult;
      passed += status < dev::kStatusNoResult && (result & dev::kResultPassed) != 0;
    }
    note_lost(plan::Stage::kSsv, host_.size(), answered);
    note_lost(plan::Stage::kSsv, passed, host_.survivors.size());
    note_lost(plan::Stage::kMsv, undecided, lists_.stages.msv ? 0 : lists_.undecided);
    if (!lists_.stages.gated) return;
    std::uint64_t claimed = 0;
    for (const dev::Survivor& s : host_.survivors)
      claimed += lists_.claimed[host_.origin(s.target).block];
    if (const auto lost = lost_at_gates(lists_.gate, claimed))
      note_lost(lost->stage, lost->expected, lost->found);
  }

  std::size_t below(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }

  void choose(std::uint32_t target, plan::Stage depth) {
    const TargetOrigin& at = host_.origin(target);
    if (!lists_.claimed[at.block]) return;
    FilteredBlock& block = blocks_[at.block];
    const auto twin = std::ranges::find(block.sample.targets, at.index, &SampledTarget::index);
    if (twin != block.sample.targets.end()) return;

    SampledTarget out{.index = at.index, .depth = depth};
    const layout::ByteAnswer answer =
        layout::byte_answer(lists_.model.bytes, host_.results[target], host_.length(target));
    out.recurrence = answer.recurrence;
    out.undecided = answer.status == dev::kStatusNoResult;
    out.msv = answer.nats;
    const std::size_t survivor = host_.slot_of(host_.survivors, target),
                      viterbi = host_.slot_of(host_.viterbi, target),
                      forward = host_.slot_of(host_.forward, target);
    const bool open = std::ranges::binary_search(block.open, at.index, {}, &MsvSurvivor::index);
    const bool passed = std::ranges::binary_search(block.passed, at.index);
    out.fate = open                                ? Fate::kOpen
               : passed                            ? Fate::kPassed
               : forward < host_.forward.size()    ? Fate::kForward
               : viterbi < host_.viterbi.size()    ? Fate::kViterbi
               : survivor < host_.survivors.size() ? Fate::kBias
                                                   : Fate::kMsv;
    if (lists_.stages.gated && survivor < host_.survivors.size()) {
      const auto c = lists_.packed.targets.length_class[target];
      out.filter = lists_.packed.null_nats[c] + (lists_.stages.bias ? host_.sums[survivor] : 0.0f);
    }
    if (viterbi < host_.viterbi.size()) {
      out.viterbi = host_.viterbi_nats(viterbi);
      out.filter = host_.viterbi[viterbi].filter;
    }
    if (forward < host_.forward.size()) {
      out.forward = host_.scores[forward];
      out.filter = host_.forward[forward].filter;
    }
    out.link = depth == plan::Stage::kForward ? Link::kForward
               : depth == plan::Stage::kViterbi
                   ? host_.exact(viterbi) ? Link::kExactViterbi : Link::kViterbi
               : depth == plan::Stage::kBias ? Link::kBias
               : out.recurrence              ? Link::kMsv
                                             : Link::kSsv;
    if (request_.always & link_bit(out.link) & ~always_given_) {
      out.always = true;
      always_given_ |= link_bit(out.link);
    }
    block.sample.targets.push_back(out);
  }

  // Chooses candidates: the nearest to the threshold, the last, the first beyond the largest power
  // of two, and random ones.
  void choose_late(plan::Stage depth, const std::vector<dev::Candidate>& list, std::size_t count) {
    if (list.empty()) return;
    const Calibration& c = lists_.model.hmm.calibration;
    const bool at_forward = depth == plan::Stage::kForward;
    const ScoreBand band = at_forward
                               ? exponential_band(c.forward_tau, c.forward_lambda, lists_.limits.F3)
                               : gumbel_band(c.viterbi_mu, c.viterbi_lambda, lists_.limits.F2);
    const std::size_t begin = list.size() <= kWindow ? 0 : below(list.size() - kWindow);
    const std::size_t end = std::min(list.size(), begin + kWindow);
    std::size_t nearest = begin;
    float least = std::numeric_limits<float>::infinity();
    for (std::size_t slot = begin; slot < end; ++slot) {
      const float nats =
          (at_forward ? host_.scores[slot] : host_.viterbi_nats(slot)) - list[slot].filter;
      const float distance = std::fabs(nats_to_bits(nats) - band.passes);
      if (!(distance < least)) continue;
      least = distance;
      nearest = slot;
    }
    const std::size_t usual[] = {nearest, list.size() - 1, std::bit_floor(list.size() - 1)};
    for (std::size_t i = 0; i < count; ++i)
      choose(list[i < std::size(usual) ? usual[i] : below(list.size())].target, depth);
  }

  // Chooses targets that passed MSV, with their bias filter results.
  void choose_survivors() {
    if (host_.survivors.empty()) return;
    for (std::size_t i = 0; i < request_.bias; ++i) {
      const std::size_t slot = i == 0 ? host_.survivors.size() - 1 : below(host_.survivors.size());
      choose(host_.survivors[slot].target, plan::Stage::kBias);
    }
  }

  // Chooses among all targets: half of the sample are nearest to the MSV threshold on both sides,
  // the rest random.
  void choose_any() {
    if (request_.msv == 0) return;
    const std::size_t begin = host_.size() <= kWindow ? 0 : below(host_.size() - kWindow);
    const std::size_t end = std::min(host_.size(), begin + kWindow);
    std::vector<std::pair<int, std::uint32_t>> near;  // distance, target
    std::optional<std::uint32_t> recurrence;          // a target scored by the MSV kernel
    for (std::size_t target = begin; target < end; ++target) {
      const std::uint32_t result = host_.results[target];
      if (status_of(result) != dev::kStatusScore) continue;
      const dev::LengthClass& c = lists_.classes[lists_.packed.targets.length_class[target]];
      const bool msv = (result & dev::kResultMsv) != 0;
      if (msv) recurrence = static_cast<std::uint32_t>(target);
      const int above =
          static_cast<int>(result & 0xffffu) - static_cast<int>(msv ? c.msv_gate : c.ssv_gate);
      near.emplace_back(above >= 0 ? 2 * above : -2 * above - 1,
                        static_cast<std::uint32_t>(target));
    }
    const std::size_t half = std::min<std::size_t>(near.size(), request_.msv / 2);
    std::ranges::partial_sort(near, near.begin() + static_cast<std::ptrdiff_t>(half));
    if (recurrence) choose(*recurrence, plan::Stage::kMsv);
    for (std::size_t i = 0; i < half; ++i) choose(near[i].second, plan::Stage::kMsv);
    for (std::size_t i = half; i < request_.msv; ++i)
      choose(static_cast<std::uint32_t>(below(host_.size())), plan::Stage::kMsv);
  }

  const ChainLists& lists_;
  FetchedLists host_;
  const SampleRequest& request_;
  std::vector<FilteredBlock>& blocks_;
  std::mt19937_64 random_;
  std::uint32_t always_given_ = 0;
};

}  // namespace

Status sample_chain(const ChainLists& lists, const SampleRequest& request,
                    std::vector<FilteredBlock>& blocks) {
  return Sampler(lists, request, blocks).run();
}

std::optional<LostTargets> lost_at_gates(const dev::GateCounters& gate, std::uint64_t survivors) {
  const std::uint64_t out = std::uint64_t{gate.open} + gate.passed + gate.failed_bias +
                            gate.failed_viterbi + gate.failed_forward;
  if (out == survivors) return std::nullopt;
  return LostTargets{plan::Stage::kGate, survivors, out};
}

}  // namespace hmmjit::gpu
