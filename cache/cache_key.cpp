#include "cache/cache_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "cache/entry_format.hpp"
#include "core/coding.hpp"

namespace hmmjit::cache {
namespace {

constexpr std::size_t kShortValue = 60;

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 127; });
}

std::string shown(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, kShortValue)) out.push_back(printable({&c, 1}) ? c : '?');
  if (text.size() > kShortValue) out += "...";
  return "'" + out + "'";
}

std::string_view line_at(std::string_view text, std::size_t start) {
  return text.substr(start, text.find('\n', start) - start);
}

std::string value_detail(std::string_view first, std::string_view second) {
  if (first.size() <= kShortValue && second.size() <= kShortValue && printable(first) &&
      printable(second)) {
    return fmt::format("{} became {}", shown(first), shown(second));
  }
  const auto [a, b] = std::ranges::mismatch(first, second);
  const auto common = static_cast<std::size_t>(a - first.begin());
  const std::string_view before = first.substr(0, common);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  return fmt::format("from line {} on: {} became {} ({} and {} bytes)", line,
                     shown(line_at(first, start)), shown(line_at(second, start)), first.size(),
                     second.size());
}

}  // namespace

CacheKey::CacheKey() { add("schema", fmt::format("{}", kEntryFormatVersion)); }

CacheKey& CacheKey::add(std::string name, std::string value) {
  if (name.empty() || find(name) != nullptr) valid_ = false;
  put_bytes(record_, static_cast<std::uint32_t>(name.size()));
  record_ += name;
  put_bytes(record_, static_cast<std::uint64_t>(value.size()));
  record_ += value;
  digest_ = digest_of(record_);
  components_.push_back({std::move(name), std::move(value)});
  return *this;
}

const std::string* CacheKey::find(std::string_view name) const {
  for (const KeyComponent& component : components_) {
    if (component.name == name) return &component.value;
  }
  return nullptr;
}

Result<CacheKey> CacheKey::from_record(std::string_view record) {
  const auto bad = [](const char* why) {
    return fail(ErrorCode::kInput, fmt::format("not a key record: {}", why));
  };
  CacheKey key{Empty{}};
  Decoder reader(record);
  std::unordered_set<std::string_view> names;
  while (reader.left() > 0) {
    const auto name_size = reader.bytes<std::uint32_t>();
    if (!reader.ok()) return bad("truncated name length");
    const std::string_view name = reader.take(name_size);
    const auto value_size = reader.bytes<std::uint64_t>();
    if (!reader.ok()) return bad("truncated name");
    const std::string_view value = reader.take(value_size);
    if (!reader.ok()) return bad("truncated value");
    if (name.empty() || !names.insert(name).second) return bad("empty or repeated name");
    key.components_.push_back({std::string(name), std::string(value)});
  }
  if (key.components_.empty() || key.components_.front().name != "schema") {
    return bad("no schema component");
  }
  key.record_ = record;
  key.digest_ = digest_of(record);
  return key;
}

std::vector<KeyDifference> explain(const CacheKey& first, const CacheKey& second) {
  std::vector<KeyDifference> differences;
  for (const KeyComponent& a : first.components()) {
    const std::string* b = second.find(a.name);
    if (b == nullptr) {
      differences.push_back({a.name, digest_of(a.value), {}, shown(a.value) + " was removed"});
    } else if (a.value != *b) {
      differences.push_back({a.name, digest_of(a.value), digest_of(*b), value_detail(a.value, *b)});
    }
  }
  for (const KeyComponent& b : second.components()) {
    if (first.find(b.name) == nullptr) {
      differences.push_back({b.name, {}, digest_of(b.value), shown(b.value) + " was added"});
    }
  }
  if (differences.empty() && !(first == second)) {
    // The same components in another order: name the first mismatch.
    const auto [a, b] = std::ranges::mismatch(first.components(), second.components());
    if (a != first.components().end() && b != second.components().end()) {
      differences.push_back({a->name, digest_of(a->value), digest_of(a->value),
                             fmt::format("order changed: '{}' stands in its place", b->name)});
    }
  }
  return differences;
}

std::string to_string(std::span<const KeyDifference> differences) {
  std::string text;
  for (const KeyDifference& difference : differences) {
    if (!text.empty()) text += "; ";
    text += difference.component + ": " + difference.detail;
  }
  return text;
}

}  // namespace hmmjit::cache
