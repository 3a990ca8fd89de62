// Starts the driver, the kernel cache and the devices.
#pragma once

#include <memory>
#include <vector>

#include "gpu/search_parts.hpp"

namespace hmmjit::gpu {

/// The devices that work, with what their lanes may use of them: none of the settings' devices
/// where that fails, the error then. Takes tenths of a second, during which kernels are requested.
Result<std::vector<std::unique_ptr<ActiveDevice>>> start_devices(SearchParts& parts);

}  // namespace hmmjit::gpu
