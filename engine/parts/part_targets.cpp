#include "parts/part_targets.hpp"

#include <tuple>
#include <utility>

namespace hmmjit::parts {
namespace {

class RangeTargets final : public TargetSource {
 public:
  RangeTargets(std::shared_ptr<const TargetDatabase> database, std::uint64_t first,
               std::uint64_t last)
      : bytes_(database->summary().file_bytes), reader_(std::move(database)), first_(first) {
    rewound_ = reader_.seek(first_);
    reader_.set_end(last);
  }
  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    HMMJIT_TRY(rewound_);
    return reader_.read_block(block, residues);
  }
  Status rewind() override { return rewound_ = reader_.seek(first_); }
  bool rewindable() const override { return true; }
  std::uint64_t bytes_read() const override { return reader_.bytes_read(); }
  std::uint64_t bytes_total() const override { return bytes_; }

 private:
  std::uint64_t bytes_;
  DatabaseReader reader_;
  std::uint64_t first_;
  Status rewound_;
};

}  // namespace

Status place_targets(const TargetDatabase& database, PartPlace& place) {
  const Share& share = place.part;
  HMMJIT_ASSIGN(std::tie(place.first_target, place.last_target),
                database.targets_of_fraction(share.first - 1u, share.last, share.of));
  return {};
}

std::unique_ptr<TargetSource> open_range(std::shared_ptr<const TargetDatabase> database,
                                         const PartPlace& place) {
  return std::make_unique<RangeTargets>(std::move(database), place.first_target, place.last_target);
}

}  // namespace hmmjit::parts
