// Image volumes: voxels in x, y, z order, x fastest.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mrf {

struct Size {
  int width = 0, height = 0, depth = 0;
  std::int64_t voxels() const { return std::int64_t{width} * height * depth; }
  bool operator==(const Size&) const = default;
};

/// Intensities in 4096 levels; level v stands for low + v * (high - low) / 4095.
struct Volume {
  Size size;
  std::vector<std::uint16_t> levels;  ///< [voxels]
  double low = 0, high = 4095;
  double value_of(double level) const { return low + level * (high - low) / 4095; }
  double width_of(double levels_wide) const { return levels_wide * (high - low) / 4095; }
};

/// One class per voxel, from 0.
using Labels = std::vector<std::uint8_t>;

/// Rounds values to levels. `window`: values of level 0 and 4095, what lies outside is clamped;
/// unset: least and greatest finite value. NaN becomes level 0. Throws hmmjit::Error (kInput) when
/// no value is finite or all are equal.
Volume quantise(Size size, std::span<const float> values,
                std::optional<std::pair<double, double>> window);

struct Synthetic {
  Volume volume;
  Labels truth;
};
/// Nested and scattered ellipsoids of `classes` tissues with Gaussian noise of `noise` times the
/// distance between neighbouring means. The same everywhere for the same arguments: its noise is
/// made of integers only.
Synthetic synthetic_volume(Size size, int classes, double noise, std::uint64_t seed);

}  // namespace mrf
