#include "segmentation.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

namespace mrf {

using namespace mrf_device;

namespace {
using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double kMinSigma = 2;  // levels: the weight then fits 32 bits

using Histogram = std::array<std::uint64_t, kIntensityLevels>;

/// Lloyd's algorithm on the histogram, from centres spread evenly over the occupied levels.
std::vector<double> k_means(const Histogram& histogram, int classes) {
  const auto occupied = [](std::uint64_t n) { return n != 0; };
  const auto low = std::ranges::find_if(histogram, occupied) - histogram.begin();
  const auto high =
      histogram.rend() - std::find_if(histogram.rbegin(), histogram.rend(), occupied) - 1;
  std::vector<double> centres(static_cast<std::size_t>(classes));
  for (int k = 0; k < classes; ++k) {
    centres[k] = static_cast<double>(low) + static_cast<double>(high - low) * (k + 0.5) / classes;
  }
  for (int round = 0; round < 200; ++round) {
    std::vector<double> weights(centres.size()), sums(centres.size());
    std::size_t k = 0;
    for (int level = 0; level < kIntensityLevels; ++level) {
      while (k + 1 < centres.size() && 2 * level > centres[k] + centres[k + 1]) ++k;
      weights[k] += static_cast<double>(histogram[level]);
      sums[k] += static_cast<double>(histogram[level]) * level;
    }
    bool moved = false;
    for (k = 0; k < centres.size(); ++k) {
      if (weights[k] == 0) continue;
      const double centre = sums[k] / weights[k];
      moved |= std::abs(centre - centres[k]) > 0.01;
      centres[k] = centre;
    }
    if (!moved) break;
  }
  return centres;
}

/// The reference keeps its labels with a border of one voxel that belongs to no class.
class CpuSweeper final : public Sweeper {
 public:
  CpuSweeper(const Volume& volume, const Labels& labels, int classes, int neighbours)
      : volume_(volume), classes_(classes), neighbours_(neighbours) {
    const auto [w, h, d] = volume.size;
    row_ = w + 2;
    plane_ = row_ * (h + 2);
    labels_.assign(static_cast<std::size_t>(plane_ * (d + 2)), static_cast<std::uint8_t>(classes));
    for (int z = 0; z < d; ++z) {
      for (int y = 0; y < h; ++y) std::copy_n(&labels[voxel(0, y, z)], w, at(0, y, z));
    }
    for (int dz = -1; dz <= 1; ++dz) {
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
          const int distance = std::abs(dx) + std::abs(dy) + std::abs(dz);
          if (distance == 1 || (neighbours == 26 && distance > 1)) {
            offsets_.push_back((dz * plane_) + (dy * row_) + dx);
          }
        }
      }
    }
  }

  Sweep sweep(std::span<const ClassTerm> terms, int beta) override {
    Sweep out;
    const auto start = Clock::now();
    // A table of data energies: the same integers as computing them for each voxel.
    energies_.resize(static_cast<std::size_t>(kIntensityLevels * classes_));
    for (int level = 0; level < kIntensityLevels; ++level) {
      for (int k = 0; k < classes_; ++k) {
        energies_[level * classes_ + k] = data_energy(terms[k], level);
      }
    }
    for (int colour = 0; colour < colours(neighbours_); ++colour) {
      out.changed += neighbours_ == 6 ? update<6>(colour, beta) : update<26>(colour, beta);
    }
    out.seconds = seconds_since(start);
    out.sums = class_sums(volume_, labels(), classes_);
    return out;
  }

  Labels labels() override {
    const auto [w, h, d] = volume_.size;
    Labels out(volume_.levels.size());
    for (int z = 0; z < d; ++z) {
      for (int y = 0; y < h; ++y) std::copy_n(at(0, y, z), w, &out[voxel(0, y, z)]);
    }
    return out;
  }

 private:
  std::size_t voxel(int x, int y, int z) const {
    return (static_cast<std::size_t>(z) * volume_.size.height + y) * volume_.size.width + x;
  }
  std::uint8_t* at(int x, int y, int z) {
    return labels_.data() + (z + 1) * plane_ + (y + 1) * row_ + x + 1;
  }

  template <int kNeighbours>
  std::uint64_t update(int colour, int beta) {
    constexpr int kStep = kNeighbours == 6 ? 1 : 2;
    const auto [w, h, d] = volume_.size;
    std::array<std::ptrdiff_t, kNeighbours> offsets;
    std::copy_n(offsets_.begin(), kNeighbours, offsets.begin());
    const int classes = classes_;
    std::uint64_t changed = 0;
    for (int z = kStep == 1 ? 0 : colour >> 2; z < d; z += kStep) {
      for (int y = kStep == 1 ? 0 : colour >> 1 & 1; y < h; y += kStep) {
        const int first = kStep == 1 ? (colour + y + z) & 1 : colour & 1;
        std::uint8_t* labels = at(0, y, z);
        const std::uint16_t* levels = &volume_.levels[voxel(0, y, z)];
        for (int x = first; x < w; x += 2) {
          // Neighbours of all classes are counted at once, five bits for each class.
          std::uint64_t in_class = 0;
          for (const std::ptrdiff_t offset : offsets) {
            in_class += std::uint64_t{1} << (5 * labels[x + offset]);
          }
          const int* data = &energies_[levels[x] * classes];
          int best = std::numeric_limits<int>::max();
          std::uint8_t label = 0;
          for (int k = 0; k < classes; ++k) {
            const int in = static_cast<int>(in_class >> (5 * k) & 31u);
            // Out-class minus in-class neighbours, less the number of neighbours.
            const int energy = data[k] - 2 * beta * in;
            if (energy < best) {
              best = energy;
              label = static_cast<std::uint8_t>(k);
            }
          }
          changed += label != labels[x];
          labels[x] = label;
        }
      }
    }
    return changed;
  }

  const Volume& volume_;
  int classes_, neighbours_;
  std::ptrdiff_t row_ = 0, plane_ = 0;
  Labels labels_;
  std::vector<std::ptrdiff_t> offsets_;
  std::vector<int> energies_;  // [level][class]
};

}  // namespace

int data_energy(const ClassTerm& term, int level) {
  const std::int64_t distance = kMeanScale * level - term.mean;
  const auto square = static_cast<std::uint64_t>(distance * distance);
  const std::uint64_t scaled = (square * term.weight) >> 32;
  return static_cast<int>(std::min<std::uint64_t>(scaled, kMaxDataEnergy)) + term.offset;
}

int scaled_beta(double beta) { return static_cast<int>(std::lround(beta * kEnergyScale)); }

ClassTerm class_term(const ClassEstimate& estimate) {
  ClassTerm out;
  const double sigma = kMeanScale * estimate.sigma;
  out.mean = static_cast<int>(std::lround(kMeanScale * estimate.mean));
  out.weight = static_cast<unsigned>(std::llround(0x1p32 * kEnergyScale / (2 * sigma * sigma)));
  out.offset = static_cast<int>(std::lround(kEnergyScale * std::log(estimate.sigma)));
  return out;
}

std::vector<ClassEstimate> estimate(std::span<const ClassSums> sums,
                                    std::span<const ClassEstimate> before) {
  std::vector<ClassEstimate> out(sums.size());
  for (std::size_t k = 0; k < sums.size(); ++k) {
    out[k] = before.empty() ? ClassEstimate{0, 0, kMinSigma} : before[k];
    out[k].count = sums[k].count;
    if (sums[k].count == 0) continue;
    const double n = static_cast<double>(sums[k].count);
    out[k].mean = static_cast<double>(sums[k].sum) / n;
    const double variance = static_cast<double>(sums[k].squares) / n - out[k].mean * out[k].mean;
    out[k].sigma = std::max(kMinSigma, std::sqrt(std::max(0.0, variance)));
  }
  return out;
}

std::vector<ClassSums> class_sums(const Volume& volume, const Labels& labels, int classes) {
  std::vector<ClassSums> out(static_cast<std::size_t>(classes));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::uint64_t level = volume.levels[i];
    ClassSums& s = out[labels[i]];
    s.count += 1;
    s.sum += level;
    s.squares += level * level;
  }
  return out;
}

Labels first_labels(const Volume& volume, const Settings& settings) {
  Histogram histogram{};
  for (const std::uint16_t level : volume.levels) ++histogram[level];
  std::array<std::uint8_t, kIntensityLevels> label_of{};
  if (settings.start == Start::kKMeans) {
    const auto centres = k_means(histogram, settings.classes);
    std::size_t k = 0;
    for (int level = 0; level < kIntensityLevels; ++level) {
      while (k + 1 < centres.size() && 2 * level > centres[k] + centres[k + 1]) ++k;
      label_of[level] = static_cast<std::uint8_t>(k);
    }
  } else {
    std::uint64_t below = 0;
    for (int level = 0; level < kIntensityLevels; ++level) {
      // By the middle of a level's voxels, so that one crowded level is one class.
      const std::uint64_t middle = below + histogram[level] / 2;
      label_of[level] = static_cast<std::uint8_t>(std::min<std::uint64_t>(
          middle * static_cast<std::uint64_t>(settings.classes) / volume.levels.size(),
          static_cast<std::uint64_t>(settings.classes - 1)));
      below += histogram[level];
    }
  }
  Labels out(volume.levels.size());
  std::ranges::transform(volume.levels, out.begin(),
                         [&](std::uint16_t level) { return label_of[level]; });
  return out;
}

std::unique_ptr<Sweeper> cpu_sweeper(const Volume& volume, const Labels& labels, int classes,
                                     int neighbours) {
  return std::make_unique<CpuSweeper>(volume, labels, classes, neighbours);
}

std::int64_t total_energy(const Volume& volume, const Labels& labels,
                          std::span<const ClassTerm> terms, int beta, int neighbours) {
  const auto [w, h, d] = volume.size;
  std::int64_t data = 0, pairs = 0;
  const auto index = [&](int x, int y, int z) {
    return (static_cast<std::size_t>(z) * h + y) * w + x;
  };
  for (int z = 0; z < d; ++z) {
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        const std::uint8_t label = labels[index(x, y, z)];
        data += data_energy(terms[label], volume.levels[index(x, y, z)]);
        // Half of the directions: those that lead forward in memory.
        for (int direction = 14; direction < 27; ++direction) {
          const int dx = direction % 3 - 1, dy = direction / 3 % 3 - 1, dz = direction / 9 - 1;
          if (neighbours == 6 && std::abs(dx) + std::abs(dy) + std::abs(dz) != 1) continue;
          const int ox = x + dx, oy = y + dy, oz = z + dz;
          if (ox < 0 || ox >= w || oy < 0 || oy >= h || oz >= d) continue;
          pairs += labels[index(ox, oy, oz)] == label ? -1 : 1;
        }
      }
    }
  }
  return data + pairs * beta;
}

Segmentation segment(const Volume& volume, const Labels& first, const Settings& settings,
                     Sweeper& sweeper) {
  const auto start = Clock::now();
  Segmentation out;
  out.first = estimate(class_sums(volume, first, settings.classes), {});
  out.last = out.first;
  const double enough = settings.tolerance * static_cast<double>(volume.levels.size());
  std::vector<ClassTerm> terms;
  for (int i = 0; i < settings.iterations && !out.converged; ++i) {
    if (i == 0 || !settings.fixed_classes) {
      terms.clear();
      for (const ClassEstimate& e : out.last) terms.push_back(class_term(e));
    }
    const Sweep sweep = sweeper.sweep(terms, scaled_beta(settings.beta));
    out.last = estimate(sweep.sums, out.last);
    out.changed.push_back(sweep.changed);
    out.update_seconds += sweep.seconds;
    out.converged = static_cast<double>(sweep.changed) <= enough;
  }
  out.labels = sweeper.labels();
  out.total_seconds = seconds_since(start);
  return out;
}

}  // namespace mrf
