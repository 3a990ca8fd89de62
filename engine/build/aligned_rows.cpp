#include "build/aligned_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "core/ascii.hpp"
#include "domain/alignment.hpp"

namespace hmmjit::build {
namespace {

// Pads to a width in bytes, like HMMER; fmt counts terminal columns.
std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.resize(std::max(text.size(), width), ' ');
  return out;
}

}  // namespace

void MeanPosteriors::add(int k, float posterior) {
  const auto node = static_cast<std::size_t>(k - 1);
  sums_[node] += static_cast<double>(posterior);
  ++counts_[node];
}

std::string MeanPosteriors::codes() const {
  std::string out(sums_.size(), '.');
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (counts_[k] > 0)
      out[k] =
          domain::posterior_code(static_cast<float>(sums_[k] / static_cast<double>(counts_[k])));
  }
  return out;
}

ColumnLayout::ColumnLayout(int M, Options options)
    : options_(options),
      inserted_(static_cast<std::size_t>(M) + 1),
      used_(static_cast<std::size_t>(M) + 1, options.all_nodes),
      after_(static_cast<std::size_t>(M) + 1) {}

void ColumnLayout::add(std::span<const PathElement> path) {
  std::size_t run = 0;  // residues inserted after a node so far
  for (std::size_t z = 0; z < path.size(); ++z) {
    if (path[z].step == Step::kMatch) add_match(path[z].k);
    if (path[z].step != Step::kInsert) continue;
    run = z > 0 && path[z - 1].step == Step::kInsert && path[z - 1].k == path[z].k ? run + 1 : 1;
    add_insertion(path[z].k, run);
  }
}

void ColumnLayout::add_insertion(int k, std::size_t count) {
  std::size_t& most = inserted_[static_cast<std::size_t>(k)];
  most = std::max(most, count);
}

void ColumnLayout::place() {
  if (options_.trimmed) inserted_.front() = inserted_.back() = 0;
  width_ = inserted_[0];
  for (std::size_t k = 1; k < after_.size(); ++k) {
    after_[k] = width_ + (used_[k] ? 1 : 0);
    width_ = after_[k] + inserted_[k];
  }
}

std::string ColumnLayout::row(std::span<const PathElement> path, std::span<const Residue> codes,
                              const Alphabet& alphabet, std::string* marks) const {
  const std::size_t M = after_.size() - 1;
  std::string row = line('-');
  std::string placed(marks != nullptr ? width_ : 0, '.');
  std::size_t c = 0;
  for (std::size_t z = 0; z < path.size(); ++z) {
    const PathElement& at = path[z];
    const auto k = static_cast<std::size_t>(at.k);
    switch (at.step) {
      case Step::kMatch:
        row[after_[k] - 1] = alphabet.symbols[codes[at.column]];
        if (marks != nullptr) placed[after_[k] - 1] = (*marks)[z];
        c = after_[k];
        break;
      case Step::kDelete:
        if (used_[k]) row[after_[k] - 1] = '-';  // a fragment may begin with a deletion
        c = after_[k];
        break;
      case Step::kInsert:
        if (options_.trimmed && (k == 0 || k == M)) break;
        if (path[z - 1].step != Step::kInsert || path[z - 1].k != at.k) c = after_[k];
        if (marks != nullptr) placed[c] = (*marks)[z];
        row[c++] = ascii_lower(alphabet.symbols[codes[at.column]]);
        break;
      case Step::kMissing:
        if (path[z - 1].step == Step::kBegin) {
          const std::size_t end = after_[static_cast<std::size_t>(path[z + 1].k)];
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
  justify(row, marks != nullptr ? &placed : nullptr);
  if (marks != nullptr) *marks = std::move(placed);
  return row;
}

// Left-aligns the first half of each node's insertion and right-aligns the rest.
void ColumnLayout::justify(std::string& row, std::string* marks) const {
  for (std::size_t k = 0; k + 1 < after_.size(); ++k) {
    if (inserted_[k] < 2) continue;
    const std::size_t begin = k == 0 ? 0 : after_[k], end = begin + inserted_[k];
    std::size_t letters = 0;
    for (std::size_t c = begin; c < end; ++c) letters += is_ascii_letter(row[c]);
    const std::size_t first = begin + (k == 0 ? 0 : letters / 2);
    std::size_t to = end;
    for (std::size_t from = end; from-- > first;) {
      if (row[from] == '.' || row[from] == '-') continue;  // '-' is a gap of the sequence itself
      row[--to] = row[from];
      if (marks != nullptr) (*marks)[to] = (*marks)[from];
    }
    std::fill(row.data() + first, row.data() + to, '.');
    if (marks != nullptr) std::fill(marks->data() + first, marks->data() + to, '.');
  }
}

std::string ColumnLayout::line(std::string_view nodes) const {
  std::string line(width_, '.');
  for (std::size_t k = 1; k < after_.size(); ++k) {
    if (used_[k]) line[after_[k] - 1] = nodes[k - 1];
  }
  return line;
}

std::string ColumnLayout::line(char of_nodes) const {
  return line(std::string(after_.size() - 1, of_nodes));
}

AlignedRows align_rows(const MultipleAlignment& alignment, const std::vector<bool>& match) {
  const auto M = static_cast<int>(std::ranges::count(match, true));
  ColumnLayout layout(M, {});
  std::vector<PathElement> path;  // computed twice: all paths together may exceed memory
  for (std::size_t row = 0; row < alignment.rows(); ++row) {
    find_row_path(alignment, row, match, path);
    layout.add(path);
  }
  layout.place();
  AlignedRows aligned;
  aligned.names = alignment.row_names;
  for (std::size_t row = 0; row < alignment.rows(); ++row) {
    find_row_path(alignment, row, match, path);
    aligned.rows.push_back(layout.row(path, alignment.row(row), *alignment.alphabet));
  }
  aligned.reference = layout.line('x');
  return aligned;
}

void StockholmLayout::append_head(std::string& out, bool numbered) {
  out += "# STOCKHOLM 1.0\n";
  if (numbered)
    out += "# WARNING: seq names have been made unique by adding a prefix of \"<seq#>|\"\n";
}

std::string StockholmLayout::numbered_name(std::size_t row, std::size_t rows,
                                           const std::string& name) {
  return fmt::format("{:0{}}|{}", row, std::to_string(rows).size(), name);
}

std::size_t StockholmLayout::margin() const {
  return posteriors ? std::max<std::size_t>(13, longest + 9)
                    : std::max<std::size_t>(8, longest + 1);
}

void StockholmLayout::append_annotation(std::string& out, const std::string& name,
                                        std::string_view tag, std::string_view text) const {
  fmt::format_to(std::back_inserter(out), "#=GS {} {} {}\n", padded(name, longest), tag, text);
}

void StockholmLayout::append_row(std::string& out, const std::string& name,
                                 std::string_view columns,
                                 std::string_view posteriors_of_row) const {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "{} {}\n", padded(name, margin() - 1), columns);
  if (!posteriors_of_row.empty())
    fmt::format_to(to, "#=GR {} {} {}\n", padded(name, longest),
                   padded("PP", margin() - longest - 7), posteriors_of_row);
}

void StockholmLayout::append_columns(std::string& out, std::string_view tag,
                                     std::string_view columns) const {
  fmt::format_to(std::back_inserter(out), "#=GC {} {}\n", padded(tag, margin() - 6), columns);
}

void write_stockholm(const std::function<void(std::string_view)>& out, const AlignedRows& rows,
                     const AlignmentTitle& title, std::size_t block) {
  std::vector<std::string> names = rows.names;
  const bool repeated =
      std::set<std::string_view>(names.begin(), names.end()).size() < names.size();
  StockholmLayout layout{.posteriors = !rows.posteriors.empty()};
  for (std::size_t row = 0; row < names.size(); ++row) {
    if (repeated) names[row] = layout.numbered_name(row, names.size(), names[row]);
    layout.longest = std::max(layout.longest, names[row].size());
  }
  std::string text;
  const auto pass_on = [&] {
    out(text);
    text.clear();
  };
  const auto to = std::back_inserter(text);
  layout.append_head(text, repeated);
  if (!title.name.empty()) fmt::format_to(to, "#=GF ID {}\n", title.name);
  if (title.accession) fmt::format_to(to, "#=GF AC {}\n", *title.accession);
  if (title.description) fmt::format_to(to, "#=GF DE {}\n", *title.description);
  text += '\n';
  if (rows.weighted) {
    for (std::size_t row = 0; row < names.size(); ++row)
      layout.append_annotation(text, names[row], "WT", fmt::format("{:.2f}", rows.weights[row]));
    text += '\n';
  }
  for (const auto& [tag, texts] : {std::pair("AC", &rows.accessions), {"DE", &rows.descriptions}}) {
    bool any = false;
    for (std::size_t row = 0; row < texts->size(); ++row) {
      if ((*texts)[row].empty()) continue;
      layout.append_annotation(text, names[row], tag, (*texts)[row]);
      pass_on();
      any = true;
    }
    if (any) text += '\n';
  }
  for (std::size_t at = 0; at < rows.reference.size(); at += block) {
    const auto part = [&](const std::string& line) {
      return std::string_view(line).substr(at, block);
    };
    if (at > 0) text += '\n';
    for (std::size_t row = 0; row < names.size(); ++row) {
      const bool with = layout.posteriors && !rows.posteriors[row].empty();
      layout.append_row(text, names[row], part(rows.rows[row]),
                        with ? part(rows.posteriors[row]) : std::string_view());
      pass_on();
    }
    for (const auto& [tag, line] : {std::pair("PP_cons", &rows.mean_posteriors),
                                    {"RF", &rows.reference},
                                    {"MM", &rows.mask}}) {
      if (!line->empty()) layout.append_columns(text, tag, part(*line));
    }
  }
  text += "//\n";
  pass_on();
}

}  // namespace hmmjit::build
