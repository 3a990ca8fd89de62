#include "search/prepared_model.hpp"

#include <utility>

#include "io/hmm_file.hpp"

namespace hmmjit {

cpu::FilterTables& PreparedModel::made_tables() const {
  if (!tables_) tables_.emplace(*model_);
  return *tables_;
}

std::shared_ptr<const SearchModel> PreparedModel::model() const {
  const MutexLock lock(mutex_);
  complete(*model_);
  return model_;
}

const cpu::FilterTables& PreparedModel::tables() const {
  const MutexLock lock(mutex_);
  return made_tables();
}

const cpu::FilterTables& PreparedModel::tables_with_viterbi() const {
  const MutexLock lock(mutex_);
  complete(*model_);
  made_tables().add_words(model_->words);
  return *tables_;
}

std::size_t PreparedModel::bytes() const {
  // Profile and odds, twice (natural and striped), bytes, words and the core model; then byte, word
  // and their striped copies, padded to the widest vectors.
  const auto nodes = static_cast<std::size_t>(hmm().M);
  return (nodes + 16) * (3 * kMaxCodes * sizeof(float) + kMaxCodes * 3 + 60 * sizeof(float)) +
         (nodes + 64) * (kMaxCodes * 4 + 32) + 4096;
}

Result<std::shared_ptr<const ResidentModels>> load_models(const std::string& path,
                                                          std::uint64_t memory) {
  auto models = std::make_shared<ResidentModels>();
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  for (std::uint64_t bytes = 0;;) {
    HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader.next());
    if (!hmm) return models;
    if (hmm->needs_calibration) return nullptr;
    models->push_back(std::make_shared<PreparedModel>(begin_search_model(*std::move(hmm))));
    bytes += models->back()->bytes();
    if (bytes > memory) return nullptr;
  }
}

}  // namespace hmmjit
