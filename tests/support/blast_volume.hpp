// Writes volumes of BLAST databases for tests of their reader.
#pragma once

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
  std::string residues;  ///< NCBIstdaa codes
};

/// .pin, .phr, .psq
inline std::array<std::string, 3> blast_volume(const std::vector<BlastRecord>& records,
                                               std::uint32_t version = 4) {
  std::array<std::string, 3> out;
  auto& [index, headers, sequences] = out;
  const auto number = [&](std::uint64_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) index += static_cast<char>(value >> shift);
  };
  const auto text = [&](std::string_view bytes) {
    number(bytes.size());
    index += bytes;
  };
  std::vector<std::size_t> header_starts{0}, sequence_starts{1};
  sequences.assign(1, '\0');
  std::size_t residues = 0, longest = 0;
  for (const BlastRecord& record : records) {
    headers += ber(0x30, record.lines);
    header_starts.push_back(headers.size());
    sequences.append(record.residues).append(1, '\0');
    sequence_starts.push_back(sequences.size());
    residues += record.residues.size();
    longest = std::max(longest, record.residues.size());
  }
  number(version);
  number(1);
  if (version == 5) number(0);
  text("a title");
  if (version == 5) text("volume.pdb");
  text(std::string_view("Nov 23, 2026\0\0", 14));
  number(records.size());
  for (int shift = 0; shift < 64; shift += 8) index += static_cast<char>(residues >> shift);
  number(longest);
  for (const std::size_t start : header_starts) number(start);
  for (const std::size_t start : sequence_starts) number(start);
  return out;
}

}  // namespace hmmjit::test_support
