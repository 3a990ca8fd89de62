// The driver functions that hmmjit calls, as a table of pointers into libcuda or, in tests, a fake.
// Declares the types of the driver's C ABI (64-bit): no other file needs CUDA headers;
// cuda_library.cpp checks them against the real ones.
#pragma once

#include <cstddef>

namespace hmmjit::driver {

using DevicePointer = unsigned long long;

/// Opaque handles; the driver accepts a kernel handle wherever it takes a function.
using ContextHandle = struct ContextTag*;
using StreamHandle = struct StreamTag*;
using EventHandle = struct EventTag*;
using LibraryHandle = struct LibraryTag*;
using KernelHandle = struct KernelTag*;

/// Called by a stream on a driver thread, with the result of the previously queued work.
using StreamCallback = void (*)(StreamHandle stream, int result, void* argument);

/// The values of the driver's enumerations that hmmjit uses.
namespace code {
inline constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3,
                     kStubLibrary = 34, kDeviceUnavailable = 46, kNoDevice = 100,
                     kInvalidDevice = 101, kInvalidImage = 200, kNoBinaryForGpu = 209,
                     kEccUncorrectable = 214, kInvalidPtx = 218, kUnsupportedPtxVersion = 222,
                     kInvalidSource = 300, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700,
                     kLaunchFailed = 719, kSystemDriverMismatch = 803;
}
namespace attribute {
inline constexpr int kClockRate = 13, kSmCount = 16, kMemoryClockRate = 36, kMemoryBusWidth = 37,
                     kL2Bytes = 38, kThreadsPerSm = 39, kMajor = 75, kMinor = 76, kSharedPerSm = 81,
                     kRegistersPerSm = 82, kSharedPerBlockOptin = 97, kBlocksPerSm = 106,
                     kSharedReservedPerBlock = 111;
inline constexpr int kKernelMaxThreads = 0, kKernelStaticShared = 1, kKernelLocalBytes = 3,
                     kKernelRegisters = 4, kKernelMaxDynamicShared = 8;
}  // namespace attribute

/// Every member returns a driver result code. In tables that callers receive, no member is null.
struct DriverApi {
  int (*init)(unsigned flags);
  int (*driver_version)(int* version);
  int (*error_name)(int result, const char** name);
  int (*error_string)(int result, const char** text);

  int (*device_count)(int* count);
  int (*device_get)(int* device, int ordinal);
  int (*device_name)(char* name, int length, int device);
  int (*device_attribute)(int* value, int attribute, int device);
  int (*device_memory)(std::size_t* bytes, int device);
  int (*context_retain)(ContextHandle* context, int device);
  int (*context_set_current)(ContextHandle context);
  int (*context_synchronize)();

  int (*library_load)(LibraryHandle* library, const void* image, int* jit_options,
                      void** jit_values, unsigned jit_count, int* options, void** values,
                      unsigned count);
  int (*library_unload)(LibraryHandle library);
  int (*library_kernel)(KernelHandle* kernel, LibraryHandle library, const char* name);
  int (*kernel_attribute)(int* value, int attribute, KernelHandle kernel, int device);
  int (*kernel_set_attribute)(int attribute, int value, KernelHandle kernel, int device);
  int (*occupancy)(int* blocks, KernelHandle kernel, int block_threads, std::size_t shared_bytes);
  int (*launch)(KernelHandle kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                StreamHandle stream, void** parameters, void** extra);

  int (*memory_info)(std::size_t* free, std::size_t* total);
  int (*memory_allocate)(DevicePointer* pointer, std::size_t bytes);
  int (*memory_free)(DevicePointer pointer);
  int (*host_register)(void* pointer, std::size_t bytes, unsigned flags);
  int (*host_unregister)(void* pointer);
  int (*copy_to_device)(DevicePointer to, const void* from, std::size_t bytes, StreamHandle stream);
  int (*copy_to_host)(void* to, DevicePointer from, std::size_t bytes, StreamHandle stream);
  int (*fill)(DevicePointer to, unsigned char value, std::size_t bytes, StreamHandle stream);

  int (*stream_create)(StreamHandle* stream, unsigned flags, int priority);
  int (*stream_destroy)(StreamHandle stream);
  int (*stream_synchronize)(StreamHandle stream);
  int (*stream_query)(StreamHandle stream);
  int (*stream_add_callback)(StreamHandle stream, StreamCallback callback, void* argument,
                             unsigned flags);
  int (*stream_wait_event)(StreamHandle stream, EventHandle event, unsigned flags);
  int (*event_create)(EventHandle* event, unsigned flags);
  int (*event_destroy)(EventHandle event);
  int (*event_record)(EventHandle event, StreamHandle stream);
  int (*event_synchronize)(EventHandle event);
  int (*event_query)(EventHandle event);
  int (*event_elapsed)(float* milliseconds, EventHandle start, EventHandle end);
};

}  // namespace hmmjit::driver
