// Lays out sequences in the columns of a model and writes them as Stockholm.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "build/row_paths.hpp"
#include "model/multiple_alignment.hpp"

namespace hmmjit::build {

/// Mean posterior of each node over the sequences with a residue there.
class MeanPosteriors {
 public:
  explicit MeanPosteriors(int M)
      : sums_(static_cast<std::size_t>(M)), counts_(static_cast<std::size_t>(M)) {}
  void add(int k, float posterior);
  /// domain::posterior_code() of each node; '.' for nodes without a mean.
  std::string codes() const;

 private:
  std::vector<double> sums_;
  std::vector<std::size_t> counts_;
};

/// Columns for a model's nodes and for insertions after them. Call add() for all paths, or
/// add_match() and add_insertion() for their residues; then place(); then row() for each path.
class ColumnLayout {
 public:
  struct Options {
    bool all_nodes = false;  ///< a column for every node, even if none emits a residue there
    bool trimmed = false;    ///< omit the residues before the first node and after the last
  };
  ColumnLayout(int M, Options options);

  void add(std::span<const PathElement> path);
  void add_match(int k) { used_[static_cast<std::size_t>(k)] = true; }
  /// Adds `count` consecutive residues after node k.
  void add_insertion(int k, std::size_t count);
  void place();

  std::size_t width() const { return width_; }
  bool has_column(int k) const { return used_[static_cast<std::size_t>(k)]; }
  /// The first column after node k's column, if any.
  std::size_t after(int k) const { return after_[static_cast<std::size_t>(k)]; }

  /// A row: match residues in upper case, insertions in lower case, `~` beyond the ends of
  /// fragments. Insertions between two nodes are split in half; those before the first node are
  /// right-aligned. `marks`, if given: one character per element of the path, laid out like the
  /// residues.
  std::string row(std::span<const PathElement> path, std::span<const Residue> codes,
                  const Alphabet& alphabet, std::string* marks = nullptr) const;
  /// The M characters of `nodes` in the columns of the nodes, `.` elsewhere.
  std::string line(std::string_view nodes) const;
  std::string line(char of_nodes) const;
  /// Splits the left-aligned insertions of a row, as row() does.
  void justify(std::string& row, std::string* marks) const;

 private:
  Options options_;
  std::vector<std::size_t> inserted_;  // [M+1] longest insertion after a node
  std::vector<bool> used_;             // [M+1] the node has a column
  std::vector<std::size_t> after_;     // [M+1] first column after the node
  std::size_t width_ = 0;
};

/// Value type. Annotation vectors have one element per row, or are empty.
struct AlignedRows {
  std::vector<std::string> names, accessions, descriptions;
  std::vector<std::string> rows;
  std::vector<std::string> posteriors;  ///< one per row; empty: the row has none
  std::string mean_posteriors;          ///< one per column; empty: none
  std::string reference;                ///< `x` in match columns, `.` elsewhere
  std::string mask;                     ///< empty: none
  std::vector<double> weights;          ///< relative weights of the rows
  bool weighted = false;                ///< weights were computed or given
};

/// Lays out an alignment's rows by their paths. In `alignment`, fragments are marked and masked
/// residues replaced. `match`: true for match columns. Does not set weights.
AlignedRows align_rows(const MultipleAlignment& alignment, const std::vector<bool>& match);

/// The layout of a Stockholm record in HMMER's programs.
struct StockholmLayout {
  std::size_t longest = 0;  ///< row name
  bool posteriors = false;  ///< the record has posterior lines

  /// The first lines. `numbered`: row names are numbered_name().
  static void append_head(std::string& out, bool numbered);
  /// The name of row `row` of `rows` if some names are equal.
  static std::string numbered_name(std::size_t row, std::size_t rows, const std::string& name);
  /// A #=GS line.
  void append_annotation(std::string& out, const std::string& name, std::string_view tag,
                         std::string_view text) const;
  /// The columns of a row and of its posteriors, if any.
  void append_row(std::string& out, const std::string& name, std::string_view columns,
                  std::string_view posteriors_of_row) const;
  /// A #=GC line.
  void append_columns(std::string& out, std::string_view tag, std::string_view columns) const;

 private:
  // Room for the longest of "name", "#=GC tag" and "#=GR name PP".
  std::size_t margin() const;
};

/// Name, accession and description of an alignment.
struct AlignmentTitle {
  std::string name;  ///< empty: none
  std::optional<std::string> accession, description;
};
/// Writes the rows in the form of HMMER's programs, `block` columns per line. Numbers all names if
/// any two are equal.
void write_stockholm(const std::function<void(std::string_view)>& out, const AlignedRows& rows,
                     const AlignmentTitle& title, std::size_t block = 200);

}  // namespace hmmjit::build
