// A complete driver that sees no GPU.
extern "C" {
int cuInit(unsigned) { return 100; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuGetErrorName() { return 100; }
int cuGetErrorString() { return 100; }
int cuDeviceGetCount() { return 100; }
int cuDeviceGet() { return 100; }
int cuDeviceGetName() { return 100; }
int cuDeviceGetAttribute() { return 100; }
int cuDeviceTotalMem_v2() { return 100; }
int cuDevicePrimaryCtxRetain() { return 100; }
int cuCtxSetCurrent() { return 100; }
int cuCtxSynchronize() { return 100; }
int cuLibraryLoadData() { return 100; }
int cuLibraryUnload() { return 100; }
int cuLibraryGetKernel() { return 100; }
int cuKernelGetAttribute() { return 100; }
int cuKernelSetAttribute() { return 100; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor() { return 100; }
int cuLaunchKernel() { return 100; }
int cuMemGetInfo_v2() { return 100; }
int cuMemAlloc_v2() { return 100; }
int cuMemFree_v2() { return 100; }
int cuMemHostRegister_v2() { return 100; }
int cuMemHostUnregister() { return 100; }
int cuMemcpyHtoDAsync_v2() { return 100; }
int cuMemcpyDtoHAsync_v2() { return 100; }
int cuMemsetD8Async() { return 100; }
int cuStreamAddCallback() { return 100; }
int cuStreamCreateWithPriority() { return 100; }
int cuStreamDestroy_v2() { return 100; }
int cuStreamSynchronize() { return 100; }
int cuStreamQuery() { return 100; }
int cuStreamWaitEvent() { return 100; }
int cuEventCreate() { return 100; }
int cuEventDestroy_v2() { return 100; }
int cuEventRecord() { return 100; }
int cuEventSynchronize() { return 100; }
int cuEventQuery() { return 100; }
int cuEventElapsedTime() { return 100; }
}
