// Generated inputs as text, so that tests of the interface see nothing of the internals.
#pragma once

#include <string>

namespace hmmjit::tests {

struct Inputs {
  std::string models;   ///< HMMER3 text
  std::string targets;  ///< FASTA
};
Inputs make_inputs(unsigned seed, int models, int targets);

}  // namespace hmmjit::tests
