# Script: turns the parts of the page of results into one C++ source, OUTPUT.
# cmake -D PAGE_ROOT=... -D OUTPUT=... -P embed_page.cmake
set(source "// Generated from engine/report/page/ by embed_page.cmake.
#include \"report/page_parts.hpp\"

namespace hmmjit {

")
foreach(part html css js)
  file(READ "${PAGE_ROOT}/page.${part}" text)
  string(APPEND source "std::string_view page_${part}() { return R\"hmmjit(${text})hmmjit\"; }\n")
endforeach()
string(APPEND source "\n}  // namespace hmmjit\n")
file(WRITE "${OUTPUT}" "${source}")
