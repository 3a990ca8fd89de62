#include "volume.hpp"

#include <algorithm>
#include <cmath>
#include <hmmjit/error.hpp>
#include <limits>

namespace mrf {

Volume quantise(Size size, std::span<const float> values,
                std::optional<std::pair<double, double>> window) {
  using hmmjit::Error, hmmjit::ErrorCode;
  Volume out;
  out.size = size;
  if (!window) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const float v : values) {
      if (!std::isfinite(v)) continue;
      low = std::min<double>(low, v);
      high = std::max<double>(high, v);
    }
    if (!(low < high)) {
      throw Error(ErrorCode::kInput,
                  low == high ? "every voxel has the same value" : "no voxel has a finite value",
                  "intensities", "give a volume with contrast");
    }
    window = {low, high};
  }
  std::tie(out.low, out.high) = *window;
  const double scale = 4095 / (out.high - out.low);
  out.levels.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double v = (values[i] - out.low) * scale;
    out.levels[i] = v > 0 ? static_cast<std::uint16_t>(std::min(v, 4095.0) + 0.5) : 0;
  }
  return out;
}

namespace {
/// splitmix64 (Steele, Lea & Flood 2014): any seed is a good one.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [from, to), in steps of 2^-20 of the range.
  double between(double from, double to) {
    return from + (to - from) * static_cast<double>(next() >> 44) * 0x1p-20;
  }
  /// Sum of eight uniform numbers, mean 0: standard deviation 65536 * sqrt(8 / 12).
  std::int64_t noise() {
    const std::uint64_t a = next(), b = next();
    std::int64_t sum = -4 * 65535;
    for (int shift = 0; shift < 64; shift += 16) {
      sum += static_cast<std::int64_t>((a >> shift) & 65535u);
      sum += static_cast<std::int64_t>((b >> shift) & 65535u);
    }
    return sum;
  }

 private:
  std::uint64_t state_;
};
}  // namespace

Synthetic synthetic_volume(Size size, int classes, double noise, std::uint64_t seed) {
  Synthetic out;
  out.volume.size = size;
  const auto voxels = static_cast<std::size_t>(size.voxels());
  out.truth.assign(voxels, 0);
  Random random(seed);
  // Later ellipsoids lie over earlier ones, and are smaller.
  const int shapes = 6 * (classes - 1);
  for (int s = 0; s < shapes; ++s) {
    const double shrink = 0.45 * std::pow(0.85, s);
    double centre[3], radius[3];
    const int extent[3] = {size.width, size.height, size.depth};
    for (int axis = 0; axis < 3; ++axis) {
      radius[axis] = std::max(1.0, extent[axis] * shrink * random.between(0.7, 1.1));
      centre[axis] = extent[axis] * random.between(s == 0 ? 0.45 : 0.2, s == 0 ? 0.55 : 0.8);
    }
    const auto label = static_cast<std::uint8_t>(1 + s % (classes - 1));
    const auto from = [&](int axis) { return std::max(0, int(centre[axis] - radius[axis])); };
    const auto to = [&](int axis) {
      return std::min(extent[axis] - 1, int(centre[axis] + radius[axis]) + 1);
    };
    for (int z = from(2); z <= to(2); ++z) {
      for (int y = from(1); y <= to(1); ++y) {
        const double dz = (z - centre[2]) / radius[2], dy = (y - centre[1]) / radius[1];
        std::uint8_t* row =
            out.truth.data() +
            (std::size_t(z) * std::size_t(size.height) + std::size_t(y)) * std::size_t(size.width);
        for (int x = from(0); x <= to(0); ++x) {
          const double dx = (x - centre[0]) / radius[0];
          if (dx * dx + dy * dy + dz * dz <= 1) row[x] = label;
        }
      }
    }
  }
  // Means from level 700 to 3400; noise is scaled in integers.
  const int step = 2700 / (classes - 1);
  const auto amplitude = std::llround(noise * step * 4096 / std::sqrt(8.0 / 12));
  out.volume.levels.resize(voxels);
  for (std::size_t i = 0; i < voxels; ++i) {
    const std::int64_t level = 700 + out.truth[i] * step + ((random.noise() * amplitude) >> 28);
    out.volume.levels[i] = static_cast<std::uint16_t>(std::clamp<std::int64_t>(level, 0, 4095));
  }
  return out;
}

}  // namespace mrf
