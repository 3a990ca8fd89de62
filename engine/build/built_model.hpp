// A core model, and what a profile file stores about its construction.
#pragma once

#include <optional>
#include <string>

#include "model/hmm.hpp"

namespace hmmjit::build {

/// Value type.
struct BuiltModel {
  Hmm hmm;
  int sequences = 0;                         ///< rows of the alignment
  std::optional<float> effective_sequences;  ///< absent for a single-sequence model
  std::string accessibility;                 ///< M characters (SA_cons), or none
  std::string command_log;                   ///< empty: none
};

}  // namespace hmmjit::build
