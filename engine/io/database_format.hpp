// The header of a database file, shared by reader and writer.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "core/digest.hpp"
#include "io/target_database.hpp"

namespace hmmjit::database_format {

// Numbers are stored in native byte order; every supported machine is little-endian.
static_assert(std::endian::native == std::endian::little);

// As in PNG: the top bit of the first byte, line ends and a control character reveal a transfer in
// text mode.
inline constexpr std::string_view kMagic = "\x89HJDB\r\n\x1a";
/// Sections start at multiples of this.
inline constexpr std::uint64_t kSectionAlignment = 64;

struct Section {
  char name[16];  // zero filled
  std::uint64_t offset, bytes, checksum;
};

enum SectionIndex { kResidues, kTargets, kText, kOrder, kAbout, kSections };
inline constexpr std::array<std::string_view, kSections> kSectionNames = {"residues", "targets",
                                                                          "text", "order", "about"};

struct Header {
  char magic[8];
  std::uint32_t version, header_bytes;
  std::uint64_t file_bytes;
  std::uint32_t alphabet, codes;
  std::uint64_t targets, residues;
  std::uint32_t longest, shortest;
  std::uint32_t alignment, padding_code;
  char symbols[32];  // character of each residue code, zero filled
  std::uint32_t sections, reserved;
  Section section[kSections];
  char zeros[200];
  std::uint64_t checksum;  // of all bytes before it
};
static_assert(sizeof(Section) == 40 && sizeof(Header) == 512);

inline constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Bytes of a target of `length` residues, including its padding (at least one byte).
inline constexpr std::uint64_t stored_bytes(std::uint64_t length) {
  return round_up(length + 1, 16);
}

/// Equal for databases with the same targets in the same order, even from other source files.
inline std::uint64_t identity(const Header& header) {
  std::array<std::uint64_t, kAbout + 1> of = {header.alphabet};
  for (int i = 0; i < kAbout; ++i) of[static_cast<std::size_t>(i) + 1] = header.section[i].checksum;
  return checksum(of.data(), sizeof of);
}

/// The header as a summary.
inline DatabaseSummary summary_of(const Header& header) {
  DatabaseSummary summary;
  summary.alphabet = &alphabet_of(static_cast<AlphabetType>(header.alphabet));
  summary.targets = header.targets;
  summary.residues = header.residues;
  summary.longest = header.longest;
  summary.shortest = header.shortest;
  summary.file_bytes = header.file_bytes;
  summary.identity = identity(header);
  for (std::size_t i = 0; i < kSections; ++i) {
    const Section& section = header.section[i];
    summary.sections.push_back({kSectionNames[i], section.offset, section.bytes, section.checksum});
  }
  return summary;
}

}  // namespace hmmjit::database_format
