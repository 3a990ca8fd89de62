#include "driver/cuda_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <type_traits>

#if HMMJIT_HAVE_CUDA_HEADERS
#include <cuda.h>
#endif

namespace hmmjit::driver {

const char* driver_state_name(DriverState state) {
  constexpr std::array kNames{"ready",   "no driver", "stub",     "no device",
                              "too old", "failed",    "not built"};
  return kNames[static_cast<std::size_t>(state)];
}

Error error_of(const DriverReport& report) {
  return {ErrorCode::kNoDevice, report.message, {}, report.remedy};
}

#if HMMJIT_HAVE_CUDA_HEADERS

// Checks our declarations against the vendor's.
static_assert(sizeof(CUdeviceptr) == sizeof(DevicePointer) && sizeof(CUdevice) == sizeof(int) &&
              sizeof(CUresult) == sizeof(int) && sizeof(CUkernel) == sizeof(KernelHandle));
static_assert(CUDA_SUCCESS == code::kSuccess && CUDA_ERROR_INVALID_VALUE == code::kInvalidValue &&
              CUDA_ERROR_OUT_OF_MEMORY == code::kOutOfMemory &&
              CUDA_ERROR_NOT_INITIALIZED == code::kNotInitialized &&
              CUDA_ERROR_STUB_LIBRARY == code::kStubLibrary &&
              CUDA_ERROR_DEVICE_UNAVAILABLE == code::kDeviceUnavailable &&
              CUDA_ERROR_NO_DEVICE == code::kNoDevice &&
              CUDA_ERROR_INVALID_DEVICE == code::kInvalidDevice &&
              CUDA_ERROR_INVALID_IMAGE == code::kInvalidImage &&
              CUDA_ERROR_NO_BINARY_FOR_GPU == code::kNoBinaryForGpu &&
              CUDA_ERROR_ECC_UNCORRECTABLE == code::kEccUncorrectable &&
              CUDA_ERROR_INVALID_PTX == code::kInvalidPtx &&
              CUDA_ERROR_UNSUPPORTED_PTX_VERSION == code::kUnsupportedPtxVersion &&
              CUDA_ERROR_INVALID_SOURCE == code::kInvalidSource &&
              CUDA_ERROR_NOT_FOUND == code::kNotFound && CUDA_ERROR_NOT_READY == code::kNotReady &&
              CUDA_ERROR_ILLEGAL_ADDRESS == code::kIllegalAddress &&
              CUDA_ERROR_LAUNCH_FAILED == code::kLaunchFailed &&
              CUDA_ERROR_SYSTEM_DRIVER_MISMATCH == code::kSystemDriverMismatch);
static_assert(CU_DEVICE_ATTRIBUTE_CLOCK_RATE == attribute::kClockRate &&
              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT == attribute::kSmCount &&
              CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE == attribute::kMemoryClockRate &&
              CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH == attribute::kMemoryBusWidth &&
              CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE == attribute::kL2Bytes &&
              CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR == attribute::kThreadsPerSm &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == attribute::kMajor &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == attribute::kMinor &&
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR == attribute::kSharedPerSm &&
              CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR == attribute::kRegistersPerSm &&
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ==
                  attribute::kSharedPerBlockOptin &&
              CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR == attribute::kBlocksPerSm &&
              CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK ==
                  attribute::kSharedReservedPerBlock);
static_assert(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK == attribute::kKernelMaxThreads &&
              CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES == attribute::kKernelStaticShared &&
              CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES == attribute::kKernelLocalBytes &&
              CU_FUNC_ATTRIBUTE_NUM_REGS == attribute::kKernelRegisters &&
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ==
                  attribute::kKernelMaxDynamicShared);

CudaLibrary open_cuda_library() {
  CudaLibrary out;
  const char* named = std::getenv("HMMJIT_CUDA_LIBRARY");
  const char* name = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    out.report = {.state = DriverState::kNoDriver,
                  .version = 0,
                  .path = name,
                  .message = fmt::format("no NVIDIA driver on this machine ({})",
                                         why != nullptr ? why : "not found"),
                  .remedy = "install the NVIDIA driver to use a GPU"};
    return out;
  }
  link_map* map = nullptr;
  out.report.path =
      dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr ? map->l_name : name;

  std::string missing;
  const auto resolve = [&](auto& member, const char* symbol) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(dlsym(handle, symbol));
    if (member == nullptr && missing.empty()) missing = symbol;
  };
  DriverApi& a = out.api;
  resolve(a.init, "cuInit");
  resolve(a.driver_version, "cuDriverGetVersion");
  resolve(a.error_name, "cuGetErrorName");
  resolve(a.error_string, "cuGetErrorString");
  resolve(a.device_count, "cuDeviceGetCount");
  resolve(a.device_get, "cuDeviceGet");
  resolve(a.device_name, "cuDeviceGetName");
  resolve(a.device_attribute, "cuDeviceGetAttribute");
  resolve(a.device_memory, "cuDeviceTotalMem_v2");
  resolve(a.context_retain, "cuDevicePrimaryCtxRetain");
  resolve(a.context_set_current, "cuCtxSetCurrent");
  resolve(a.context_synchronize, "cuCtxSynchronize");
  resolve(a.library_load, "cuLibraryLoadData");
  resolve(a.library_unload, "cuLibraryUnload");
  resolve(a.library_kernel, "cuLibraryGetKernel");
  resolve(a.kernel_attribute, "cuKernelGetAttribute");
  resolve(a.kernel_set_attribute, "cuKernelSetAttribute");
  resolve(a.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  resolve(a.launch, "cuLaunchKernel");
  resolve(a.memory_info, "cuMemGetInfo_v2");
  resolve(a.memory_allocate, "cuMemAlloc_v2");
  resolve(a.memory_free, "cuMemFree_v2");
  resolve(a.host_register, "cuMemHostRegister_v2");
  resolve(a.host_unregister, "cuMemHostUnregister");
  resolve(a.copy_to_device, "cuMemcpyHtoDAsync_v2");
  resolve(a.copy_to_host, "cuMemcpyDtoHAsync_v2");
  resolve(a.fill, "cuMemsetD8Async");
  resolve(a.stream_create, "cuStreamCreateWithPriority");
  resolve(a.stream_destroy, "cuStreamDestroy_v2");
  resolve(a.stream_synchronize, "cuStreamSynchronize");
  resolve(a.stream_query, "cuStreamQuery");
  resolve(a.stream_add_callback, "cuStreamAddCallback");
  resolve(a.stream_wait_event, "cuStreamWaitEvent");
  resolve(a.event_create, "cuEventCreate");
  resolve(a.event_destroy, "cuEventDestroy_v2");
  resolve(a.event_record, "cuEventRecord");
  resolve(a.event_synchronize, "cuEventSynchronize");
  resolve(a.event_query, "cuEventQuery");
  resolve(a.event_elapsed, "cuEventElapsedTime");

  if (a.driver_version != nullptr) a.driver_version(&out.report.version);
  if (!missing.empty()) {
    out.report.state = DriverState::kTooOld;
    out.report.message =
        fmt::format("the NVIDIA driver (CUDA {}.{}) has no {}", out.report.version / 1000,
                    out.report.version % 1000 / 10, missing);
    out.report.remedy = "update the driver: hmmjit needs one for CUDA 12.0 (525) or newer";
    return out;
  }
  out.report.state = DriverState::kReady;
  return out;
}

#else

CudaLibrary open_cuda_library() {
  CudaLibrary out;
  out.report.state = DriverState::kNotBuilt;
  out.report.message = "this hmmjit was built without the CUDA headers and uses no GPU";
  out.report.remedy =
      "rebuild with the CUDA toolkit's headers installed; the CPU search works as it is";
  return out;
}

#endif

}  // namespace hmmjit::driver
