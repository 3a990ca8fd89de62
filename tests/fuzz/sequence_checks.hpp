// Reads a whole input and checks the guarantees of every reader.
#pragma once

#include "io/sequence_file.hpp"
#include "tests/fuzz/entry.hpp"

/// The targets as text, followed by the error.
inline std::string read_all(std::string_view bytes, std::optional<hmmjit::SequenceFormat> format,
                            std::size_t chunk, std::uint64_t block_residues) {
  using namespace hmmjit;
  auto source = open_memory_source("fuzz", bytes, chunk);
  if (!source) return source.error().to_string();
  auto reader = SequenceReader::open(std::move(*source), {amino_alphabet(), format});
  if (!reader) return reader.error().to_string();
  std::string all;
  while (true) {
    TargetBlock block;
    auto more = reader->read_block(block, block_residues);
    for (std::size_t i = 0; i < block.size(); ++i) {
      TargetView t = block[i];
      require(t.residues.data()[-1] == kPaddingCode);
      require(t.residues.data()[t.residues.size()] == kPaddingCode);
      for (Residue x : t.residues) require(x < amino_alphabet().Kp);
      all.append(t.name).append("|").append(t.accession).append("|").append(t.description);
      all.append("|").append(reinterpret_cast<const char*>(t.residues.data()), t.residues.size());
      all.append("\n");
    }
    if (!more) {
      require(!more.error().message.empty());
      return all + more.error().to_string();
    }
    if (!*more) {
      require(block.size() == 0);
      return all;
    }
  }
}
