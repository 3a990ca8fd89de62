// Viterbi filter, a thread per sequence (Walters, Balu, Kompalli & Chaudhary 2009), exact for all.
//
// A thread keeps its DP row in local memory, whose words the hardware interleaves by thread: the 32 accesses of a
// warp to the same word of their rows fall into one line, as in the paper's interleaved arrays in global memory.
// Targets are sorted by length, so the threads of a warp end together. Transition scores, the same for all threads,
// and match scores are read through the caches, two nodes at a time.
//
// kWords: words of two nodes, at least M/2.
#include "common/word_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : u32 { kWords = plan_constants::kWords };

struct Node {
  int match, insert, deletion;
};
struct NodeScores {
  int entry, mm, im, dm, md, mi, ii, dd, emission;
};

/// One node of one row: `cell` holds the previous row's value and then this row's; `diagonal`, the previous node on
/// the previous row, becomes the old value of the cell; `flow` is the node's delete state and becomes that of the
/// next node.
HMMJIT_DEVICE int step(int begin, const NodeScores& s, Node* cell, Node* diagonal, int* flow) {
  const Node old = *cell;
  int m = larger(begin + s.entry, diagonal->match + s.mm);
  m = larger(m, larger(diagonal->insert + s.im, diagonal->deletion + s.dm));
  m = saturated_word(larger(m, kNegativeWord) + s.emission);
  cell->match = m;
  cell->insert = larger(kNegativeWord, larger(old.match + s.mi, old.insert + s.ii));
  cell->deletion = *flow;
  *flow = larger(kNegativeWord, larger(m + s.md, *flow + s.dd));
  *diagonal = old;
  return m;
}

HMMJIT_DEVICE u32 two_words(const s16* row, u32 w) {
  return load_word(reinterpret_cast<const u8*>(row) + 4 * w);
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads)
    viterbi_thread_coalesced(const hmmjit_device::WordFilterParams p) {
  using namespace hmmjit_device;
  u32 match[kWords], insert[kWords], deletion[kWords];
  const u32 words = (p.model_length + 1) / 2;
  const u32 count = exact_count(p);
  const u32 none = pack_words(kNegativeWord, kNegativeWord);
  for (;;) {
    const u32 index = atomic_add(exact_counter(p), 1);
    if (index >= count) break;
    const u32 slot = exact_slot(p, index);
    const u32 target = list_target(p.list, slot);
    const u32 length = p.database.length[target];
    const u8* const residues =
        p.database.residues + static_cast<u64>(p.database.start[target]) * kStartUnit;
    WordSpecials specials = word_specials(p, target);
    for (u32 w = 0; w < words; ++w) match[w] = insert[w] = deletion[w] = none;
    for (u32 i = 0; i < length && !specials.overflow; ++i) {
      const s16* const emissions = p.emissions + (residues[i] & 31u) * p.stride;
      Node diagonal;
      diagonal.match = diagonal.insert = diagonal.deletion = kNegativeWord;
      int flow = kNegativeWord, best = kNegativeWord;
      for (u32 w = 0; w < words; ++w) {
        const u32 e = two_words(emissions, w);
        u32 t[kWordTransitions];
        HMMJIT_UNROLL
        for (u32 r = 0; r < kWordTransitions; ++r) t[r] = two_words(p.transitions + r * p.stride, w);
        const u32 m = match[w], in = insert[w], d = deletion[w];
        Node low, high;
        low.match = low_word(m), low.insert = low_word(in), low.deletion = low_word(d);
        high.match = high_word(m), high.insert = high_word(in), high.deletion = high_word(d);
        NodeScores a, b;
        a.entry = low_word(t[kWordEntry]), b.entry = high_word(t[kWordEntry]);
        a.mm = low_word(t[kWordMmIn]), b.mm = high_word(t[kWordMmIn]);
        a.im = low_word(t[kWordImIn]), b.im = high_word(t[kWordImIn]);
        a.dm = low_word(t[kWordDmIn]), b.dm = high_word(t[kWordDmIn]);
        a.md = low_word(t[kWordMdOut]), b.md = high_word(t[kWordMdOut]);
        a.mi = low_word(t[kWordMiOut]), b.mi = high_word(t[kWordMiOut]);
        a.ii = low_word(t[kWordIiOut]), b.ii = high_word(t[kWordIiOut]);
        a.dd = low_word(t[kWordDdOut]), b.dd = high_word(t[kWordDdOut]);
        a.emission = low_word(e), b.emission = high_word(e);
        best = larger(best, step(specials.B, a, &low, &diagonal, &flow));
        best = larger(best, step(specials.B, b, &high, &diagonal, &flow));
        match[w] = pack_words(low.match, high.match);
        insert[w] = pack_words(low.insert, high.insert);
        deletion[w] = pack_words(low.deletion, high.deletion);
      }
      advance(p, best, &specials);
    }
    p.results[slot] = exact_result(specials);
  }
}
