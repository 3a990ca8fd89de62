#include "build/row_weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "build/parameters.hpp"

namespace hmmjit::build {
namespace {

// HMMER's constants, independent of the options for match columns and fragments.
constexpr float kFragmentSpan = 0.5f, kMostGaps = 0.5f;
constexpr std::size_t kSampledFrom = 50000, kSample = 10000, kMostSampledFragments = 5000;
constexpr std::uint64_t kSampleSeed = 42;

using ColumnCounts = std::vector<std::array<int, kMaxCodes>>;

// Draws a sorted sample of `m` of `n` numbers by Vitter's method D, or A if the sample is dense
// (ACM TOMS 13:58, 1987). HMMER's random numbers, in HMMER's order.
class SequentialSampler {
 public:
  std::vector<std::size_t> sample(std::int64_t m, std::int64_t n) {
    std::int64_t j = -1, qu1 = n - m + 1, threshold = 13 * m;
    double mr = static_cast<double>(m), nr = static_cast<double>(n);
    double inverse_m = 1.0 / mr;
    double v = std::exp(inverse_m * std::log(half_open()));
    double qu1r = nr - mr + 1.0;
    while (m > 1 && n > threshold) {
      const double inverse_before = 1.0 / (-1.0 + mr);
      double x = 0;
      std::int64_t s = 0;
      for (;;) {
        for (;;) {
          x = nr * (-v + 1.0);
          s = static_cast<std::int64_t>(std::floor(x));
          if (s < qu1) break;
          v = std::exp(inverse_m * std::log(open()));
        }
        const double u = open(), minus_s = -static_cast<double>(s);
        double y1 = std::exp(inverse_before * std::log(u * nr / qu1r));
        v = (y1 * (-x / nr + 1.0)) * (qu1r / (minus_s + qu1r));
        if (v <= 1.0) break;
        double y2 = 1.0, top = nr - 1.0, bottom = 0;
        std::int64_t limit = 0;
        if (n - 1 > s) {
          bottom = nr - mr;
          limit = n - s;
        } else {
          bottom = nr + minus_s - 1.0;
          limit = qu1;
        }
        for (std::int64_t t = n - 1; t >= limit; --t) {
          y2 = (y2 * top) / bottom;
          top -= 1.0;
          bottom -= 1.0;
        }
        if (nr / (nr - x) >= y1 * std::exp(inverse_before * std::log(y2))) {
          v = std::exp(inverse_before * std::log(open()));
          break;
        }
        v = std::exp(inverse_m * std::log(open()));
      }
      j += s + 1;
      take(j);
      n = n - s - 1;
      nr = nr - static_cast<double>(s) - 1.0;
      m -= 1;
      mr -= 1.0;
      inverse_m = inverse_before;
      qu1 -= s;
      qu1r -= static_cast<double>(s);
      threshold -= 13;
    }
    if (m > 1) {
      double top = static_cast<double>(n - m);
      nr = static_cast<double>(n);
      while (m >= 2) {
        const double u = open();
        std::int64_t s = 0;
        double quotient = top / nr;
        while (quotient > u) {
          ++s;
          top -= 1.0;
          nr -= 1.0;
          quotient = (quotient * top) / nr;
        }
        j += s + 1;
        take(j);
        nr -= 1.0;
        m -= 1;
      }
      const auto s = static_cast<std::int64_t>(std::floor(std::round(nr) * half_open()));
      take(j + s + 1);
    } else {
      const auto s = static_cast<std::int64_t>(std::floor(static_cast<double>(n) * v));
      take(j + s + 1);
    }
    return std::move(taken_);
  }

 private:
  double half_open() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  double open() { return (static_cast<double>(random_() >> 12) + 0.5) * 0x1p-52; }
  void take(std::int64_t j) { taken_.push_back(static_cast<std::size_t>(j)); }

  std::mt19937_64 random_{kSampleSeed};
  std::vector<std::size_t> taken_;
};

struct Span {
  std::size_t begin, end;
};
// The columns of a row that count: all, or in a fragment only those from its first to its last
// residue.
Span counted_columns(const MultipleAlignment& alignment, std::size_t row, bool* fragment) {
  const std::span<const Residue> codes = alignment.row(row);
  std::size_t first = 0, last = codes.size();
  while (first < codes.size() && !is_any_residue(*alignment.alphabet, codes[first])) ++first;
  while (last > first && !is_any_residue(*alignment.alphabet, codes[last - 1])) --last;
  const auto least = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(kFragmentSpan * static_cast<float>(codes.size()))));
  // HMMER's arithmetic gives a row without residues a negative width.
  const std::int64_t width = first == codes.size() ? -static_cast<std::int64_t>(codes.size())
                                                   : static_cast<std::int64_t>(last - first);
  *fragment = width < least;
  return *fragment ? Span{first, last} : Span{0, codes.size()};
}

void count_row(const MultipleAlignment& alignment, std::size_t row, ColumnCounts& counts,
               std::size_t* fragments) {
  bool fragment = false;
  const Span span = counted_columns(alignment, row, &fragment);
  *fragments += fragment;
  const std::span<const Residue> codes = alignment.row(row);
  for (std::size_t c = span.begin; c < span.end; ++c) ++counts[c][codes[c]];
}

std::vector<std::size_t> occupied_columns(const Alphabet& alphabet, const ColumnCounts& counts) {
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    int total = 0;
    for (int x = 0; x <= alphabet.any(); ++x) total += counts[c][x];
    if (static_cast<float>(counts[c][alphabet.gap()]) / static_cast<float>(total) < kMostGaps)
      columns.push_back(c);
  }
  return columns;
}

// The fractional identities of pairs of rows.
class Identities {
 public:
  explicit Identities(const MultipleAlignment& alignment)
      : alignment_(alignment), residues_(alignment.residues), lengths_(alignment.rows()) {
    for (std::size_t i = 0; i < residues_.size(); ++i) {
      const bool residue = is_any_residue(*alignment.alphabet, residues_[i]);
      if (!residue) residues_[i] = kPaddingCode;
      lengths_[i / alignment.columns] += residue;
    }
  }
  double of(std::size_t a, std::size_t b) const {
    const int length = std::min(lengths_[a], lengths_[b]);
    if (length == 0) return 0.0;
    const std::span<const Residue> row = alignment_.row(b);
    // Without branches, so that compilers use vectors.
    const int identical =
        std::inner_product(row.begin(), row.end(), residues_.data() + a * alignment_.columns, 0,
                           std::plus<>(), std::equal_to<>());
    return static_cast<double>(identical) / static_cast<double>(length);
  }

 private:
  const MultipleAlignment& alignment_;
  std::vector<Residue> residues_;  // of all rows; codes of no residue are replaced by padding
  std::vector<int> lengths_;
};

void scale_to_rows(std::vector<double>& weights) {
  normalise(weights);
  for (double& w : weights) w = w * static_cast<double>(weights.size());
}

// A binary tree: internal nodes 0 (the root) to n-2; children are internal nodes or rows.
struct TreeNode {
  struct Child {
    bool leaf = false;
    std::size_t index = 0;
    double length = 0;
  };
  Child left, right;
  double height = 0;
  int leaves = 0;
};

std::vector<TreeNode> upgma(std::vector<double> distance, std::size_t rows) {
  std::vector<TreeNode> tree(rows - 1);
  std::vector<TreeNode::Child> group(rows);
  std::vector<int> size(rows, 1);
  std::vector<double> height(rows, 0.0);
  for (std::size_t i = 0; i < rows; ++i) group[i] = {true, i, 0};
  const auto at = [&](std::size_t i, std::size_t j) -> double& { return distance[i * rows + j]; };
  for (std::size_t n = rows; n >= 2; --n) {
    std::size_t best_i = 0, best_j = 1;
    double best = at(0, 1);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) {
        if (at(i, j) < best) best = at(i, j), best_i = i, best_j = j;
      }
    }
    TreeNode& node = tree[n - 2];
    node.height = best / 2.0;
    node.left = group[best_i];
    node.right = group[best_j];
    node.left.length = std::max(0.0, node.height - height[best_i]);
    node.right.length = std::max(0.0, node.height - height[best_j]);
    node.leaves = size[best_i] + size[best_j];
    const auto swap = [&](std::size_t a, std::size_t b) {
      if (a == b) return;
      for (std::size_t c = 0; c < n; ++c) std::swap(at(a, c), at(b, c));
      for (std::size_t c = 0; c < n; ++c) std::swap(at(c, a), at(c, b));
      std::swap(group[a], group[b]);
      std::swap(size[a], size[b]);
      std::swap(height[a], height[b]);
    };
    std::size_t i = best_i, j = best_j;
    swap(j, n - 1);
    j = n - 1;
    swap(i, n - 2);
    i = n - 2;
    for (std::size_t c = 0; c < n; ++c) {
      at(i, c) =
          (static_cast<double>(size[i]) * at(i, c) + static_cast<double>(size[j]) * at(j, c)) /
          static_cast<double>(size[i] + size[j]);
      at(c, i) = at(i, c);
    }
    group[i] = {false, n - 2, 0};
    size[i] = node.leaves;
    height[i] = node.height;
  }
  return tree;
}

}  // namespace

std::vector<double> position_based_weights(const MultipleAlignment& alignment,
                                           bool reference_columns) {
  const Alphabet& alphabet = *alignment.alphabet;
  const std::size_t rows = alignment.rows();
  std::vector<std::size_t> columns;
  if (reference_columns) {
    for (std::size_t c = 0; c < alignment.rf.size(); ++c) {
      if (is_reference_column(alignment.rf[c])) columns.push_back(c);
    }
  } else if (rows > kSampledFrom) {
    ColumnCounts counts(alignment.columns);
    std::size_t fragments = 0;
    for (const std::size_t row :
         SequentialSampler().sample(kSample, static_cast<std::int64_t>(rows)))
      count_row(alignment, row, counts, &fragments);
    if (fragments <= kMostSampledFragments) columns = occupied_columns(alphabet, counts);
  }
  ColumnCounts counts(alignment.columns);
  std::size_t fragments = 0;
  for (std::size_t row = 0; row < rows; ++row) count_row(alignment, row, counts, &fragments);
  if (columns.empty()) columns = occupied_columns(alphabet, counts);
  if (columns.empty()) {
    columns.resize(alignment.columns);
    std::iota(columns.begin(), columns.end(), std::size_t{0});
  }

  std::vector<int> kinds(columns.size(), 0);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (int x = 0; x < alphabet.K; ++x) kinds[i] += counts[columns[i]][x] > 0;
  }
  std::vector<double> weights(rows, 0.0);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<const Residue> codes = alignment.row(row);
    int residues = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Residue x = codes[columns[i]];
      if (x >= alphabet.K) continue;
      weights[row] += 1.0 / static_cast<double>(kinds[i] * counts[columns[i]][x]);
      ++residues;
    }
    if (residues > 0) weights[row] /= static_cast<double>(residues);
  }
  scale_to_rows(weights);
  return weights;
}

std::vector<double> tree_weights(const MultipleAlignment& alignment) {
  const std::size_t rows = alignment.rows();
  if (rows == 1) return {1.0};
  std::vector<double> distance(rows * rows, 0.0);
  const Identities identities(alignment);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = i + 1; j < rows; ++j)
      distance[i * rows + j] = distance[j * rows + i] = 1.0 - identities.of(i, j);
  }
  const std::vector<TreeNode> tree = upgma(std::move(distance), rows);

  // Upwards: sum the branch lengths below each node. Downwards: divide each branch among its
  // leaves.
  std::vector<double> x(tree.size(), 0.0);
  for (std::size_t v = tree.size(); v-- > 0;) {
    const TreeNode& node = tree[v];
    x[v] = node.left.length + node.right.length;
    if (!node.left.leaf) x[v] += x[node.left.index];
    if (!node.right.leaf) x[v] += x[node.right.index];
  }
  std::vector<double> weights(rows, 0.0);
  x[0] = 0;
  for (std::size_t v = 0; v < tree.size(); ++v) {
    const TreeNode& node = tree[v];
    const auto branch = [&](const TreeNode::Child& child) {
      return child.leaf ? child.length : child.length + x[child.index];  // x: still the sum
    };
    const double left_branch = branch(node.left), right_branch = branch(node.right);
    double left = 0, right = 0;
    if (left_branch + right_branch == 0.0) {
      const auto share = [&](const TreeNode::Child& child) {
        return child.leaf ? x[v] / static_cast<double>(node.leaves)
                          : x[v] * (static_cast<double>(tree[child.index].leaves) /
                                    static_cast<double>(node.leaves));
      };
      left = share(node.left);
      right = share(node.right);
    } else {
      left = (x[v] * left_branch) / (left_branch + right_branch);
      right = (x[v] * right_branch) / (left_branch + right_branch);
    }
    const auto give = [&](const TreeNode::Child& child, double value) {
      (child.leaf ? weights : x)[child.index] = value + child.length;
    };
    give(node.left, left);
    give(node.right, right);
  }
  scale_to_rows(weights);
  return weights;
}

std::size_t cluster_rows(const MultipleAlignment& alignment, double identity,
                         std::vector<std::size_t>& cluster) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  cluster.assign(alignment.rows(), kNone);
  std::size_t count = 0;
  const Identities identities(alignment);
  std::vector<std::size_t> left(alignment.rows()), open;
  std::iota(left.begin(), left.end(), std::size_t{0});
  while (!left.empty()) {
    open.assign(1, left.back());
    left.pop_back();
    while (!open.empty()) {
      const std::size_t row = open.back();
      open.pop_back();
      cluster[row] = count;
      std::erase_if(left, [&](std::size_t other) {
        if (identities.of(row, other) < identity) return false;
        open.push_back(other);
        return true;
      });
    }
    ++count;
  }
  return count;
}

std::vector<double> cluster_weights(const MultipleAlignment& alignment, double identity) {
  std::vector<std::size_t> cluster;
  std::vector<double> size(cluster_rows(alignment, identity, cluster), 0.0);
  for (const std::size_t c : cluster) size[c] += 1.0;
  std::vector<double> weights;
  for (const std::size_t c : cluster) weights.push_back(1.0 / size[c]);
  scale_to_rows(weights);
  return weights;
}

}  // namespace hmmjit::build
