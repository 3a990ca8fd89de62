// The command line.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "segmentation.hpp"

namespace mrf {

enum class DeviceChoice { kAuto, kCpu, kGpu };

struct Options {
  std::string input;  ///< empty: synthetic
  std::optional<int> frame;
  Size synthetic{128, 128, 128};
  double noise = 0.5;
  std::uint64_t seed = 1;
  std::optional<std::pair<double, double>> window;
  Settings settings;
  DeviceChoice device = DeviceChoice::kAuto;
  int gpu = 0;
  bool compare = false, show_plan = false, help = false;
  std::string slices, labels, stats, write_input;
  int slice_step = 0;  ///< 0: about eight axial slices
};

/// Throws hmmjit::Error (kUsage).
Options parse_options(int argc, char** argv);
extern const char* const kUsageText;

}  // namespace mrf
