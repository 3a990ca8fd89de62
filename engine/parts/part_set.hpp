// Sets of part files: checks that they belong to one search, and finds missing parts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "parts/part_reader.hpp"

namespace hmmjit::parts {

/// Names of part files. Replaces a folder by its "*.hjpart" files, sorted by name. Fails with
/// kInput if a folder has none.
Result<std::vector<std::string>> find_parts(std::span<const std::string> paths);

/// The parts that hold the same models, in target order.
struct ModelGroup {
  std::uint64_t first_model = 0, last_model = 0;
  Share model_part;
  std::vector<PartPtr> parts;
};

/// A share of the targets and of the models that no file holds.
struct MissingPart {
  Share part, model_part;
};

/// Disjoint parts of one search.
class PartSet {
 public:
  /// Opens all parts and ignores copies. Fails with kInput if a file is damaged, belongs to another
  /// search (naming the first setting that differs), or overlaps another part.
  static Result<PartSet> open(std::span<const std::string> paths);

  const PartSettings& settings() const { return groups_.front().parts.front()->settings(); }
  /// The part with the first target and the first model held.
  const PartFile& first() const { return *groups_.front().parts.front(); }
  /// In model order.
  const std::vector<ModelGroup>& groups() const { return groups_; }
  /// In the order of array tasks; see missing_array.
  const std::vector<MissingPart>& missing() const { return missing_; }

  /// Fails with kInput if parts of the search are missing.
  Status require_complete() const;
  /// The place of all parts together. Fails with kInput unless they are adjacent: the same
  /// contiguous targets for contiguous models.
  Result<PartPlace> joined_place() const;

 private:
  std::vector<ModelGroup> groups_;
  std::vector<MissingPart> missing_;
};

/// "parts 3, 17, 40-42 of 64".
std::string describe_missing(std::span<const MissingPart> missing);
/// "3,17,40-42": task numbers in a job array that makes all parts; part I/N for model part J/K has
/// number (J-1)*N + I.
std::string missing_array(std::span<const MissingPart> missing);

}  // namespace hmmjit::parts
