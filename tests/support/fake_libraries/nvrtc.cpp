// Looks like NVRTC 13.9, whose built-ins library exists nowhere.
extern "C" {
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 9;
  return 0;
}
int nvrtcGetErrorString() { return 1; }
int nvrtcGetNumSupportedArchs() { return 1; }
int nvrtcGetSupportedArchs() { return 1; }
int nvrtcCreateProgram() { return 1; }
int nvrtcDestroyProgram() { return 1; }
int nvrtcCompileProgram() { return 1; }
int nvrtcGetProgramLogSize() { return 1; }
int nvrtcGetProgramLog() { return 1; }
int nvrtcGetCUBINSize() { return 1; }
int nvrtcGetCUBIN() { return 1; }
int nvrtcGetPTXSize() { return 1; }
int nvrtcGetPTX() { return 1; }
int nvrtcSetFlowCallback() { return 1; }
}
