// Any value of a model, at any step from the file to the quantised tables, as text: for debugging
// and for comparison with another program. Floats are printed in hexadecimal, so that equal text
// means equal bits.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "model/profile.hpp"

namespace hmmjit {

/// One step of the way from file to tables.
struct DescribeView {
  std::string_view name;     ///< as given to describe()
  std::string_view content;  ///< one line on what it prints
};
/// All views, in the order of the way: "model", "probabilities", "profile", "bytes", ...
std::span<const DescribeView> describe_views();

struct DescribeOptions {
  int first_node = 1;
  int last_node = 0;  ///< 0: the last node of the model
  int length = 400;   ///< target length in residues, for the view "length"
};

/// Text of one view, lines ending in LF: "key value" lines, or a "#" line naming the columns and
/// one line per node. Errors (kUsage): unknown view, empty node range, length below 1.
/// Thread-safe.
Result<std::string> describe(const SearchModel& model, std::string_view view,
                             const DescribeOptions& options = {});

}  // namespace hmmjit
