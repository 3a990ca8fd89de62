// Whether a search starts a GPU, and which.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "gpu/gpu_filters.hpp"
#include "search/options.hpp"

namespace hmmjit {

/// What the user asks for.
struct DeviceChoice {
  enum class Use { kAuto, kCpu, kGpu } use = Use::kAuto;
  std::vector<int> ordinals{0};
  std::uint64_t vram = 0;  ///< bytes of a device's memory; 0: no bound of the user's
};
/// The settings that follow from a choice.
gpu::Settings device_settings(const DeviceChoice& choice);

/// How large a search is, as far as that is known: model positions, or residues.
using SizeOf = std::function<std::optional<double>()>;
/// Whether a search starts its devices: where they are demanded, or pay, and the threads that they
/// take can be started. False: `note` says why. Fails with kResources where demanded devices lack
/// threads. Sizes are asked for only where they decide.
Result<bool> starts_devices(const DeviceChoice& choice, const SearchOptions& options,
                            const SizeOf& positions, const SizeOf& residues, std::string& note);

/// Model positions and residues of a file, guessed from its size; nothing where that is not known
/// (standard input, a missing file).
std::optional<double> positions_of_file(const std::string& path);
std::optional<double> residues_of_file(const std::string& path);

/// False, and why in `note`, when the CPU would be done before a GPU has started. Unknown sizes
/// count as large.
bool device_pays(const SearchOptions& options, std::optional<double> positions,
                 std::optional<double> residues, std::string& note);

/// The value of CUDA_VISIBLE_DEVICES with which the driver starts no devices beyond number `last`,
/// each of which it takes a quarter of a second for, and numbers the others as before. `present`:
/// its value now, null where it is not set. Nothing where it should stay as it is.
std::optional<std::string> visible_devices_up_to(int last, const char* present);

/// How many queues the driver is to make for the streams of a device (CUDA_DEVICE_MAX_CONNECTIONS),
/// for models of so many positions; nothing: as many as it makes by itself, eight. Streams that share
/// a queue wait for each other's launches (CUDA C++ Programming Guide, "Concurrent Kernel Execution").
std::optional<int> driver_queues(std::optional<double> positions);

}  // namespace hmmjit
