#include "build/row_paths.hpp"

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

}  // namespace

void find_row_path(const MultipleAlignment& alignment, std::size_t row,
                   const std::vector<bool>& match, std::vector<PathElement>& path, bool literal) {
  trace_row(alignment, row, match, path);
  if (!literal) doctor(path);
}

}  // namespace hmmjit::build
