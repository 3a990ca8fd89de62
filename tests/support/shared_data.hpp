// The folder of shared reference data (real models, sequences, expected results), and its models
// and sequences. Tests that need it skip, saying so, where it is absent.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/hmm.hpp"

namespace hmmjit::test_support {

/// $HMMJIT_SHARED, else "shared" next to the source folder, else one level further up.
std::optional<std::filesystem::path> shared_folder();

/// Throws std::runtime_error with the reader's error.
std::vector<Hmm> read_models(const std::filesystem::path& path);

struct Sequence {
  std::string name;
  std::vector<Residue> residues;
};
/// Proteins; throws like read_models.
std::vector<Sequence> read_sequences(const std::filesystem::path& path);
/// A model as HMMER3/f text with the five decimals of such files, so that all programs read equal
/// models.
std::string model_text(const Hmm& hmm);
/// FASTA text of a target ('_' for the gap code, which FASTA spells so).
std::string fasta_text(const Sequence& sequence, const Alphabet& alphabet = amino_alphabet());
std::vector<Residue> digitise(std::string_view text, const Alphabet& alphabet = amino_alphabet());

}  // namespace hmmjit::test_support

/// Declares `name` as the shared folder, or skips the running test.
#define HMMJIT_SHARED_OR_SKIP(name)                                       \
  const auto name##_found = hmmjit::test_support::shared_folder();        \
  if (!name##_found) {                                                    \
    GTEST_SKIP() << "shared reference data not found: set HMMJIT_SHARED"; \
  }                                                                       \
  const std::filesystem::path& name = *name##_found
