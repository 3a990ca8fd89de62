#include "align/alignment_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ascii.hpp"

namespace hmmjit::align {
namespace {

using build::AlignedRows;
using F = SequenceFormat;
using Sink = std::function<void(std::string_view)>;

constexpr std::size_t kLine = 60;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

void write_lines(const Sink& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size(); at += kLine)
    out(fmt::format("{}\n", text.substr(at, kLine)));
}

// Aligned FASTA, or A2M (without gaps in insertions).
void write_fasta(const Sink& out, const AlignedRows& rows, bool a2m) {
  for (std::size_t n = 0; n < rows.rows.size(); ++n) {
    std::string head = '>' + rows.names[n];
    for (const auto* texts : {&rows.accessions, &rows.descriptions}) {
      if (!texts->empty() && !(*texts)[n].empty()) (head += ' ') += (*texts)[n];
    }
    out(head += '\n');
    if (!a2m) {
      write_lines(out, rows.rows[n]);
      continue;
    }
    std::string text;
    for (std::size_t c = 0; c < rows.reference.size(); ++c) {
      const char symbol = rows.rows[n][c] == 'O' ? 'X' : rows.rows[n][c];  // O: a free insertion
      if (is_ascii_letter(rows.reference[c]))
        text += is_ascii_letter(symbol) ? symbol : '-';
      else if (is_ascii_letter(symbol))
        text += symbol;
    }
    write_lines(out, text);
  }
}

using Lines = std::vector<std::pair<std::string, std::string_view>>;  // names and texts

Lines lines_of(const AlignedRows& rows) {
  Lines lines;
  for (std::size_t n = 0; n < rows.rows.size(); ++n)
    lines.emplace_back(rows.names[n], rows.rows[n]);
  return lines;
}

// Lines of `columns` in blocks of kLine columns, each with its name and then `between`.
void write_blocks(const Sink& out, const Lines& lines, std::size_t columns,
                  std::string_view between) {
  std::size_t names = 0;
  for (const auto& [name, text] : lines) names = std::max(names, name.size());
  for (std::size_t at = 0; at < columns; at += kLine) {
    if (at > 0) out("\n");
    for (const auto& [name, text] : lines)
      out(fmt::format("{}{}{}\n", padded(name, names), between, text.substr(at, kLine)));
  }
}

void write_psiblast(const Sink& out, AlignedRows rows) {
  for (std::string& text : rows.rows)
    std::ranges::replace_if(
        text, [](char c) { return !is_ascii_letter(c); }, '-');
  write_blocks(out, lines_of(rows), rows.reference.size(), "  ");
}

void write_selex(const Sink& out, const AlignedRows& rows) {
  Lines lines{{"#=RF", rows.reference}};
  if (!rows.mask.empty()) lines.emplace_back("#=MM", rows.mask);
  std::ranges::move(lines_of(rows), std::back_inserter(lines));
  write_blocks(out, lines, rows.reference.size(), " ");
}

// `*` in columns of equal letters.
std::string conservation(const AlignedRows& rows) {
  std::string line(rows.reference.size(), ' ');
  for (std::size_t c = 0; c < line.size() && !rows.rows.empty(); ++c) {
    const char first = ascii_upper(rows.rows.front()[c]);
    if (is_ascii_letter(first) && std::ranges::all_of(rows.rows, [&](const std::string& row) {
          return ascii_upper(row[c]) == first;
        }))
      line[c] = '*';
  }
  return line;
}

void write_clustal(const Sink& out, const AlignedRows& rows, std::string_view author) {
  out(fmt::format("{} multiple sequence alignment\n\n", author));
  const std::string conserved = conservation(rows);
  Lines lines = lines_of(rows);
  lines.emplace_back("", conserved);
  write_blocks(out, lines, rows.reference.size(), " ");
}

void write_phylip(const Sink& out, const AlignedRows& rows, bool sequential) {
  const std::size_t columns = rows.reference.size();
  out(fmt::format(" {} {}\n", rows.rows.size(), columns));
  const auto line = [&](std::size_t n, std::size_t at) {
    std::string text;
    if (at == 0) text = padded(rows.names[n].substr(0, kPhylipNameWidth), kPhylipNameWidth) + ' ';
    for (const char c : std::string_view(rows.rows[n]).substr(at, kLine))
      text += c == '.' ? '-' : c == '~' ? '?' : ascii_upper(c);
    out(text += '\n');
  };
  if (sequential) {
    for (std::size_t n = 0; n < rows.rows.size(); ++n) {
      for (std::size_t at = 0; at < columns; at += kLine) line(n, at);
    }
    return;
  }
  for (std::size_t at = 0; at < columns; at += kLine) {
    if (at > 0) out("\n");
    for (std::size_t n = 0; n < rows.rows.size(); ++n) line(n, at);
  }
}

}  // namespace

void write_alignment(const Sink& out, AlignedRows rows, SequenceFormat format) {
  switch (format) {
    case F::kPfam:
      return build::write_stockholm(out, rows, {}, std::numeric_limits<std::size_t>::max());
    case F::kA2m:
    case F::kAlignedFasta:
      return write_fasta(out, rows, format == F::kA2m);
    case F::kPsiBlast:
      return write_psiblast(out, std::move(rows));
    case F::kSelex:
      return write_selex(out, rows);
    case F::kClustal:
      return write_clustal(out, rows, "CLUSTAL 2.1");
    case F::kClustalLike:
      return write_clustal(out, rows, "EASEL (0.49)");
    case F::kPhylip:
    case F::kPhylipSequential:
      return write_phylip(out, rows, format == F::kPhylipSequential);
    default:
      return build::write_stockholm(out, rows, {});
  }
}

}  // namespace hmmjit::align
