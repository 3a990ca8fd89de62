#include "search/work.hpp"

#include <algorithm>
#include <iterator>

namespace hmmjit::search_run {
namespace {

// Scoring costs about ten times as much per cell as filtering. Larger targets are alone and start
// before smaller work.
constexpr std::uint64_t kLargeTargetCells = 4'000'000;

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> filter_ranges(const TargetBlock& targets,
                                                               std::uint64_t nodes,
                                                               std::uint64_t each) {
  // Ranges of about equal work, the last included.
  const std::uint64_t cells = targets.residue_count() * nodes;
  const std::uint64_t parts = std::max<std::uint64_t>(1, (cells + each / 2) / each);
  if (parts == 1) return {{0, targets.size()}};
  const std::uint64_t share = targets.residue_count() / parts + 1;
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  std::size_t begin = 0;
  std::uint64_t residues = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    residues += static_cast<std::uint64_t>(targets.length(i));
    if (residues >= share || i + 1 == targets.size()) {
      ranges.emplace_back(begin, i + 1);
      begin = i + 1;
      residues = 0;
    }
  }
  return ranges;
}

Batches divide(std::vector<WaitingTarget> targets, const BatchSizes& sizes) {
  // Similar sizes next to each other; ties in input order, which makes timings repeatable.
  std::ranges::sort(targets, [](const WaitingTarget& a, const WaitingTarget& b) {
    return a.cells_left != b.cells_left ? a.cells_left > b.cells_left : a.index < b.index;
  });
  // A few batches per thread balance the load, so the size of a large target and of a batch grows
  // with the amount of work. A single thread has nothing to balance.
  const std::size_t shares = sizes.threads == 1 ? 1 : 4 * sizes.threads;
  const std::uint64_t fair = sizes.device ? 0 : cells_left(targets) / shares;
  const auto take = [&](std::size_t from, std::size_t to) {
    const auto at = [&](std::size_t n) { return targets.begin() + static_cast<std::ptrdiff_t>(n); };
    return std::vector<WaitingTarget>(std::make_move_iterator(at(from)),
                                      std::make_move_iterator(at(to)));
  };
  Batches out;
  std::size_t at = 0;
  for (; at < targets.size() && targets[at].cells_left > std::max(kLargeTargetCells, fair); ++at)
    out.large.push_back(take(at, at + 1));
  const std::size_t share = (targets.size() - at) / sizes.threads + 1;
  const std::size_t batch = std::clamp(share, kSmallestBatch, kLargestBatch);
  // Where threads have nothing else to do, and where the last targets of a device reach all threads
  // at once, no thread should have many of them.
  const std::uint64_t balanced = sizes.idle     ? std::max(kLargeTargetCells / 4, fair)
                                 : sizes.device ? kLargeTargetCells / 2
                                                : std::max(2 * kLargeTargetCells, fair);
  const std::uint64_t most = std::min(balanced, sizes.rows * sizes.nodes);
  while (at < targets.size()) {
    std::size_t end = at;
    std::uint64_t cells = 0;
    do {
      cells += targets[end++].cells_left;
    } while (end < targets.size() && end - at < batch && cells < most);
    out.others.push_back(take(at, end));
    at = end;
  }
  return out;
}

std::vector<std::vector<DeviceUnit>> divide(std::vector<DeviceUnit> units) {
  constexpr std::size_t kTargets = 256;
  std::vector<std::vector<DeviceUnit>> out;
  std::size_t targets = kTargets;
  for (DeviceUnit& unit : units) {
    if (targets >= kTargets) {
      out.emplace_back();
      targets = 0;
    }
    targets += unit.filtered.open.size() + unit.filtered.passed.size();
    out.back().push_back(std::move(unit));
  }
  return out;
}

std::uint64_t cells_left(const std::vector<WaitingTarget>& targets) {
  std::uint64_t cells = 0;
  for (const WaitingTarget& target : targets) cells += target.cells_left;
  return cells;
}

std::uint64_t passed_cells(const ModelJob& job, const DeviceUnit& unit) {
  const gpu::FilteredBlock& filtered = unit.filtered;
  std::uint64_t cells = 0;
  for (std::size_t i = 0; i < filtered.passed.size(); ++i) {
    const auto length = static_cast<std::uint64_t>(unit.targets->length(filtered.passed[i]));
    cells +=
        cells_left(length, job.nodes, filtered.parsed.empty() ? nullptr : filtered.parsed[i].get());
  }
  return cells;
}

}  // namespace hmmjit::search_run
