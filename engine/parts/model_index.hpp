// An index of a model file: finds models without reading the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/output_file.hpp"
#include "io/hmm_file.hpp"
#include "parts/part_format.hpp"

namespace hmmjit::parts {

/// The index of one model file.
struct ModelIndex {
  std::vector<std::uint64_t> offsets;    ///< byte offset of each model, then the end
  std::vector<std::uint64_t> positions;  ///< nodes before each model, then the total

  std::uint64_t models() const { return offsets.size() - 1; }
  /// Models [first, last) whose first node lies in `share` of all nodes. A share may have no
  /// models.
  std::pair<std::uint64_t, std::uint64_t> models_of(const Share& share) const;
};

/// The name of the index of a model file.
std::string index_path(const std::string& models);
/// Adds a profile file, its pressed files and its index, all called `what`.
void add_profile_files(std::vector<NamedFile>& files, const char* what, const std::string& path);
/// Reads all models of `path` (or of its pressed database), writes their index next to the file and
/// returns the index's name. Fails with kInput for compressed files, which do not allow seeking.
Result<std::string> write_model_index(const std::string& path);
/// Reads the index of `path`. Fails with kInput if there is none, or if the model file has changed
/// since.
Result<ModelIndex> read_model_index(const std::string& path);
/// A reader of models [first, last), first < last.
Result<HmmReader> open_models_of(const std::string& path, const ModelIndex& index,
                                 std::uint64_t first, std::uint64_t last);

}  // namespace hmmjit::parts
