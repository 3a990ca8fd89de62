// The alignment of a model's included domains as one Stockholm record (-A).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/main_report.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// It has a row in alignments.
inline bool has_included_domain(const Hit& hit) {
  return hit.flags.included && hit.included_domains > 0;
}

/// Included domains of one model side by side: a column for every node, and columns for inserts
/// between them. Refers to the hits it was made from.
struct HitAlignment {
  struct Row {
    const Hit* hit;  ///< null: the query
    const domain::Domain* domain;
    std::string name;
    std::string sequence, posterior;  ///< full width; the query has no posterior
  };
  std::vector<Row> rows;
  std::string reference;       ///< 'x' for a node's column, '.' for an insert's
  std::string mean_posterior;  ///< of the columns of nodes; empty without a domain
};

/// The included domains in order; inserts in lower case, '.' where a row has none.
/// `targets`: the first ones at most, here and below.
HitAlignment align_hits(const HitList& hits, int M, std::size_t targets = kAllTargets);
/// The same with the query sequence (upper case) as first row, all residues in upper case and all
/// gaps '-': what jackhmmer builds the next model from. `query` empty: without that row.
HitAlignment align_with_query(const HitList& hits, int M, const std::string& query_name,
                              std::string_view query, std::size_t targets = kAllTargets);

/// hmmsearch's alignments are cut into blocks of this width unless the text width is unlimited.
inline constexpr std::size_t kAlignmentColumns = 200;

/// Appends a record. `columns`: alignment columns per block, 0 for one block. Row names that are
/// not unique get a number in front. Accession and description of a query row are the model's.
void append_stockholm(std::string& out, const std::string& id, const ModelInfo& model,
                      const HitAlignment& alignment, std::size_t columns,
                      const std::string& author);

/// Both in one; returns the number of rows (included domains), 0 when there is none and nothing was
/// written. Needs the alignments of the domains.
std::size_t append_stockholm(std::string& out, const ModelInfo& model, const HitList& hits,
                             std::size_t columns, const std::string& author,
                             std::size_t targets = kAllTargets);

/// The query sequence as the first row of a record, as align_with_query has it.
struct AlignedQuery {
  std::string id;    ///< of the record
  std::string name;  ///< of the row
  std::string residues;
};

/// The same bytes for a model whose rows are too many to hold: every hit is seen twice or more
/// often. What waits meanwhile lies in temporary files.
class StreamedStockholm {
 public:
  using HitPass = std::function<Status(const std::function<Status(const Hit&)>& use)>;

  /// Without `query`, rows are those of align_hits. Fails with kOutput.
  static Result<StreamedStockholm> create(const ModelInfo& model, std::size_t columns,
                                          std::string author, std::size_t targets = kAllTargets,
                                          std::optional<AlignedQuery> query = std::nullopt);
  StreamedStockholm(StreamedStockholm&&) noexcept;
  StreamedStockholm& operator=(StreamedStockholm&&) noexcept;
  ~StreamedStockholm();

  /// First pass over the hits, in order.
  Status measure(const Hit& hit);
  /// Ends the first pass. The number of rows, that of the query among them.
  Result<std::size_t> end_measuring();
  /// Writes the record. `pass` calls what it is given with every hit in order, each time it is
  /// called itself. `out` takes the text, piece by piece.
  Status write(const HitPass& pass, const std::function<Status(std::string_view)>& out);
  /// 'x' for a node's column, '.' for an insert's.
  std::string reference() const;
  /// Calls `use` with the name, without a number, and the full width of every row.
  Status for_each_row(
      const HitPass& pass,
      const std::function<void(const std::string& name, const std::string& sequence)>& use);

 private:
  struct State;
  explicit StreamedStockholm(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit
