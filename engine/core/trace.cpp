#include "core/trace.hpp"

#include <fmt/format.h>

#include <atomic>
#include <iterator>
#include <map>

#include "core/exact_text.hpp"

namespace hmmjit {

void Trace::add(std::string_view group, int row, std::string_view name, double begin, double end) {
  const std::lock_guard lock(mutex_);
  spans_.push_back({std::string(group), std::string(name), row, begin, end});
}

void Trace::add(std::string_view group, std::string_view name, double begin, double end) {
  static std::atomic<int> next{0};
  thread_local const int row = next.fetch_add(1);
  add(group, row, name, begin, end);
}

std::string Trace::json() const {
  const auto quoted = [](const std::string& value) {
    std::string out;
    text::json_string(out, value);
    return out;
  };
  const std::lock_guard lock(mutex_);
  std::map<std::string, int> groups;
  std::string out = "{\"traceEvents\":[\n";
  for (const Span& span : spans_) {
    const auto [found, added] = groups.try_emplace(span.group, static_cast<int>(groups.size()));
    if (added)
      fmt::format_to(
          std::back_inserter(out),
          "{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}},\n",
          found->second, quoted(span.group));
    fmt::format_to(
        std::back_inserter(out),
        "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"name\":{},\"ts\":{:.1f},\"dur\":{:.1f}}},\n",
        found->second, span.row, quoted(span.name), (span.begin - origin_) * 1e6,
        (span.end - span.begin) * 1e6);
  }
  if (!spans_.empty()) out.erase(out.size() - 2, 1);
  return out + "],\"displayTimeUnit\":\"ms\"}\n";
}

}  // namespace hmmjit
