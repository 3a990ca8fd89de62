// Renders a template and the constants of a plan into one self-contained translation unit.
//
// A rendered source consists of a comment with the template's name; the template with every include
// expanded in place and `#line` markers that map each line to its template file; and the generated
// block of constants in place of `#include "plan_constants.h"`. The text is the main part of the
// cache key and depends only on templates and constants (not on time, host, path or locale). Parts
// under `#ifndef __CUDACC_RTC__` are for host compilers and are dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "plan/plan.hpp"
#include "render/template_library.hpp"

namespace hmmjit::render {

struct RenderedSource {
  std::string text;        ///< ASCII CUDA C++ without includes
  std::string file_name;   ///< "/kernel_templates/" and the template path, as diagnostics show it
  std::string entry_name;  ///< extern "C" kernel
  std::vector<std::string> files;  ///< templates included in the text, in order
};

/// Renders one template. Fails with kCompile and "file:line" for: a missing template or include, an
/// include from outside the templates, an unused constant, an unknown plan_constants:: name, a
/// non-ASCII character, no or several includes of plan_constants.h, an undefined entry kernel.
Result<RenderedSource> render(const TemplateLibrary& library, std::string_view template_file,
                              std::string_view entry_name, const plan::Constants& constants);

inline Result<RenderedSource> render(const TemplateLibrary& library,
                                     const plan::Candidate& candidate) {
  return render(library, candidate.variant->template_file, candidate.variant->entry_name,
                candidate.constants);
}

}  // namespace hmmjit::render
