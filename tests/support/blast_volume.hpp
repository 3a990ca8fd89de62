// Writes volumes of BLAST databases for tests of their reader.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hmmjit::test_support {

/// An element of BER with its length, or with an open one.
inline std::string ber(std::uint8_t tag, std::string_view content, bool open = true) {
  std::string out(1, static_cast<char>(tag));
  if (open) return out.append("\x80").append(content).append(2, '\0');
  if (content.size() < 128) {
    out += static_cast<char>(content.size());
  } else {
    out.append("\x82").append(1, static_cast<char>(content.size() >> 8));
    out += static_cast<char>(content.size());
  }
  return out.append(content);
}
inline std::string ber_string(std::string_view text) { return ber(0x1a, text, false); }
inline std::string ber_integer(std::string_view bytes) { return ber(0x02, bytes, false); }
/// Member or choice `n`.
inline std::string ber_member(unsigned n, std::string_view content, bool open = true) {
  return ber(static_cast<std::uint8_t>(0xa0 + n), content, open);
}

/// Textseq-id; empty parts are left out.
inline std::string text_identifier(std::string_view name, std::string_view accession) {
  std::string parts;
  if (!name.empty()) parts += ber_member(0, ber_string(name));
  if (!accession.empty()) parts += ber_member(1, ber_string(accession));
  return ber(0x30, parts + ber_member(3, ber_integer("\x01")));
}

/// One Blast-def-line; `identifiers`: Seq-ids, one after another.
inline std::string definition_line(std::string_view title, std::string_view identifiers,
                                   bool open = true) {
  std::string out;
  if (!title.empty()) out += ber_member(0, ber_string(title), open);
  out += ber_member(1, ber(0x30, identifiers, open), open);
  out += ber_member(2, ber_integer(std::string_view("\0\x01", 2)), open);  // taxid
  out += ber_member(3, ber(0x30, ber_integer("\x01") + ber_integer("\x02"), open),
                    open);  // memberships
  return ber(0x30, out, open);
}

struct BlastRecord {
  std::string lines;     ///< definition lines, one after another
  std::string residues;  ///< NCBIstdaa or NCBI4na codes
};

enum class BlastResidues : std::uint8_t {
  kProteins,
  kNucleotides,
  kNucleotidesWide  ///< ambiguous ones in runs of up to 4,096 rather than 16
};

inline void append_number(std::string& out, std::uint64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

/// Runs of nucleotides that are not one of ACGT.
inline std::string ambiguous_runs(std::string_view codes, bool wide) {
  std::string words;
  for (std::size_t r = 0, end; r < codes.size(); r = end) {
    end = r + 1;
    while (end < codes.size() && end - r < (wide ? 4096u : 16u) && codes[end] == codes[r]) ++end;
    const std::uint64_t code = static_cast<std::uint8_t>(codes[r]), more = end - r - 1;
    if ((code & (code - 1)) == 0) continue;
    append_number(words, wide ? code << 28 | more << 16 : code << 28 | more << 24 | r);
    if (wide) append_number(words, r);
  }
  std::string out;
  if (!words.empty()) append_number(out, words.size() / 4 | (wide ? 0x80000000u : 0));
  return out + words;
}

/// .pin, .phr, .psq, or .nin, .nhr, .nsq
inline std::array<std::string, 3> blast_volume(const std::vector<BlastRecord>& records,
                                               std::uint32_t version = 4,
                                               BlastResidues kind = BlastResidues::kProteins) {
  std::array<std::string, 3> out;
  auto& [index, headers, sequences] = out;
  const auto number = [&](std::uint64_t value) { append_number(index, value); };
  const auto text = [&](std::string_view bytes) {
    number(bytes.size());
    index += bytes;
  };
  const bool proteins = kind == BlastResidues::kProteins;
  std::vector<std::size_t> header_starts{0}, sequence_starts{1}, ambiguity_starts;
  sequences.assign(1, '\0');
  std::size_t residues = 0, longest = 0;
  for (const BlastRecord& record : records) {
    headers += ber(0x30, record.lines);
    header_starts.push_back(headers.size());
    if (proteins) {
      sequences += record.residues;
      sequences += '\0';
    } else {
      const std::size_t at = sequences.size(), size = record.residues.size();
      sequences.append(size / 4 + 1, '\0');
      sequences.back() = static_cast<char>(size % 4);
      for (std::size_t r = 0; r < size; ++r) {
        const int code = record.residues[r], two = code == 2   ? 1
                                                   : code == 4 ? 2
                                                   : code == 8 ? 3
                                                               : 0;
        sequences[at + r / 4] = static_cast<char>(sequences[at + r / 4] | two << (6 - 2 * (r % 4)));
      }
      ambiguity_starts.push_back(sequences.size());
      sequences += ambiguous_runs(record.residues, kind == BlastResidues::kNucleotidesWide);
    }
    sequence_starts.push_back(sequences.size());
    residues += record.residues.size();
    longest = std::max(longest, record.residues.size());
  }
  number(version);
  number(proteins ? 1 : 0);
  if (version == 5) number(0);
  text("a title");
  if (version == 5) text("volume.pdb");
  text(std::string_view("Nov 23, 2026\0\0", 14));
  number(records.size());
  for (int shift = 0; shift < 64; shift += 8) index += static_cast<char>(residues >> shift);
  number(longest);
  for (const std::size_t start : header_starts) number(start);
  for (const std::size_t start : sequence_starts) number(start);
  if (proteins) return out;
  ambiguity_starts.push_back(sequences.size());
  for (const std::size_t start : ambiguity_starts) number(start);
  return out;
}

}  // namespace hmmjit::test_support
