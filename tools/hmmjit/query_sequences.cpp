#include "query_sequences.hpp"

#include <limits>

#include "io/byte_source.hpp"
#include "search_inputs.hpp"

namespace hmmjit::tools {
namespace {

// Adds --qformat to a remedy: the option for targets has another name.
Error of_queries(Error error) {
  if (error.remedy.ends_with("state its format")) error.remedy += " (--qformat)";
  return error;
}

}  // namespace

Result<std::shared_ptr<QuerySequences>> QuerySequences::open(const ParsedOptions& options,
                                                             const std::string& path) {
  SequenceFormatOptions format{.alphabet = amino_alphabet()};
  HMMJIT_ASSIGN(format.format, asserted_format(options, "--qformat"));
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_sequence_source(path, format));
  auto reader = SequenceReader::open(std::move(source), format);
  if (!reader) return std::unexpected(of_queries(reader.error()));
  return std::shared_ptr<QuerySequences>(new QuerySequences(*std::move(reader)));
}

Result<std::optional<TargetView>> QuerySequences::next() {
  for (;;) {
    block_ = TargetBlock();
    const auto more = reader_.read_block(block_, std::numeric_limits<std::uint64_t>::max(), 1);
    if (!more) return std::unexpected(of_queries(more.error()));
    if (!*more) return std::nullopt;
    if (block_.length(0) > 0) return block_[0];
  }
}

SearchProgram sequence_search_program(std::string_view name, std::string_view title) {
  SearchProgram program;
  program.name = program.reference = name;
  program.title = title;
  program.queries = {"seqfile", "query sequences; - for standard input"};
  program.targets = target_databases();
  program.query_label = "query sequence file:";
  return program;
}

}  // namespace hmmjit::tools
