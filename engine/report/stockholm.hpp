// The alignment of a model's included domains as one Stockholm record (-A).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "search/search.hpp"

namespace hmmjit {

/// Appends the record; returns its number of rows (included domains), 0 when there is none and
/// nothing was written. `columns`: alignment columns per block, 0 for one block. Needs the
/// alignments of the domains.
std::size_t append_stockholm(std::string& out, const ModelInfo& model, const HitList& hits,
                             std::size_t columns, const std::string& author);

/// The same bytes for a model whose rows are too many to hold: every hit is seen twice or more
/// often. What waits meanwhile lies in temporary files.
class StreamedStockholm {
 public:
  /// Fails with kOutput.
  static Result<StreamedStockholm> create(const ModelInfo& model, std::size_t columns,
                                          std::string author);
  StreamedStockholm(StreamedStockholm&&) noexcept;
  StreamedStockholm& operator=(StreamedStockholm&&) noexcept;
  ~StreamedStockholm();

  /// First pass over the hits, in order.
  Status measure(const Hit& hit);
  /// Ends the first pass. The number of rows.
  Result<std::size_t> end_measuring();
  /// Writes the record. `pass` calls what it is given with every hit in order, each time it is
  /// called itself.
  Status write(const std::function<Status(const std::function<Status(const Hit&)>&)>& pass,
               const std::function<void(std::string_view)>& out);

 private:
  struct State;
  explicit StreamedStockholm(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit
