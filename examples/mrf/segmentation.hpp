// Markov-random-field segmentation by iterated conditional modes on one CPU core: the reference for
// the kernels.
//
// Every device gives the same labels, in any order: integer arithmetic on quantised numbers
// (parameters.h), and no voxel is updated together with a neighbour.
#pragma once

#include <mrf/parameters.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace mrf {

using mrf_device::ClassTerm;

struct Size {
  int width = 0, height = 0, depth = 0;
  std::int64_t voxels() const { return std::int64_t{width} * height * depth; }
};

using Labels = std::vector<std::uint8_t>;  ///< x fastest

struct Volume {
  Size size;
  std::vector<std::uint16_t> levels;  ///< 0 to 4095, x fastest
  Labels truth;
};

/// Nested and adjacent spheres of `classes` tissues, with noise.
inline Volume synthetic_volume(Size size, int classes) {
  Volume out{size, {}, {}};
  std::minstd_rand random(1);
  const auto voxels = static_cast<std::size_t>(size.voxels());
  out.truth.reserve(voxels);
  out.levels.reserve(voxels);
  for (int z = 0; z < size.depth; ++z) {
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        const double dx = 2.0 * x / size.width - 1, dy = 2.0 * y / size.height - 1,
                     dz = 2.0 * z / size.depth - 1;
        const double wave = std::sin(5 * dx) * std::sin(4 * dy) * std::sin(3 * dz);
        const double place = std::sqrt(dx * dx + dy * dy + dz * dz) / std::sqrt(3.0) + 0.3 * wave;
        const int label = std::clamp(static_cast<int>(classes * place), 0, classes - 1);
        const int step = 2700 / (classes - 1);
        int noise = -4 * step;  // the sum of eight uniform numbers is nearly normal
        for (int i = 0; i < 8; ++i)
          noise += static_cast<int>(random() % static_cast<unsigned>(step));
        out.truth.push_back(static_cast<std::uint8_t>(label));
        out.levels.push_back(
            static_cast<std::uint16_t>(std::clamp(700 + label * step + noise / 2, 0, 4095)));
      }
    }
  }
  return out;
}

/// Labels by intensity alone: classes of equally many levels.
inline Labels first_labels(const Volume& volume, int classes) {
  const auto [low, high] = std::ranges::minmax(volume.levels);
  Labels out;
  out.reserve(volume.levels.size());
  for (const std::uint16_t level : volume.levels) {
    out.push_back(static_cast<std::uint8_t>((level - low) * classes / (high - low + 1)));
  }
  return out;
}

/// Means and deviations of the classes as terms of the energy. Deviations are at least two levels,
/// so weights fit 32 bits.
inline std::vector<ClassTerm> estimate(const Volume& volume, const Labels& labels, int classes) {
  struct Sums {
    double count = 0, sum = 0, squares = 0;
  };
  std::vector<Sums> sums(static_cast<std::size_t>(classes));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double level = volume.levels[i];
    Sums& s = sums[labels[i]];
    s = {s.count + 1, s.sum + level, s.squares + level * level};
  }
  std::vector<ClassTerm> out;
  for (const Sums& s : sums) {
    const double n = std::max(1.0, s.count), mean = s.sum / n;
    const double sigma = std::sqrt(std::max(4.0, s.squares / n - mean * mean));
    const double scaled = mrf_device::kMeanScale * sigma;
    const double weight = 0x1p32 * mrf_device::kEnergyScale / (2 * scaled * scaled);
    out.push_back({static_cast<int>(std::lround(mrf_device::kMeanScale * mean)),
                   static_cast<unsigned>(std::llround(weight)),
                   static_cast<int>(std::lround(mrf_device::kEnergyScale * std::log(sigma)))});
  }
  return out;
}

/// One sweep over both colours; returns the number of voxels that changed their class.
inline std::uint64_t sweep(const Volume& volume, Labels& labels,
                           const std::vector<ClassTerm>& terms, int beta) {
  const auto [w, h, d] = volume.size;
  std::uint64_t changed = 0;
  const auto at = [&](int x, int y, int z) -> std::uint8_t& {
    return labels[(static_cast<std::size_t>(z) * static_cast<std::size_t>(h) +
                   static_cast<std::size_t>(y)) *
                      static_cast<std::size_t>(w) +
                  static_cast<std::size_t>(x)];
  };
  for (int colour = 0; colour < 2; ++colour) {
    for (int z = 0; z < d; ++z) {
      for (int y = 0; y < h; ++y) {
        for (int x = (colour + y + z) & 1; x < w; x += 2) {
          int same[mrf_device::kMaxClasses] = {};
          if (x > 0) ++same[at(x - 1, y, z)];
          if (x + 1 < w) ++same[at(x + 1, y, z)];
          if (y > 0) ++same[at(x, y - 1, z)];
          if (y + 1 < h) ++same[at(x, y + 1, z)];
          if (z > 0) ++same[at(x, y, z - 1)];
          if (z + 1 < d) ++same[at(x, y, z + 1)];
          std::uint8_t& label = at(x, y, z);
          const int level = volume.levels[static_cast<std::size_t>(&label - labels.data())];
          int best = std::numeric_limits<int>::max();
          std::uint8_t chosen = 0;
          for (std::size_t k = 0; k < terms.size(); ++k) {
            const std::int64_t distance = mrf_device::kMeanScale * level - terms[k].mean;
            const auto scaled =
                static_cast<std::uint64_t>(distance * distance) * terms[k].weight >> 32;
            const int data =
                static_cast<int>(std::min<std::uint64_t>(scaled, mrf_device::kMaxDataEnergy));
            const int energy = data + terms[k].offset - 2 * beta * same[k];
            if (energy < best) {
              best = energy;
              chosen = static_cast<std::uint8_t>(k);
            }
          }
          changed += chosen != label;
          label = chosen;
        }
      }
    }
  }
  return changed;
}

}  // namespace mrf
