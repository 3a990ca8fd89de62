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

/// The profiles of a model, and the tables of the vector filters, each made when first needed: of
/// most models, no target of a small search comes as far as Viterbi. Thread-safe.
class PreparedModel {
 public:
  /// `model`: from begin_search_model(); no other owner may complete it or read what is completed.
  explicit PreparedModel(std::shared_ptr<SearchModel> model) : model_(std::move(model)) {}
  /// With all forms.
  std::shared_ptr<const SearchModel> model() const HMMJIT_EXCLUDES(mutex_);
  const Hmm& hmm() const { return model_->hmm; }
  /// For all filters but Viterbi.
  const cpu::FilterTables& tables() const HMMJIT_EXCLUDES(mutex_);
  const cpu::FilterTables& tables_with_viterbi() const HMMJIT_EXCLUDES(mutex_);
  /// Resident bytes once all is made.
  std::size_t bytes() const;

 private:
  cpu::FilterTables& made_tables() const HMMJIT_REQUIRES(mutex_);

  const std::shared_ptr<SearchModel> model_;
  mutable Mutex mutex_;
  mutable std::optional<cpu::FilterTables> tables_ HMMJIT_GUARDED_BY(mutex_);
};

/// The models of a file, in its order.
using ResidentModels = std::vector<std::shared_ptr<const PreparedModel>>;

/// Prepares all models of a file. Null if they need more than `memory` bytes, or if one has no
/// score statistics, which depend on the options of a search. Fails with kInput.
Result<std::shared_ptr<const ResidentModels>> load_models(const std::string& path,
                                                          std::uint64_t memory);

}  // namespace hmmjit
