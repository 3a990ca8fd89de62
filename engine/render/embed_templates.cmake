# Script: turns every file below TEMPLATE_ROOT into one C++ source, OUTPUT.
# cmake -D TEMPLATE_ROOT=... -D OUTPUT=... -P embed_templates.cmake
file(GLOB_RECURSE paths RELATIVE "${TEMPLATE_ROOT}" "${TEMPLATE_ROOT}/*.cu" "${TEMPLATE_ROOT}/*.cuh"
     "${TEMPLATE_ROOT}/*.h")
list(SORT paths)
set(entries "")
foreach(path IN LISTS paths)
  file(READ "${TEMPLATE_ROOT}/${path}" text)
  string(APPEND entries "    {\"${path}\", R\"hmmjit(${text})hmmjit\"},\n")
endforeach()
set(source "// Generated from kernel_templates/ by embed_templates.cmake.
#include \"render/template_library.hpp\"

namespace hmmjit::render {

std::span<const Template> embedded_templates() {
  static constexpr Template kTemplates[] = {
${entries}    {\"\", \"\"},
  };
  return {kTemplates, sizeof(kTemplates) / sizeof(kTemplates[0]) - 1};
}

}  // namespace hmmjit::render
")
file(WRITE "${OUTPUT}" "${source}")
