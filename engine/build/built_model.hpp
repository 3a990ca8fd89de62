// A core model as the builder keeps it: with what a file says of how it was built.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/hmm.hpp"

namespace hmmjit::build {

/// Value type.
struct BuiltModel {
  Hmm hmm;
  int sequences = 0;                         ///< rows the model was built from
  std::optional<float> effective_sequences;  ///< absent for a single-sequence model
  std::optional<std::uint32_t> checksum;     ///< of the alignment
  std::vector<int> map;                      ///< [M+1] alignment column of a node, from 1
  std::string accessibility;                 ///< M characters (SA_cons), or none
  std::string command_log;                   ///< empty: none
};

}  // namespace hmmjit::build
