// Filters tables after overlaps are resolved: keeps the rows of remaining domains, and of targets
// with one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/outputs.hpp"

namespace hmmjit {

/// Append the mark that begins a table row until KeptRows removes it. The row shows the next
/// `count` domains in hit order, or domain `place` of the model. Lines without a mark are comments.
void append_kept_mark(std::string& out, int count);
void append_kept_place(std::string& out, std::size_t place);

/// Filters the text of one output that was written before the remaining domains were known.
/// Replaces each kKeptLater in kTsv and kJson, and removes rows from tables.
class KeptRows {
 public:
  /// `kept`: for each reported domain, in hit order, whether it remains; must outlive this object.
  KeptRows(OutputKind kind, const std::vector<bool>& kept) : kind_(kind), kept_(kept) {}
  /// Appends the rows of `bytes` that remain; a row may arrive in several calls.
  void append(std::string& out, std::string_view bytes);

 private:
  bool is_kept(std::size_t domain) const { return domain < kept_.size() && kept_[domain]; }
  void append_value(std::string& out);
  void append_row(std::string& out);

  OutputKind kind_;
  const std::vector<bool>& kept_;
  std::string row_;
  std::size_t next_ = 0;   // index of the next domain
  std::size_t model_ = 0;  // index of the model's first domain
};

}  // namespace hmmjit
