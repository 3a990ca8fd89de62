#include "build/row_paths.hpp"

#include <algorithm>
#include <bit>

#include "build/row_weights.hpp"

namespace hmmjit::build {
namespace {

void trace_row(const MultipleAlignment& alignment, std::size_t row, const std::vector<bool>& match,
               std::vector<PathElement>& path) {
  const Alphabet& alphabet = *alignment.alphabet;
  const std::span<const Residue> codes = alignment.row(row);
  path.assign(1, {Step::kBegin});
  int k = 0;
  for (std::uint32_t c = 0; c < codes.size(); ++c) {
    if (match[c]) ++k;
    const Residue code = codes[c];
    if (code == alphabet.missing()) {
      if (path.back().step != Step::kMissing) path.push_back({Step::kMissing, k, c});
    } else if (code == alphabet.gap()) {
      if (match[c]) path.push_back({Step::kDelete, k, c});
    } else {
      path.push_back({match[c] ? Step::kMatch : Step::kInsert, k, c});
    }
  }
  path.push_back({Step::kEnd});
}

void doctor(std::vector<PathElement>& path) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < path.size(); ++from, ++to) {
    const PathElement& a = path[from];
    const PathElement* b = from + 1 < path.size() ? &path[from + 1] : nullptr;
    if (b != nullptr && a.step == Step::kDelete && b->step == Step::kInsert) {
      path[to] = {Step::kMatch, a.k, b->column};
      ++from;
    } else if (b != nullptr && a.step == Step::kInsert && b->step == Step::kDelete) {
      path[to] = {Step::kMatch, b->k, a.column};
      ++from;
    } else {
      path[to] = a;
    }
  }
  path.resize(to);
}

class Counter {
 public:
  explicit Counter(Hmm& hmm) : hmm_(hmm), K_(static_cast<std::size_t>(hmm.alphabet->K)) {}

  void add(const std::vector<PathElement>& path, std::span<const Residue> codes, float weight) {
    // Does not count transitions into or out of the ends of a fragment.
    const auto is_match = [](const PathElement& at) { return at.step == Step::kMatch; };
    auto begin = path.begin(), end = path.end() - 1;
    if (path[1].step == Step::kMissing) {
      const auto first = std::find_if(begin + 2, end, is_match);
      if (first != end) begin = first;
    }
    if ((end - 1)->step == Step::kMissing) {
      const auto last = std::find_if(path.rbegin() + 2, path.rend() - 1, is_match);
      if (last != path.rend() - 1) end = last.base() - 1;
    }
    for (auto at = begin; at < end; ++at) {
      if (at->step == Step::kMissing) continue;
      const auto node = static_cast<std::size_t>(at->k);
      if (at->step == Step::kMatch) emit(&hmm_.match[node * K_], codes[at->column], weight);
      if (at->step == Step::kInsert) emit(&hmm_.insert[node * K_], codes[at->column], weight);
      move(*at, *(at + 1), weight);
    }
  }

 private:
  void emit(float* counts, Residue code, float weight) const {
    const Alphabet& alphabet = *hmm_.alphabet;
    if (alphabet.is_residue(code)) {
      counts[code] += weight;
    } else if (alphabet.is_degenerate(code)) {
      const std::uint32_t members = alphabet.degeneracy[code];
      const float share = weight / static_cast<float>(std::popcount(members));
      for (std::size_t x = 0; x < K_; ++x) {
        if ((members >> x & 1) != 0) counts[x] += share;
      }
    }
  }
  void count(int k, Transition a, float weight) {
    hmm_.transition[static_cast<std::size_t>(k) * kTransitions + a] += weight;
  }
  void move(const PathElement& from, const PathElement& to, float weight) {
    if (to.step == Step::kMissing) return;
    switch (from.step) {
      case Step::kBegin:
        if (to.step == Step::kInsert) {
          count(0, kMI, weight);
        } else if (to.step == Step::kDelete) {
          count(0, kMD, weight);
        } else if (to.step == Step::kMatch && to.k == 1) {
          count(0, kMM, weight);
        } else if (to.step == Step::kMatch) {
          count(0, kMD, weight);
          for (int k = 1; k < to.k - 1; ++k) count(k, kDD, weight);
          count(to.k - 1, kDM, weight);
        }
        break;
      case Step::kMatch:
        count(from.k,
              to.step == Step::kInsert   ? kMI
              : to.step == Step::kDelete ? kMD
                                         : kMM,
              weight);
        break;
      case Step::kInsert:
        count(from.k, to.step == Step::kInsert ? kII : kIM, weight);
        break;
      case Step::kDelete:
        count(from.k, to.step == Step::kDelete ? kDD : kDM, weight);
        break;
      case Step::kMissing:
      case Step::kEnd:
        break;
    }
  }

  Hmm& hmm_;
  std::size_t K_;
};

}  // namespace

void find_row_path(const MultipleAlignment& alignment, std::size_t row,
                   const std::vector<bool>& match, std::vector<PathElement>& path, bool literal) {
  trace_row(alignment, row, match, path);
  if (!literal) doctor(path);
}

void mark_fragments(MultipleAlignment& alignment, float fragment) {
  const Alphabet& alphabet = *alignment.alphabet;
  for (std::size_t row = 0; row < alignment.rows(); ++row) {
    const std::span<Residue> codes = alignment.row(row);
    std::size_t residues = 0;
    for (const Residue code : codes) residues += is_any_residue(alphabet, code);
    if (static_cast<double>(residues) >
        static_cast<double>(fragment) * static_cast<double>(alignment.columns))
      continue;
    const auto missing = static_cast<Residue>(alphabet.missing());
    for (std::size_t c = 0; c < codes.size() && !is_any_residue(alphabet, codes[c]); ++c)
      codes[c] = missing;
    for (std::size_t c = codes.size(); c-- > 0 && !is_any_residue(alphabet, codes[c]);)
      codes[c] = missing;
  }
}

void count_alignment(const MultipleAlignment& alignment, const std::vector<bool>& match,
                     std::span<const double> weights, Hmm& hmm) {
  Counter counter(hmm);
  std::vector<PathElement> path;
  for (std::size_t row = 0; row < alignment.rows(); ++row) {
    find_row_path(alignment, row, match, path);
    counter.add(path, alignment.row(row), static_cast<float>(weights[row]));
  }
}

}  // namespace hmmjit::build
