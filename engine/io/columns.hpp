// Reads tables of text: lines of columns.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.hpp"

namespace hmmjit {

/// Reads the lines of a table. A line with a tab is divided at its tabs, any other at its blanks.
/// Empty lines and lines that begin with '#' are skipped.
class ColumnReader {
 public:
  explicit ColumnReader(std::unique_ptr<ByteSource> source) : input_(std::move(source)) {}
  /// False at the end.
  Result<bool> next();
  /// The columns of the last line; valid until the next call of next().
  const std::vector<std::string_view>& columns() const { return columns_; }
  /// "file:line" of the last line.
  std::string where() const { return input_.where(); }

 private:
  BufferedInput input_;
  std::vector<std::string_view> columns_;
};

}  // namespace hmmjit
