// Reads tables in text form.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.hpp"

namespace hmmjit {

/// Reads the lines of a table. Splits a line at tabs if it has any, otherwise at blanks. Skips
/// empty lines and lines that begin with '#'.
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
