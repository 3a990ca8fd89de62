// Tables after overlaps are resolved: rows of domains that remain, and of targets with such a
// domain.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/outputs.hpp"

namespace hmmjit {

/// Begin a row of a table until KeptRows removes them. The row shows the next `count` domains in
/// the order of the hits, or domain `place` of the model. Lines without a mark are comments.
void append_kept_mark(std::string& out, int count);
void append_kept_place(std::string& out, std::size_t place);

/// Filters the text of one output, which was written before the remaining domains were known. In
/// kTsv and kJson it replaces each kKeptLater; from tables it removes rows.
class KeptRows {
 public:
  /// `kept`, which must outlive this: for each reported domain, in the order of the hits, whether
  /// it remains.
  KeptRows(OutputKind kind, const std::vector<bool>& kept) : kind_(kind), kept_(kept) {}
  /// Appends the part of the next `bytes` that remains; a row may come in several pieces.
  void append(std::string& out, std::string_view bytes);

 private:
  bool is_kept(std::size_t domain) const { return domain < kept_.size() && kept_[domain]; }
  void append_value(std::string& out);
  void append_row(std::string& out);

  OutputKind kind_;
  const std::vector<bool>& kept_;
  std::string row_;
  std::size_t next_ = 0;   // domain
  std::size_t model_ = 0;  // the first domain of a model
};

}  // namespace hmmjit
