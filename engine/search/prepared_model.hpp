// Models made ready for searches, and kept for any number of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "cpu/filters.hpp"
#include "model/profile.hpp"

namespace hmmjit {

/// The profiles of a model, and the tables of the vector filters. Thread-safe.
class PreparedModel {
 public:
  explicit PreparedModel(std::shared_ptr<const SearchModel> model) : model_(std::move(model)) {}
  const std::shared_ptr<const SearchModel>& model() const { return model_; }
  const Hmm& hmm() const { return model_->hmm; }
  const cpu::FilterTables& tables() const HMMJIT_EXCLUDES(mutex_);
  /// Resident bytes, with the tables.
  std::size_t bytes() const;

 private:
  const std::shared_ptr<const SearchModel> model_;
  mutable Mutex mutex_;
  // Made when first needed: with a device, many models never are.
  mutable std::optional<cpu::FilterTables> tables_ HMMJIT_GUARDED_BY(mutex_);
};

/// The models of a file, in its order.
using ResidentModels = std::vector<std::shared_ptr<const PreparedModel>>;

/// Prepares all models of a file. Null if they need more than `memory` bytes, or if one has no
/// score statistics, which depend on the options of a search. Fails with kInput.
Result<std::shared_ptr<const ResidentModels>> load_models(const std::string& path,
                                                          std::uint64_t memory);

}  // namespace hmmjit
