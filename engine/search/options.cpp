#include "search/options.hpp"

#include <random>

namespace hmmjit {

void set_seed(domain::DomainOptions& domain, std::uint32_t seed) {
  domain.reseed = seed != 0;
  domain.seed = seed != 0 ? seed : std::random_device{}() | 1u;
}

}  // namespace hmmjit
