// Every score of one model and one target up to the Forward filter, as text.
#pragma once

#include <span>
#include <string>

#include "model/profile.hpp"

namespace hmmjit::reference {

/// "key value" lines ending in LF: the length, each filter's score in nats (hexadecimal float),
/// bits and P-value, and Forward's scaling. All filters are computed, whatever the P-values.
/// A target without residues has its length only. Thread-safe.
std::string describe_scores(const SearchModel& model, std::span<const Residue> residues);

}  // namespace hmmjit::reference
