#include "model/residue_copies.hpp"

#include <algorithm>
#include <string>

namespace hmmjit {

Result<std::span<const Residue>> ResidueCopies::of(const TargetBlock& block, std::size_t i,
                                                   const Alphabet& alphabet) {
  const std::span<const Residue> residues = block[i].residues;
  if (!block.borrowed()) return residues;
  auto copy = std::make_unique_for_overwrite<Residue[]>(residues.size() + 2);
  Residue* const begin = copy.get() + 1;
  Residue* const end = std::ranges::copy(residues, begin).out;
  begin[-1] = *end = kPaddingCode;
  Residue largest = 0;
  for (const Residue* at = begin; at < end; ++at) largest = std::max(largest, *at);
  if (largest >= alphabet.Kp)
    return fail(ErrorCode::kInput,
                "target " + std::to_string(block.first_index() + i + 1) +
                    " of the target database was overwritten while it was read",
                {}, "do not change databases in place");
  copies_.push_back(std::move(copy));
  return std::span<const Residue>(begin, residues.size());
}

}  // namespace hmmjit
