#include "io/foreign_file.hpp"

#include <algorithm>
#include <string>

namespace hmmjit {

std::optional<ForeignFile> recognise_foreign_file(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("BZh") && head.size() > 6 && head.substr(4, 3) == "1AY"sv)
    return ForeignFile{"it is compressed with bzip2",
                       "decompress it on the way: bzcat FILE | ... -"};
  if (head.starts_with("\xfd"
                       "7zXZ\0"sv))
    return ForeignFile{"it is compressed with xz", "decompress it on the way: xzcat FILE | ... -"};
  if (head.starts_with("\x04\x22\x4d\x18"sv))
    return ForeignFile{"it is compressed with lz4",
                       "decompress it on the way: lz4cat FILE | ... -"};
  if (head.starts_with("PK\x03\x04"sv))
    return ForeignFile{"it is a ZIP archive", "unpack it on the way: unzip -p FILE | ... -"};
  if (head.size() > 262 && head.substr(257, 5) == "ustar"sv)
    return ForeignFile{"it is a tar archive", "unpack it first: tar -xf FILE"};
  if (head.starts_with("version https://git-lfs"))
    return ForeignFile{"it is a Git LFS pointer, not the file itself", "fetch it: git lfs pull"};
  if (head.starts_with("\xef\xbb\xbf"))
    return ForeignFile{"it begins with a UTF-8 byte order mark", "remove its first three bytes"};
  std::string start(head.substr(0, 64));
  start.erase(0, std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  std::ranges::transform(start, start.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (start.starts_with("<!doctype html") || start.starts_with("<html"))
    return ForeignFile{"it is an HTML page, such as a server sends instead of a file",
                       "look at it, and fetch the file again"};
  if (start.starts_with("hmmer3/") || start.starts_with("hmmer2."))
    return ForeignFile{"it is a profile HMM file",
                       "the profile file comes first, the sequences after it"};
  if (start.starts_with(">"))
    return ForeignFile{"it is a FASTA file",
                       "the profile file comes first, the sequences after it"};
  if (start.starts_with("# stockholm"))
    return ForeignFile{"it is an alignment",
                       "build a profile from the alignment with hmmbuild first"};
  return std::nullopt;
}

}  // namespace hmmjit
