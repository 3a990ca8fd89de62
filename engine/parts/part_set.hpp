// Several part files as one search: which belong together, what is missing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "parts/part_reader.hpp"

namespace hmmjit::parts {

/// Names of part files: of a folder, its "*.hjpart" in order of name, nothing else in it. Fails
/// with kInput where a name does not exist or a folder has no part.
Result<std::vector<std::string>> find_parts(std::span<const std::string> paths);

/// The parts that hold the same models, in the order of their targets.
struct ModelGroup {
  std::uint64_t first_model = 0, last_model = 0;
  Share model_part;
  std::vector<PartPtr> parts;
};

/// A share of the targets, for a share of the models, that no file holds.
struct MissingPart {
  Share part, model_part;
};

/// Parts of one search, each place at most once.
class PartSet {
 public:
  /// Opens all. A place held twice with the same content counts once. Fails with kInput where a
  /// file is damaged, belongs to another search (naming the first setting that differs), holds a
  /// place another one holds with other content or in part.
  static Result<PartSet> open(std::span<const std::string> paths);

  const PartSettings& settings() const { return groups_.front().parts.front()->settings(); }
  /// The part that begins with the first target and the first model held.
  const PartFile& first() const { return *groups_.front().parts.front(); }
  /// In the order of models.
  const std::vector<ModelGroup>& groups() const { return groups_; }
  /// In the order of array tasks: see array_number.
  const std::vector<MissingPart>& missing() const { return missing_; }

  /// Fails with kInput unless every part of the search is there.
  Status require_complete() const;
  /// The place of all parts together. Fails with kInput unless they are adjacent: the same share of
  /// the targets without a gap for models without a gap.
  Result<PartPlace> joined_place() const;

 private:
  std::vector<ModelGroup> groups_;
  std::vector<MissingPart> missing_;
};

/// "parts 3, 17, 40-42 of 64".
std::string describe_missing(std::span<const MissingPart> missing);
/// "3,17,40-42": numbers of the tasks of an array that makes all parts. Of part I/N for model part
/// J/K it is (J-1)*N + I.
std::string missing_array(std::span<const MissingPart> missing);

}  // namespace hmmjit::parts
