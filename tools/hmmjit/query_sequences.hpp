// A file of query sequences, one after another.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/sequence_file.hpp"
#include "option_table.hpp"
#include "search/search.hpp"

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

/// Name, accession and description of a query sequence.
QueryNames names_of(const TargetView& sequence);

}  // namespace hmmjit::tools
