// Shared by all Viterbi kernels: their lists of targets and their results.
#ifndef HMMJIT_KERNEL_WORD_FILTER_CUH_
#define HMMJIT_KERNEL_WORD_FILTER_CUH_

#include "common/intrinsics.cuh"
#include "common/late_params.h"

namespace hmmjit_device {

HMMJIT_DEVICE u32 list_count(const TargetList& list) {
  return list.count ? *list.count : list.fixed_count;
}
HMMJIT_DEVICE u32 list_target(const TargetList& list, u32 slot) {
  return list.targets ? list.targets[slot * list.stride] : slot;
}

HMMJIT_DEVICE u32 pack_words(int low, int high) {
  return (static_cast<u32>(low) & 0xffffu) | (static_cast<u32>(high) << 16);
}
HMMJIT_DEVICE int low_word(u32 word) { return static_cast<s16>(word & 0xffffu); }
HMMJIT_DEVICE int high_word(u32 word) { return static_cast<s16>(word >> 16); }

/// One transition word of node `node` (0-based), -32768 beyond the model.
HMMJIT_DEVICE int word_transition(const WordFilterParams& p, WordTransition which, int node) {
  if (node < 0 || node >= static_cast<int>(p.model_length)) return -32768;
  return p.transitions[static_cast<u32>(which) * p.stride + static_cast<u32>(node)];
}
HMMJIT_DEVICE int word_emission(const WordFilterParams& p, u32 code, int node) {
  if (node >= static_cast<int>(p.model_length)) return -32768;
  return p.emissions[code * p.stride + static_cast<u32>(node)];
}

/// The answer for the best end score E of a target on which J never had an effect, or the true one.
HMMJIT_DEVICE WordResult word_result(const WordFilterParams& p, int best) {
  const int c = best + p.ec;
  return (static_cast<u32>(c < -32768 ? -32768 : c) & 0xffffu) | (kStatusScore << 16);
}

/// Targets of an exact kernel: the whole list, or those that a speculating launch flagged.
HMMJIT_DEVICE u32 exact_count(const WordFilterParams& p) {
  return p.only_flagged ? p.counters->flagged : list_count(p.list);
}
HMMJIT_DEVICE u32* exact_counter(const WordFilterParams& p) {
  return p.only_flagged ? &p.counters->next_flagged : &p.counters->next;
}
HMMJIT_DEVICE u32 exact_slot(const WordFilterParams& p, u32 index) {
  return p.only_flagged ? p.flagged[index] : index;
}

enum : int { kNegativeWord = -32768 };
HMMJIT_DEVICE int larger(int a, int b) { return a > b ? a : b; }
HMMJIT_DEVICE int saturated_word(int v) { return v > 32767 ? 32767 : larger(v, kNegativeWord); }

/// Special states of one target, row by row; words that saturate only where cells do.
struct WordSpecials {
  int move;
  int J, C, B;
  bool overflow;  ///< a match cell reached 32767: the score is +inf
};
HMMJIT_DEVICE WordSpecials word_specials(const WordFilterParams& p, u32 target) {
  WordSpecials s;
  s.move = p.move[p.database.length_class[target]];
  s.J = s.C = kNegativeWord;
  s.B = p.base + s.move;
  s.overflow = false;
  return s;
}
/// After a row whose best match cell is `best`.
HMMJIT_DEVICE void advance(const WordFilterParams& p, int best, WordSpecials* s) {
  s->overflow = best >= 32767;
  s->C = larger(s->C, best + p.ec);
  s->J = larger(s->J, best + p.ej);
  s->B = larger(s->J, p.base) + s->move;
}
HMMJIT_DEVICE WordResult exact_result(const WordSpecials& s) {
  return s.overflow ? kStatusOverflow << 16
                    : (static_cast<u32>(s.C) & 0xffffu) | (kStatusScore << 16);
}

/// The answer of the speculating kernels for the best cell relative to the begin score.
HMMJIT_DEVICE void publish_speculated(const WordFilterParams& p, u32 slot, u32 target, int best) {
  const int move = p.move[p.database.length_class[target]];
  const int limit = -static_cast<int>(p.ej) - move;  // best + B + ej <= base
  if (best <= kWordIrrelevant || best > kWordTop || best > limit) {
    p.results[slot] = kStatusNoResult << 16;
    if (p.flagged) p.flagged[atomic_add(&p.counters->flagged, 1)] = slot;
  } else {
    p.results[slot] = word_result(p, best + p.base + move);
  }
}

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_WORD_FILTER_CUH_
