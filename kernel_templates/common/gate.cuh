// The decisions of the gate kernel: P-value thresholds as bands of bit scores, widened by the error bound of the
// device's float scores. Filters of Eddy 2011.
#ifndef HMMJIT_KERNEL_GATE_CUH_
#define HMMJIT_KERNEL_GATE_CUH_

#include "common/gate_params.h"
#include "common/intrinsics.cuh"

namespace hmmjit_device {

enum Verdict : u32 { kFails, kPasses, kOpen };

/// `guard`: error bound of nats. An infinite score needs none.
HMMJIT_DEVICE Verdict judge(const Gate& gate, double nats, double guard) {
  constexpr double kLn2 = 0.69314718055994529;
  const double bits = nats / kLn2, slack = guard / kLn2;
  if (bits - slack > static_cast<double>(gate.passes)) return kPasses;
  if (bits + slack < static_cast<double>(gate.rejects)) return kFails;
  return kOpen;
}

HMMJIT_DEVICE double infinite_score() { return 1e300 * 1e300; }

/// As reference::ssv_decide and msv_nats.
HMMJIT_DEVICE double msv_score(const GateParams& p, u32 target, FilterResult result) {
  if (((result >> 16) & 3u) != kStatusScore) return infinite_score();
  const int value = static_cast<int>(result & 0xffffu);
  const int tjb = p.classes[p.database.length_class[target]].tjb;
  const int score = (result & kResultMsv)
                        ? value - tjb
                        : value - 128 + (static_cast<int>(p.base) - tjb - p.tbm) - p.tec - tjb;
  return static_cast<double>(score - static_cast<int>(p.base)) / static_cast<double>(p.byte_scale) -
         3.0;
}

/// As reference::viterbi_nats.
HMMJIT_DEVICE double word_score(const GateParams& p, u32 target, WordResult result) {
  if ((result >> 16) != kStatusScore) return infinite_score();
  const int c = static_cast<s16>(result & 0xffffu);
  if (c <= -32768) return -infinite_score();
  const int move = p.move[p.database.length_class[target]];
  return static_cast<double>(c + move - p.word_base) / static_cast<double>(p.word_scale) - 3.0;
}

/// Error bound of a filter score: see layout::bias_guard, plus the length part of the score.
HMMJIT_DEVICE double filter_guard(const GateParams& p, u32 target, float filter) {
  const double length = p.database.length[target];
  const float null_nats = p.null_nats[p.database.length_class[target]];
  const double sum = static_cast<double>(filter) - null_nats;
  const double largest = (sum < 0 ? -sum : sum) + 64.0;
  return 1e-3 + 0x1p-24 * (length + 64.0) * largest;
}

HMMJIT_DEVICE void leave_open(const GateParams& p, u32 target, FilterResult msv) {
  Survivor s;
  s.target = target;
  s.result = msv;
  p.open[atomic_add(&p.counters->open, 1)] = s;
}

/// After Viterbi.
HMMJIT_DEVICE void on_to_forward(const GateParams& p, const Candidate& c) {
  if (p.to_forward) {
    p.to_forward[atomic_add(&p.counters->forward, 1)] = c;
  } else {
    p.passed[atomic_add(&p.counters->passed, 1)] = c.target;
  }
}

HMMJIT_DEVICE void gate_bias(const GateParams& p, u32 slot) {
  Candidate c;
  c.target = p.list.targets[slot * 2];
  c.msv = p.list.targets[slot * 2 + 1];
  c.reserved = 0;
  if (p.claimed && !p.claimed[p.block[c.target]]) return;
  const double msv = msv_score(p, c.target, c.msv);
  c.filter = p.null_nats[p.database.length_class[c.target]];
  if (p.bias) {
    c.filter += p.bias[slot];
    switch (judge(p.bias_gate, msv - c.filter, filter_guard(p, c.target, c.filter))) {
      case kFails:
        atomic_add(&p.counters->failed_bias, 1);
        return;
      case kOpen:
        return leave_open(p, c.target, c.msv);
      case kPasses:
        break;
    }
  }
  // A target whose MSV score already satisfies F2 goes straight to Forward.
  switch (judge(p.skip_gate, msv - c.filter, filter_guard(p, c.target, c.filter))) {
    case kPasses:
      return on_to_forward(p, c);
    case kOpen:
      return leave_open(p, c.target, c.msv);
    case kFails:
      break;
  }
  if (!p.to_viterbi) return leave_open(p, c.target, c.msv);
  p.to_viterbi[atomic_add(&p.counters->viterbi, 1)] = c;
}

HMMJIT_DEVICE Candidate candidate(const GateParams& p, u32 slot) {
  return reinterpret_cast<const Candidate*>(p.list.targets)[slot];
}

HMMJIT_DEVICE void gate_viterbi(const GateParams& p, u32 slot) {
  const Candidate c = candidate(p, slot);
  const WordResult result = p.words[slot];
  if ((result >> 16) == kStatusNoResult) return leave_open(p, c.target, c.msv);
  const double nats = word_score(p, c.target, result);
  switch (judge(p.viterbi_gate, nats - c.filter, filter_guard(p, c.target, c.filter))) {
    case kFails:
      atomic_add(&p.counters->failed_viterbi, 1);
      return;
    case kOpen:
      return leave_open(p, c.target, c.msv);
    case kPasses:
      return on_to_forward(p, c);
  }
}

/// The CPU scores the targets that pass once more, so only certain failures end here.
HMMJIT_DEVICE void gate_forward(const GateParams& p, u32 slot) {
  const Candidate c = candidate(p, slot);
  const double guard =
      filter_guard(p, c.target, c.filter) + static_cast<double>(p.forward_guard) +
      static_cast<double>(p.forward_guard_per_residue) * p.database.length[c.target];
  if (judge(p.forward_gate, static_cast<double>(p.forward[slot]) - c.filter, guard) == kFails) {
    atomic_add(&p.counters->failed_forward, 1);
  } else {
    p.passed[atomic_add(&p.counters->passed, 1)] = c.target;
  }
}

/// Returns the target's residues, which count as processed whoever claimed the target.
HMMJIT_DEVICE u32 gate_slot(const GateParams& p, u32 slot) {
  if (p.stage == kAfterBias) {
    gate_bias(p, slot);
    return p.database.length[p.list.targets[slot * 2]];
  }
  if (p.stage == kAfterViterbi) {
    gate_viterbi(p, slot);
  } else {
    gate_forward(p, slot);
  }
  return p.database.length[candidate(p, slot).target];
}

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_GATE_CUH_
