// A file of query sequences.
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
  /// The next nonempty sequence, valid until the next call; nullopt at the end.
  Result<std::optional<TargetView>> next();

 private:
  explicit QuerySequences(SequenceReader reader) : reader_(std::move(reader)) {}
  SequenceReader reader_;
  TargetBlock block_;
};

/// A program that searches the sequences of one file against those of others, still without
/// options, queries and search.
SearchProgram sequence_search_program(std::string_view name, std::string_view title);

}  // namespace hmmjit::tools
