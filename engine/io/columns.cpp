#include "io/columns.hpp"

#include <algorithm>

namespace hmmjit {

Result<bool> ColumnReader::next() {
  std::string_view line;
  do {
    HMMJIT_ASSIGN(const bool more, input_.line(&line));
    if (!more) return false;
    if (line.ends_with('\r')) line.remove_suffix(1);
  } while (line.starts_with('#') || line.find_first_not_of(" \t") == line.npos);
  columns_.clear();
  const bool tabs = line.find('\t') != line.npos;
  const char separator = tabs ? '\t' : ' ';
  for (std::size_t from = 0; from <= line.size();) {
    const std::size_t to = std::min(line.find(separator, from), line.size());
    if (tabs || to > from) columns_.push_back(line.substr(from, to - from));
    from = to + 1;
  }
  return true;
}

}  // namespace hmmjit
