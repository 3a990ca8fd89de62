// The kernel templates: embedded in the program or, during their development, read from a folder.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace hmmjit::render {

struct Template {
  std::string_view path;  ///< below kernel_templates/, '/'-separated: "ssv/multi_lane.cu"
  std::string_view text;
};

/// The templates with which this program was built, sorted by path.
std::span<const Template> embedded_templates();

/// A set of templates by path. Immutable after construction; threads may share it.
class TemplateLibrary {
 public:
  /// The embedded templates, or those below $HMMJIT_TEMPLATE_DIR if that is set (which must then
  /// contain the complete set). Fails with kInput if the folder cannot be read.
  static Result<TemplateLibrary> from_environment();
  static TemplateLibrary embedded();
  static Result<TemplateLibrary> from_folder(const std::string& folder);
  /// For tests: templates given as text.
  static TemplateLibrary from_texts(std::map<std::string, std::string, std::less<>> texts);

  std::optional<std::string_view> find(std::string_view path) const;
  /// "embedded" or the folder's name.
  const std::string& origin() const { return origin_; }
  /// True if read from a folder, whose files may change.
  bool edited() const { return edited_; }
  const std::map<std::string, std::string, std::less<>>& texts() const { return texts_; }

 private:
  std::map<std::string, std::string, std::less<>> texts_;
  std::string origin_;
  bool edited_ = false;
};

}  // namespace hmmjit::render
