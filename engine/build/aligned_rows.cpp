#include "build/aligned_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <span>
#include <string_view>

#include "build/row_paths.hpp"

namespace hmmjit::build {
namespace {

// Columns of the nodes.
struct Columns {
  std::vector<std::size_t> inserted;  // [M+1] most residues inserted after a node
  std::vector<bool> used;             // [M+1] some row has a residue at the node
  std::vector<std::size_t> after;     // [M+1] first column after the node
  std::size_t width = 0;
};

Columns place_columns(const MultipleAlignment& alignment, const std::vector<bool>& match) {
  const auto M = static_cast<std::size_t>(std::ranges::count(match, true));
  Columns columns{std::vector<std::size_t>(M + 1), std::vector<bool>(M + 1),
                  std::vector<std::size_t>(M + 1)};
  std::vector<PathElement> path;
  for (std::size_t row = 0; row < alignment.rows(); ++row) {
    find_row_path(alignment, row, match, path);
    std::vector<std::size_t> inserted(M + 1);
    for (const PathElement& at : path) {
      const auto k = static_cast<std::size_t>(at.k);
      if (at.step == Step::kInsert) ++inserted[k];
      if (at.step == Step::kMatch) columns.used[k] = true;
    }
    std::ranges::transform(columns.inserted, inserted, columns.inserted.begin(),
                           [](std::size_t a, std::size_t b) { return std::max(a, b); });
  }
  columns.width = columns.inserted[0];
  for (std::size_t k = 1; k <= M; ++k) {
    columns.after[k] = columns.width + (columns.used[k] ? 1 : 0);
    columns.width = columns.after[k] + columns.inserted[k];
  }
  return columns;
}

std::string lay_out(const std::vector<PathElement>& path, std::span<const Residue> codes,
                    const Alphabet& alphabet, const Columns& columns) {
  std::string row(columns.width, '.');
  const std::size_t M = columns.after.size() - 1;
  for (std::size_t k = 1; k <= M; ++k) {
    if (columns.used[k]) row[columns.after[k] - 1] = '-';
  }
  std::size_t c = 0;
  for (std::size_t z = 0; z < path.size(); ++z) {
    const PathElement& at = path[z];
    const auto k = static_cast<std::size_t>(at.k);
    switch (at.step) {
      case Step::kMatch:
        row[columns.after[k] - 1] = alphabet.symbols[codes[at.column]];
        c = columns.after[k];
        break;
      case Step::kDelete:
        if (columns.used[k]) row[columns.after[k] - 1] = '-';  // a fragment may begin with it
        c = columns.after[k];
        break;
      case Step::kInsert:
        row[c++] = static_cast<char>(
            std::tolower(static_cast<unsigned char>(alphabet.symbols[codes[at.column]])));
        break;
      case Step::kMissing:
        if (path[z - 1].step == Step::kBegin) {
          const std::size_t end = columns.after[static_cast<std::size_t>(path[z + 1].k)];
          for (c = 0; c < end; ++c) row[c] = '~';
        } else {
          for (; c < row.size(); ++c) row[c] = '~';
        }
        break;
      case Step::kBegin:
      case Step::kEnd:
        break;
    }
  }
  return row;
}

// Residues inserted after a node: one half is left-aligned, the other right-aligned.
void justify_insertions(std::string& row, const Columns& columns) {
  const std::size_t M = columns.after.size() - 1;
  for (std::size_t k = 0; k < M; ++k) {
    if (columns.inserted[k] < 2) continue;
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(columns.after[k]);
    const auto end = begin + static_cast<std::ptrdiff_t>(columns.inserted[k]);
    const auto letters = std::count_if(begin, end, [](unsigned char c) { return std::isalpha(c); });
    const auto first = begin + (k == 0 ? 0 : letters / 2);
    std::stable_partition(first, end, [](char c) { return c == '.'; });
  }
}

// To a width in bytes, as HMMER pads; fmt counts the columns of a terminal.
std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

AlignedRows align_rows(const MultipleAlignment& alignment, const std::vector<bool>& match) {
  const Columns columns = place_columns(alignment, match);
  AlignedRows aligned;
  std::vector<PathElement> path;  // computed twice: all paths of a deep alignment would not fit
  for (std::size_t row = 0; row < alignment.rows(); ++row) {
    find_row_path(alignment, row, match, path);
    aligned.rows.push_back(lay_out(path, alignment.row(row), *alignment.alphabet, columns));
    justify_insertions(aligned.rows.back(), columns);
  }
  aligned.reference.assign(columns.width, '.');
  for (std::size_t k = 1; k < columns.after.size(); ++k) {
    if (columns.used[k]) aligned.reference[columns.after[k] - 1] = 'x';
  }
  return aligned;
}

void append_aligned_rows(std::string& out, const AlignedRows& rows,
                         const MultipleAlignment& alignment) {
  constexpr std::size_t kBlock = 200;
  constexpr std::size_t kMarkup = 8;  // "#=GC RF "
  std::vector<std::string> names = alignment.row_names;
  const bool repeated =
      std::set<std::string_view>(names.begin(), names.end()).size() < names.size();
  const std::size_t digits = std::to_string(names.size()).size();
  std::size_t longest = 0;
  for (std::size_t row = 0; row < names.size(); ++row) {
    if (repeated) names[row] = fmt::format("{:0{}}|{}", row, digits, names[row]);
    longest = std::max(longest, names[row].size());
  }
  const auto to = std::back_inserter(out);
  out += "# STOCKHOLM 1.0\n";
  if (repeated)
    out += "# WARNING: seq names have been made unique by adding a prefix of \"<seq#>|\"\n";
  if (!alignment.name.empty()) fmt::format_to(to, "#=GF ID {}\n", alignment.name);
  if (alignment.accession) fmt::format_to(to, "#=GF AC {}\n", *alignment.accession);
  if (alignment.description) fmt::format_to(to, "#=GF DE {}\n", *alignment.description);
  out += '\n';
  if (rows.weighted) {
    for (std::size_t row = 0; row < names.size(); ++row)
      fmt::format_to(to, "#=GS {} WT {:.2f}\n", padded(names[row], longest), rows.weights[row]);
    out += '\n';
  }
  const std::size_t margin = std::max(longest + 1, kMarkup);
  for (std::size_t at = 0; at < rows.reference.size(); at += kBlock) {
    if (at > 0) out += '\n';
    for (std::size_t row = 0; row < names.size(); ++row)
      fmt::format_to(to, "{} {}\n", padded(names[row], margin - 1),
                     std::string_view(rows.rows[row]).substr(at, kBlock));
    fmt::format_to(to, "#=GC {:{}} {}\n", "RF", margin - 6,
                   std::string_view(rows.reference).substr(at, kBlock));
  }
  out += "//\n";
}

}  // namespace hmmjit::build
