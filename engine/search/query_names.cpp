#include "search/query_names.hpp"

#include <string>

namespace hmmjit {

QueryNames names_of(const TargetView& sequence) {
  QueryNames names{std::string(sequence.name)};
  if (!sequence.accession.empty()) names.accession.emplace(sequence.accession);
  if (!sequence.description.empty()) names.description.emplace(sequence.description);
  return names;
}

}  // namespace hmmjit
