// Opening libcuda at run time.
#pragma once

#include <string>
#include <variant>

#include "core/error.hpp"
#include "driver/driver_api.hpp"

namespace hmmjit::driver {

enum class DriverState {
  kReady,     ///< at least one device
  kNoDriver,  ///< no libcuda.so.1 on this machine
  kStub,      ///< the toolkit's stub library instead of a driver
  kNoDevice,  ///< a driver without a usable device
  kTooOld,    ///< a driver without the functions hmmjit needs (before CUDA 12.0)
  kFailed,    ///< the driver does not start; the message quotes it
  kNotBuilt,  ///< hmmjit was built without CUDA headers
};
const char* driver_state_name(DriverState state);

/// State of the driver; `message` and `remedy` are complete sentences for users.
struct DriverReport {
  DriverState state = DriverState::kNoDriver;
  int version = 0;   ///< 12040 for CUDA 12.4; 0 if unknown
  std::string path;  ///< of the library
  std::string message;
  std::string remedy;
};

/// The kNoDevice error for any state other than kReady.
Error error_of(const DriverReport& report);

/// Opens libcuda.so.1 (or the file that $HMMJIT_CUDA_LIBRARY names) and resolves the table. Does
/// not initialise the driver; never closes it.
struct CudaLibrary {
  DriverReport report;  ///< kReady: `api` is complete
  DriverApi api{};
};
CudaLibrary open_cuda_library();

}  // namespace hmmjit::driver
