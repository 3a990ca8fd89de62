// The flags word in binary HMMER3 models (.h3m), which marks the optional parts of a record (HMMER
// user's guide); shared by the reader in engine/io and the writer in engine/build.
#pragma once

#include <cstdint>

namespace hmmjit::hmm_binary {

enum Flag : std::uint32_t {
  kDescription = 1u << 1,
  kRf = 1u << 2,
  kCs = 1u << 3,
  kProbabilities = 1u << 5,
  kStatistics = 1u << 7,
  kMap = 1u << 8,
  kAccession = 1u << 9,
  kGa = 1u << 10,
  kTc = 1u << 11,
  kNc = 1u << 12,
  kAccessibility = 1u << 13,
  kComposition = 1u << 14,
  kChecksum = 1u << 15,
  kConsensus = 1u << 16,
  kMask = 1u << 17,
};

}  // namespace hmmjit::hmm_binary
