// Where each model of a file begins: so that a part of the models is read without the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/hmm_file.hpp"
#include "parts/part_format.hpp"

namespace hmmjit::parts {

/// The index of one model file.
struct ModelIndex {
  std::vector<std::uint64_t> offsets;    ///< of each model, and where the last one ends
  std::vector<std::uint64_t> positions;  ///< model nodes before each model, and of all

  std::uint64_t models() const { return offsets.size() - 1; }
  /// Models [first, last) of a share: those whose first position, of all positions laid end to end,
  /// lies in it. The shares of one number hold each model exactly once; some may hold none.
  std::pair<std::uint64_t, std::uint64_t> models_of(const Share& share) const;
};

/// Name of the index that belongs to a model file.
std::string index_path(const std::string& models);
/// Reads all models of `path` (or of the pressed database beside it) and writes their index beside
/// the file they come from. Fails with kInput for compressed files, whose bytes have no places.
/// Returns the name of the index.
Result<std::string> write_model_index(const std::string& path);
/// Fails with kInput where there is no index, or that of another or a changed file.
Result<ModelIndex> read_model_index(const std::string& path);
/// A reader of models [first, last), at least one.
Result<HmmReader> open_models_of(const std::string& path, const ModelIndex& index,
                                 std::uint64_t first, std::uint64_t last);

}  // namespace hmmjit::parts
