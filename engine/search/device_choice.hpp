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

/// The devices that the user asks for.
struct DeviceChoice {
  enum class Use { kAuto, kCpu, kGpu } use = Use::kAuto;
  std::vector<int> ordinals{0};  ///< with kAuto: those that may be used
  std::uint64_t vram = 0;  ///< limit on bytes of a device's memory; 0: none
  bool started = false;    ///< they have been, for earlier searches
};
gpu::Settings device_settings(const DeviceChoice& choice);

/// The size of a search (model positions or residues), if it is known. Empty: it is not.
using SizeOf = std::function<std::optional<double>()>;
/// Whether a search starts its devices: if they are demanded or make it faster, and if the threads
/// that they need can be started. `note` says why not, or why only some of `choice`, which then
/// keeps these. Fails with kResources if demanded devices lack threads. Calls `positions` and
/// `residues` only if they decide.
Result<bool> starts_devices(DeviceChoice& choice, const SearchOptions& options,
                            const SizeOf& positions, const SizeOf& residues, std::string& note);

/// Model positions and residues of a file, estimated from its size; nullopt if that is not known
/// (standard input, a missing file).
std::optional<double> positions_of_file(const std::string& path);
std::optional<double> residues_of_file(const std::string& path);

/// False, with the reason in `note`, if the CPU would finish before a GPU has started, or has
/// answered if it is `started`. Unknown sizes count as large.
bool device_pays(const SearchOptions& options, std::optional<double> positions,
                 std::optional<double> residues, std::string& note, bool started = false);

/// How many of `present` devices finish a search of this many cells soonest.
int devices_that_pay(double cells, int threads, int present);

/// The number of devices of this process. `visible`: the value of CUDA_VISIBLE_DEVICES; null: not
/// set. `nodes`: the folder of the device files.
int devices_present(const char* visible, const std::string& nodes = "/dev");

/// The value of CUDA_VISIBLE_DEVICES that hides the devices after number `last`, each of which
/// costs the driver a quarter of a second, and keeps the numbers of the others. `present`: its
/// current value; null if it is not set. nullopt: leave it as it is.
std::optional<std::string> visible_devices_up_to(int last, const char* present);

/// How many hardware queues the driver should use for the streams of a device
/// (CUDA_DEVICE_MAX_CONNECTIONS), given the positions of all models; nullopt: the default, eight.
/// Streams that share a queue wait for each other's launches (CUDA C++ Programming Guide,
/// "Concurrent Kernel Execution").
std::optional<int> driver_queues(std::optional<double> positions);

}  // namespace hmmjit
