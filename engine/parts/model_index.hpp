// An index of a model file, for reading some of its models without the others.
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
  std::vector<std::uint64_t> offsets;    ///< start of each model, and end of the last
  std::vector<std::uint64_t> positions;  ///< model nodes before each model, and in total

  std::uint64_t models() const { return offsets.size() - 1; }
  /// Models [first, last) of a share: those whose first node lies in it when all nodes are laid end
  /// to end. Some shares may be empty.
  std::pair<std::uint64_t, std::uint64_t> models_of(const Share& share) const;
};

/// The name of the index of a model file.
std::string index_path(const std::string& models);
/// Adds a file of profiles, its pressed files and its index.
void add_profile_files(std::vector<NamedFile>& files, const char* what, const std::string& path);
/// Reads all models of `path` (or of its pressed database), writes their index next to the file and
/// returns the index's name. Fails with kInput for compressed files, which cannot be positioned.
Result<std::string> write_model_index(const std::string& path);
/// Fails with kInput if there is no index or the file has changed since.
Result<ModelIndex> read_model_index(const std::string& path);
/// A reader of models [first, last), at least one.
Result<HmmReader> open_models_of(const std::string& path, const ModelIndex& index,
                                 std::uint64_t first, std::uint64_t last);

}  // namespace hmmjit::parts
