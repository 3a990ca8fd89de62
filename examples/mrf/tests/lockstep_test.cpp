// The kernel, executed in lockstep on the host, gives the labels of the CPU reference.
#include "lockstep/lockstep.hpp"

#include <gtest/gtest.h>

#include "lockstep/registry.hpp"
#include "segmentation.hpp"

namespace {

using namespace mrf;
using namespace mrf_device;

TEST(MrfLockstep, UpdatesAsTheReference) {
  for (const auto& kernel : hmmjit_lockstep::kernel_instances()) {
    SCOPED_TRACE(kernel.name);
    const auto get = [&](const char* name) { return static_cast<int>(kernel.at(name)); };
    const int w = get("kWidth"), h = get("kHeight"), d = get("kDepth"), classes = get("kClasses");
    const Volume volume = synthetic_volume({w, h, d}, classes);
    Labels expected = first_labels(volume, classes);
    auto terms = estimate(volume, expected, classes);
    if (classes > 2) terms.back() = terms.front();  // equal energies
    Labels padded(static_cast<std::size_t>(label_plane(w, h) * (d + 2)),
                  static_cast<std::uint8_t>(classes));
    std::vector<std::uint16_t> levels(static_cast<std::size_t>(filled(w) * h * d));
    const auto row_of = [&](int row) {
      return padded.begin() + (row / h + 1) * label_plane(w, h) + (row % h + 1) * label_pitch(w) +
             4;
    };
    for (int row = 0; row < h * d; ++row) {
      std::copy_n(expected.begin() + row * w, w, row_of(row));
      std::copy_n(volume.levels.begin() + row * w, w, levels.begin() + row * filled(w));
    }
    for (int round = 0; round < 3; ++round) {
      const std::uint64_t changes = sweep(volume, expected, terms, kEnergyScale);
      unsigned changed = 0;
      UpdateParameters p{padded.data(), levels.data(), &changed, 0, kEnergyScale, {}};
      std::ranges::copy(terms, p.classes);
      const auto blocks = [](int extent, int tile) { return (extent + tile - 1) / tile; };
      const int grid =
          blocks(blocks(w, 4), get("kTileX")) * blocks(h, get("kTileY")) * blocks(d, get("kTileZ"));
      for (p.colour = 0; p.colour < 2; ++p.colour) {
        hmmjit_lockstep::launch(static_cast<unsigned>(grid),
                                static_cast<unsigned>(get("kTileX") * get("kTileY")), 0,
                                [&] { kernel.run(&p); });
      }
      EXPECT_EQ(changed, changes);
      EXPECT_TRUE(changes > 0 || round > 0 || w * h * d < 100);
      for (int row = 0; row < h * d; ++row) {
        ASSERT_TRUE(std::equal(row_of(row), row_of(row) + w, expected.begin() + row * w)) << row;
      }
    }
  }
}

}  // namespace
