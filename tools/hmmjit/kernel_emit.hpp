// Machine code of a kernel as text.
#pragma once

#include <string>

#include "compile/kernel_compiler.hpp"
#include "core/error.hpp"

namespace hmmjit::tools {

/// A disassembler of the CUDA toolkit (nvdisasm or cuobjdump), from PATH, $CUDA_HOME/bin or
/// /usr/local/cuda/bin; empty if not found.
std::string find_disassembler();

/// Machine code of a cubin as text. Fails with kCompile if no disassembler is installed.
Result<std::string> disassemble(const std::string& cubin);

}  // namespace hmmjit::tools
