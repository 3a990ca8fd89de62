#include "search/options.hpp"

#include "core/random_seed.hpp"

namespace hmmjit {

void set_seed(domain::DomainOptions& domain, std::uint32_t seed) {
  domain.reseed = seed != 0;
  domain.seed = seed != 0 ? seed : random_seed();
}

}  // namespace hmmjit
