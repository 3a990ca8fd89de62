#include "domain/long_target.hpp"

#include <algorithm>
#include <cmath>

namespace hmmjit::domain {
namespace {

// With n rows in a part, these take 76 * n bytes and the checkpoints 20 * M * L / n.
int rows_of_part(int L, int M) {
  return std::max(1 << 16, static_cast<int>(std::sqrt(20.0 / 76 * L * M)));
}

}  // namespace

LongTarget::LongTarget(const ForwardTables::Tables& tables, const Job& job, int part, float ec,
                       float ej)
    : tables_(tables),
      job_(job),
      rows_(part > 0 ? part : rows_of_part(job.L, tables.M)),
      parts_((job.L - 1) / rows_ + 1),
      ec_(ec),
      ej_(ej),
      forward_(static_cast<std::size_t>(parts_)),
      backward_(static_cast<std::size_t>(parts_)) {
  cells_.zero(kernels(1).scratch(tables.Q));
}

void LongTarget::keep(Checkpoint& checkpoint, const float* cells, int vectors,
                      const float* special_row) {
  checkpoint.cells.assign(cells, cells + vectors * tables_.Q * kLanes);
  checkpoint.special = SpecialRows(special_row, 1, 0)[0];
  checkpoint.own_scale = job_.own_scale;
}

void LongTarget::restore(const Checkpoint& checkpoint, float* cells, float* special_row) {
  std::ranges::copy(checkpoint.cells, cells);
  SpecialRows::put(checkpoint.special, 1, special_row);
  job_.own_scale = checkpoint.own_scale;
}

// Computes a part from its checkpoint; the first part initialises itself.
void LongTarget::forward_rows(int part) {
  const int first = first_of(part), count = last_of(part) - first;
  lanes_.take_part(tables_.emission, job_, first, last_of(part));
  if (part > 0) restore(forward_[part], cells_.data(), lanes_.forward_row(0));
  kernels(1).forward(tables_, lanes_, part > 0, count, ec_, ej_, cells_.data(), 0);
}

// The same after forward_rows(); the last part initialises itself.
void LongTarget::backward_rows(int part) {
  const int count = last_of(part) - first_of(part);
  const bool end = part + 1 == parts_;
  if (!end) restore(backward_[part], cells_.data(), lanes_.backward_row(count + 1));
  kernels(1).backward(tables_, lanes_, count + end, part > 0, ec_, ej_, cells_.data());
}

float LongTarget::forward() {
  float log_scale = 0;
  for (int part = 0;; ++part) {
    forward_rows(part);
    const int count = last_of(part) - first_of(part);
    const SpecialRows rows(lanes_.forward_row(0), 1, 0);
    log_scale = add_log_scales(rows, count, log_scale);
    if (part + 1 == parts_) return forward_nats(log_scale, rows[count].C, job_.move);
    keep(forward_[part + 1], cells_.data(), 3, lanes_.forward_row(count));
  }
}

bool LongTarget::find_regions(std::vector<Region>& regions, float& expected_domains) {
  for (int part = parts_ - 1; part > 0; --part) {
    forward_rows(part);
    backward_rows(part);
    keep(backward_[part - 1], cells_.data(), 2, lanes_.backward_row(1));
  }

  // Decoding runs from the first row on, and starts with a factor that Backward's last row
  // provides.
  float scale = 1;
  bool own_scale = false;
  std::vector<Occupancy> occupancy(1, Occupancy{0, 0, 0});
  int base = 0;  // the row of occupancy[0]
  RegionSearch search;
  SpecialRow before{};
  for (int part = 0; part < parts_; ++part) {
    const int first = first_of(part), last = last_of(part);
    forward_rows(part);
    backward_rows(part);
    const SpecialRows backward(lanes_.backward_row(0), 1, 0);
    if (part == 0) {
      scale = inverse_of(backward[0].N);
      own_scale = job_.own_scale;
    } else {
      SpecialRows::put(before, 1, lanes_.backward_row(0));
    }
    job_.own_scale = own_scale;
    before = backward[last - first];
    occupancy.resize(static_cast<std::size_t>(last - base) + 1);
    scale = decode_rows(job_, SpecialRows(lanes_.forward_row(0), 1, 0), backward, last - first,
                        scale, occupancy.data() + (first - base));
    hmmjit::domain::find_regions(occupancy.data(), base, first, last, search, regions);
    expected_domains = occupancy.back().begins;
    // An incomplete region needs the row before it.
    const int keep = search.start == 0 ? last : search.start - 1;
    occupancy.erase(occupancy.begin(), occupancy.begin() + (keep - base));
    base = keep;
  }
  return !std::isinf(scale);
}

}  // namespace hmmjit::domain
