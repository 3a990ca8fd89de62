// Helpers of the reader tests.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit::io_test {

using test_support::read_file;
using test_support::TemporaryFolder;

/// One gzip member.
inline std::string gzip(const std::string& bytes, int level = 6) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// One zstd frame.
inline std::string zstd(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

struct Target {
  std::string name, accession, description, residues;
  bool operator==(const Target&) const = default;
};
inline void PrintTo(const Target& t, std::ostream* out) {
  *out << t.name << "|" << t.accession << "|" << t.description << "|" << t.residues.substr(0, 200);
}

struct ReadResult {
  std::vector<Target> targets;
  std::string error;  ///< of opening or reading; empty: none
  ErrorCode code = ErrorCode::kInternal;
};

inline std::vector<Target> targets_of(const TargetBlock& block, const Alphabet& alphabet) {
  std::vector<Target> out;
  for (std::size_t i = 0; i < block.size(); ++i) {
    TargetView view = block[i];
    EXPECT_EQ(view.residues.data()[view.residues.size()], kPaddingCode);
    Target t{
        std::string(view.name), std::string(view.accession), std::string(view.description), {}};
    for (Residue x : view.residues) t.residues += alphabet.symbols[x];
    out.push_back(std::move(t));
  }
  return out;
}

/// Without its last target, no block holds as many bytes of entries and text as it may residues.
inline void expect_bounded(const TargetBlock& block, std::uint64_t block_residues) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i + 1 < block.size(); ++i)
    bytes += sizeof(TargetEntry) + block[i].name.size() + block[i].accession.size() +
             block[i].description.size();
  EXPECT_LT(bytes, block_residues);
}

/// All targets, read in blocks of `block_residues`.
inline ReadResult read_targets(Result<SequenceReader> reader,
                               std::uint64_t block_residues = std::uint64_t{1} << 22,
                               const Alphabet& alphabet = amino_alphabet()) {
  ReadResult result;
  auto failed = [&](const Error& error) {
    result.error = error.to_string();
    result.code = error.code;
  };
  if (!reader) {
    failed(reader.error());
    return result;
  }
  while (true) {
    TargetBlock block;
    Result<bool> more = reader->read_block(block, block_residues);
    EXPECT_EQ(block.first_index(), result.targets.size());
    expect_bounded(block, block_residues);
    for (Target& t : targets_of(block, alphabet)) result.targets.push_back(std::move(t));
    if (!more) failed(more.error());
    if (!more || !*more) return result;
  }
}

inline ReadResult read_text(const std::string& text,
                            std::optional<SequenceFormat> format = std::nullopt,
                            const std::string& name = "text", std::size_t chunk = 1 << 20,
                            std::uint64_t block_residues = std::uint64_t{1} << 22) {
  auto source = open_memory_source(name, text, chunk);
  if (!source) return read_targets(std::unexpected(source.error()));
  return read_targets(SequenceReader::open(std::move(*source), {amino_alphabet(), format}),
                      block_residues);
}

struct ModelsResult {
  std::vector<Hmm> models;
  std::string error;
  ErrorCode code = ErrorCode::kInternal;
};

inline ModelsResult read_models(Result<HmmReader> reader) {
  ModelsResult result;
  auto failed = [&](const Error& error) {
    result.error = error.to_string();
    result.code = error.code;
  };
  if (!reader) {
    failed(reader.error());
    return result;
  }
  while (true) {
    Result<std::optional<Hmm>> hmm = reader->next();
    if (!hmm) failed(hmm.error());
    if (!hmm || !*hmm) return result;
    result.models.push_back(std::move(**hmm));
  }
}

inline ModelsResult read_models_text(const std::string& text, std::size_t chunk = 1 << 20) {
  auto source = open_memory_source("text", text, chunk);
  if (!source) return read_models(std::unexpected(source.error()));
  return read_models(HmmReader::open(std::move(*source)));
}

/// Bitwise equality of all members that a search uses (floats are compared as bits).
::testing::AssertionResult same_model(const Hmm& a, const Hmm& b, bool calibration = true);

}  // namespace hmmjit::io_test
