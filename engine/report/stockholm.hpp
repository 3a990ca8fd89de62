// The alignment of a model's included domains as a Stockholm record (-A), in two passes over the
// hits: the first lays out the columns, the second writes the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "core/hidden.hpp"
#include "report/main_report.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// True if a hit has a row in alignments.
inline bool has_included_domain(const Hit& hit) {
  return hit.flags.included && hit.included_domains > 0;
}

/// Rows and style of an alignment.
struct AlignedRows {
  std::size_t targets = kAllTargets;  ///< maximum number of targets, best first
  /// Inserted residues are upper case and gaps '-', as in the alignments from which jackhmmer
  /// builds models. Otherwise inserts are lower case, padded with '.'.
  bool upper_case = false;
  /// Every node has a column; otherwise only nodes with a residue in some row.
  bool all_nodes = true;
  /// A query sequence for the first row, with a residue for each node. Empty: none.
  std::string query_name = {}, query = {};
};

/// A domain in the columns of an alignment.
struct AlignedDomain {
  const Hit& hit;
  const domain::Domain& domain;
  std::string name;
  std::string sequence, posterior;  ///< over the full width
};

/// First pass: lays out a column for every node, and columns for inserts in between.
class AlignmentColumns {
 public:
  /// `memory` bounds the names in memory; the rest goes to a temporary file.
  AlignmentColumns(const ModelInfo& model, AlignedRows which,
                   std::uint64_t memory = std::numeric_limits<std::uint64_t>::max());

  /// Adds hits, in order. Fails with kOutput.
  Status measure(std::span<const Hit> hits);
  /// Ends the pass and returns rows().
  Result<std::size_t> finish();

  /// Number of rows, including the query's.
  std::size_t rows() const;
  /// 'x' for a node's column, '.' for an insert's.
  std::string reference() const;
  /// The query's row; empty if there is none.
  std::string query_row() const;
  /// Calls `use` with the rows of hits. `targets_left`: AlignedRows::targets at the first call.
  Status for_each_row(std::span<const Hit> hits, std::size_t& targets_left,
                      const std::function<Status(const AlignedDomain&)>& use) const;

 private:
  friend class StockholmRecord;
  struct State;
  Hidden<State> state_;
};

/// hmmsearch splits alignments into blocks of this width unless the text width is unlimited.
inline constexpr std::size_t kAlignmentColumns = 200;

/// Second pass: the text. Numbers repeated row names. A query row gets the model's accession and
/// description.
class StockholmRecord {
 public:
  /// `columns` must be finished and must outlive the record. `width`: columns per block; 0: a
  /// single block. `memory` bounds the text in memory; the rest goes to a temporary file.
  StockholmRecord(const AlignmentColumns& columns, std::string id, std::size_t width,
                  std::string author,
                  std::uint64_t memory = std::numeric_limits<std::uint64_t>::max());

  /// Adds hits, in order. Fails with kOutput.
  Status add(std::span<const Hit> hits);
  /// Writes the record in pieces; nothing if it has no rows.
  Status write(const std::function<Status(std::string_view)>& out);

 private:
  struct State;
  Hidden<State> state_;
};

// The same domains as an A3M alignment (docs/outputs.md):

/// Appends rows and returns their number. The first row, written unless `begun`, is the model's
/// consensus, so every row has M match columns. Needs the alignments of the domains.
/// `targets_left`: how many targets may still get rows, updated; null: no limit.
std::size_t append_a3m(std::string& out, const HitLot& lot, bool begun = false,
                       std::size_t* targets_left = nullptr);

}  // namespace hmmjit
