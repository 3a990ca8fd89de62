#include "domain/long_target.hpp"

#include <algorithm>
#include <cmath>

namespace hmmjit::domain {

LongTarget::LongTarget(const ForwardTables::Tables& tables, const Job& job, int part, float ec,
                       float ej)
    : tables_(tables),
      job_(job),
      rows_(part),
      parts_((job.L - 1) / part + 1),
      ec_(ec),
      ej_(ej),
      cell_count_(MatrixLayout::of(tables.Q, 1).row) {
  const auto parts = static_cast<std::size_t>(parts_);
  const auto rows = static_cast<std::size_t>(std::min(rows_, job.L)) + 1;
  forward_cells_.resize(parts * cell_count_);
  forward_starts_.resize(parts);
  forward_.resize(rows);
  backward_.resize(rows);
  cells_.zero(cell_count_);
}

void LongTarget::keep_cells(std::vector<float>& kept, int part) {
  std::copy_n(
      cells_.data(), cell_count_,
      kept.begin() + static_cast<std::ptrdiff_t>(part) * static_cast<std::ptrdiff_t>(cell_count_));
}

void LongTarget::take_cells(const std::vector<float>& kept, int part) {
  std::copy_n(
      kept.begin() + static_cast<std::ptrdiff_t>(part) * static_cast<std::ptrdiff_t>(cell_count_),
      cell_count_, cells_.data());
}

const Job& LongTarget::forward() {
  const Kernels& kernel = kernels(1);
  job_.log_scale = 0.0f;
  forward_[0] = {0.0f, 1.0f, 0.0f, job_.move, 0.0f, 1.0f, 0.0f, 0.0f};
  cells_.zero(cell_count_);
  for (int part = 0; part < parts_; ++part) {
    keep_cells(forward_cells_, part);
    forward_starts_[static_cast<std::size_t>(part)] = forward_[0];
    const int first = first_of(part), last = last_of(part);
    kernel.forward_part(tables_, job_, first, last, ec_, ej_, cells_.data(), forward_.data());
    forward_[0] = forward_[static_cast<std::size_t>(last - first)];
  }
  job_.last_c = forward_[0].C;
  return job_;
}

void LongTarget::forward_again(int part) {
  Job again = job_;
  take_cells(forward_cells_, part);
  forward_[0] = forward_starts_[static_cast<std::size_t>(part)];
  kernels(1).forward_part(tables_, again, first_of(part), last_of(part), ec_, ej_, cells_.data(),
                          forward_.data());
}

void LongTarget::backward_rows(int part, Job& job, const SpecialRow& next) {
  job.forward = forward_.data();
  kernels(1).backward_part(tables_, job, first_of(part), last_of(part), ec_, ej_, cells_.data(),
                           next, backward_.data());
}

bool LongTarget::find_regions(std::vector<Region>& regions, float& expected_domains) {
  const auto parts = static_cast<std::size_t>(parts_);
  backward_cells_.assign(parts * cell_count_, 0.0f);  // zero before the last part
  backward_starts_.assign(parts, SpecialRow{});
  own_scale_.assign(parts, 0);
  job_.own_scale = false;
  for (int part = parts_ - 1; part >= 0; --part) {
    const auto n = static_cast<std::size_t>(part);
    forward_again(part);
    take_cells(backward_cells_, part);
    own_scale_[n] = job_.own_scale;
    backward_rows(part, job_, backward_starts_[n]);
    if (part == 0) break;
    keep_cells(backward_cells_, part - 1);
    backward_starts_[n - 1] = backward_[1];
  }

  // Decoding goes from the first row on, and begins with a factor that the last row of Backward
  // gives.
  float scale = static_cast<float>(1.0 / static_cast<double>(backward_[0].N));
  std::vector<Occupancy> occupancy(1, Occupancy{0, 0, 0});
  int base = 0;  // the row that `occupancy` begins with
  RegionSearch search;
  SpecialRow before{};
  for (int part = 0; part < parts_; ++part) {
    const auto n = static_cast<std::size_t>(part);
    const int first = first_of(part), last = last_of(part);
    forward_again(part);
    Job job = job_;
    job.own_scale = own_scale_[n];
    take_cells(backward_cells_, part);
    backward_rows(part, job, backward_starts_[n]);
    if (part > 0) backward_[0] = before;
    before = backward_[static_cast<std::size_t>(last - first)];
    occupancy.resize(static_cast<std::size_t>(last - base) + 1);
    scale = decode_rows(job_, forward_.data(), backward_.data(), last - first, scale,
                        occupancy.data() + (first - base));
    hmmjit::domain::find_regions(occupancy.data(), base, first, last, search, regions);
    expected_domains = occupancy.back().begins;
    // A region that is not complete is looked at from the row before it on.
    const int keep = search.start == 0 ? last : search.start - 1;
    occupancy.erase(occupancy.begin(), occupancy.begin() + (keep - base));
    base = keep;
  }
  return !std::isinf(scale);
}

}  // namespace hmmjit::domain
