#include "report/kept_rows.hpp"

#include <fmt/format.h>

#include "core/numbers.hpp"
#include "report/records.hpp"

namespace hmmjit {
namespace {

// Follows kKeptLater in a mark with a place.
constexpr char kPlace = '@';

}  // namespace

void append_kept_mark(std::string& out, int count) {
  fmt::format_to(std::back_inserter(out), "{0}{1}{0}", kKeptLater, count);
}

void append_kept_place(std::string& out, std::size_t place) {
  fmt::format_to(std::back_inserter(out), "{0}{1}{2}{0}", kKeptLater, kPlace, place);
}

void KeptRows::append(std::string& out, std::string_view bytes) {
  const bool values = kind_ == OutputKind::kTsv || kind_ == OutputKind::kJson;
  for (const char c : bytes) {
    if (values && c == kKeptLater) {
      append_value(out);
    } else if (values) {
      out += c;
    } else {
      row_ += c;
      if (c == '\n') append_row(out);
    }
  }
}

void KeptRows::append_value(std::string& out) {
  const bool kept = is_kept(next_++);
  if (kind_ == OutputKind::kJson)
    out += kept ? "true" : "false";
  else
    out += kept ? '1' : '0';
}

void KeptRows::append_row(std::string& out) {
  std::string_view row = row_;
  bool kept = !row.starts_with(kKeptLater);
  if (kept) {
    if (row.starts_with("# Sequence scores")) model_ = next_;
  } else {
    const std::size_t end = row.find(kKeptLater, 1);
    std::string_view mark = row.substr(1, end - 1);
    row.remove_prefix(end + 1);
    if (mark.starts_with(kPlace)) {
      mark.remove_prefix(1);
      kept = is_kept(model_ + static_cast<std::size_t>(parse_int(mark).value_or(0)));
    } else {
      for (auto left = parse_int(mark).value_or(0); left > 0; --left) kept |= is_kept(next_++);
    }
  }
  if (kept) out += row;
  row_.clear();
}

}  // namespace hmmjit
