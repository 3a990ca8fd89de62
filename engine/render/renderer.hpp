// From a template and the constants of a plan to one self-contained translation unit.
//
// Contents of a rendered source: a comment with the template's name; the template with every
// include expanded in place and `#line` markers that lead each line back to its template file; the
// generated block of constants where `#include "plan_constants.h"` stood. Nothing else: the text is
// a function of templates and constants alone (no time, host, path, locale), because it is the
// main part of the cache key. Parts under `#ifndef __CUDACC_RTC__` are for host compilers and are
// dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "plan/plan.hpp"
#include "render/template_library.hpp"

namespace hmmjit::render {

struct RenderedSource {
  std::string text;  ///< ASCII CUDA C++ without includes
  std::string
      file_name;  ///< "/kernel_templates/" and the template path: the name diagnostics carry
  std::string entry_name;          ///< extern "C" kernel
  std::vector<std::string> files;  ///< templates that went into the text, in order of inclusion
};

/// Renders one template. Fails with kCompile and "file:line" for: a missing template or include, an
/// include from outside the templates, a constant that no line uses, a plan_constants:: name that
/// is not in the list, a character outside ASCII, no or several includes of plan_constants.h, an
/// entry kernel that the text does not define.
Result<RenderedSource> render(const TemplateLibrary& library, std::string_view template_file,
                              std::string_view entry_name, const plan::Constants& constants);

inline Result<RenderedSource> render(const TemplateLibrary& library,
                                     const plan::Candidate& candidate) {
  return render(library, candidate.variant->template_file, candidate.variant->entry_name,
                candidate.constants);
}

}  // namespace hmmjit::render
