// An NVRTC whose images hold the constants that host_kernels.hpp needs to know of a kernel.
#include <cstdio>
#include <cstring>
#include <regex>
#include <string>

namespace {

struct Program {
  std::string source, log, image;
};

std::string found(const std::string& text, const char* pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "0";
}

int give(const std::string& text, char* to) {
  std::memcpy(to, text.c_str(), text.size() + 1);
  return 0;
}

}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
const char* nvrtcGetErrorString(int) { return "a result of the test's compiler"; }
int nvrtcGetNumSupportedArchs() { return 1; }
int nvrtcGetSupportedArchs() { return 1; }
int nvrtcCreateProgram(Program** program, const char* source) {
  *program = new Program{source, {}, {}};
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}
int nvrtcCompileProgram(Program* program) {
  const std::string& source = program->source;
  const std::string name = found(source, "__global__ [^{]*?(\\w+)\\((?=[^()]*\\) *\\{)");
  program->log =
      "Compiling entry function '" + name + "' for 'sm_90'\nFunction properties for " + name +
      "\n0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nUsed 32 registers\n";
  program->image = "image of 1024 positions, " + found(source, "\\{ kTargets = (\\d+) \\}") +
                   " targets a warp, runs of " + found(source, "\\{ kRun = (\\d+) \\}");
  return 0;
}
int nvrtcGetProgramLogSize(Program* program, std::size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* log) { return give(program->log, log); }
int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->image.size() + 1;
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* image) { return give(program->image, image); }
int nvrtcGetPTXSize() { return 1; }
int nvrtcGetPTX() { return 1; }
}
