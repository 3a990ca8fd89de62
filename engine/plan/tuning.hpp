// The best choices measured on a device, kept between runs; the planner prefers them.
//
// Format: JSON lines, one choice each; see docs/tuning-format.md. A choice holds for one device
// model (name, architecture, SM count) and one version of the kernel catalogue. Anything else, and
// any line that a reader does not understand, is a miss and never an error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "plan/device_traits.hpp"
#include "plan/kernel_variant.hpp"

namespace hmmjit::plan {

struct TunedChoice {
  std::string device;  ///< the driver's name for the device
  int capability = 0, sm_count = 0;
  std::string catalogue;  ///< version of the kernels: compile::catalogue_version
  Stage stage = Stage::kSsv;
  int class_length = 0;
  std::string variant;
  Constants constants;
  double gcups = 0;          ///< as measured, in real cells
  double planned_gcups = 0;  ///< for the planner's own first choice in the same measurement
  std::uint64_t targets = 0, residues = 0;  ///< size of the measurement
};

/// Choices by device, stage and class length. Plain data.
class TuningTable {
 public:
  /// Reads the choices in `text` that hold for the catalogue; `skipped` counts malformed lines and
  /// lines of other catalogues.
  static TuningTable parse(std::string_view text, std::string_view catalogue,
                           std::size_t* skipped = nullptr);
  /// JSON lines, sorted; parse(text()) gives the same table.
  std::string text() const;

  /// Replaces an earlier choice for the same device, stage and class length.
  void add(TunedChoice choice);
  const TunedChoice* find(Stage stage, int class_length, const DeviceTraits& device) const;
  std::size_t size() const { return choices_.size(); }

 private:
  using Key = std::tuple<std::string, int, int, Stage, int>;
  std::map<Key, TunedChoice> choices_;
};

}  // namespace hmmjit::plan
