// What a file is that a reader cannot read, as far as its first bytes tell.
#pragma once

#include <optional>
#include <string_view>

namespace hmmjit {

struct ForeignFile {
  std::string_view what;    ///< "it is compressed with bzip2"
  std::string_view remedy;  ///< the next step
};
/// `head`: the first bytes of the file. Nothing for text of no known kind.
std::optional<ForeignFile> recognise_foreign_file(std::string_view head);

}  // namespace hmmjit
