// A file of query sequences, one after another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/sequence_file.hpp"
#include "option_table.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {

/// Amino acid sequences of a query file. One thread at a time.
class QuerySequences {
 public:
  /// Opens `path` ("-": standard input; no search in BLASTDB) in the format of --qformat.
  static Result<std::shared_ptr<QuerySequences>> open(const ParsedOptions& options,
                                                      const std::string& path);
  /// The next sequence that is not empty, valid until the next call; nothing at the end.
  Result<std::optional<TargetView>> next();

 private:
  explicit QuerySequences(SequenceReader reader) : reader_(std::move(reader)) {}
  SequenceReader reader_;
  TargetBlock block_;
};

/// A program that searches the sequences of one file against those of others, with no
/// options, queries or search of its own yet.
SearchProgram sequence_search_program(std::string_view name, std::string_view title);

}  // namespace hmmjit::tools
