#include "cache/cache_statistics.hpp"

#include <fmt/format.h>

#include <ranges>

#include "cache/entry_lock.hpp"
#include "cache/entry_store.hpp"
#include "core/numbers.hpp"

namespace hmmjit::cache {
namespace {

constexpr unsigned kCounters = static_cast<unsigned>(Counter::kCount);
constexpr const char* kFileName = "statistics";
constexpr std::chrono::milliseconds kLockWait{1000};
constexpr std::string_view kFirstLine = "hmmjit cache statistics 1";

}  // namespace

const char* counter_name(Counter counter) {
  static constexpr std::array<const char*, kCounters> kNames = {
      "memory_hits",     "user_hits",        "system_hits",       "misses",
      "published",       "publish_failures", "store_unavailable", "bad_entries",
      "refused_entries", "lock_timeouts",    "lock_unavailable",  "trims",
      "evicted",         "evicted_bytes",    "swept_temporaries"};
  return kNames[static_cast<unsigned>(counter)];
}

Counters::Counters(const Counters& other) { *this = other; }

Counters& Counters::operator=(const Counters& other) {
  if (this == &other) return *this;
  for (unsigned i = 0; i < kCounters; ++i) {
    values_[i].store(other.values_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  return *this;
}

void Counters::add(Counter counter, std::uint64_t amount) {
  values_[static_cast<unsigned>(counter)].fetch_add(amount, std::memory_order_relaxed);
}

std::uint64_t Counters::get(Counter counter) const {
  return values_[static_cast<unsigned>(counter)].load(std::memory_order_relaxed);
}

std::uint64_t Counters::hits() const {
  return get(Counter::kMemoryHits) + get(Counter::kUserHits) + get(Counter::kSystemHits);
}

std::string StoredStatistics::to_text() const {
  std::string text = fmt::format("{}\n", kFirstLine);
  for (unsigned i = 0; i < kCounters; ++i) {
    const auto counter = static_cast<Counter>(i);
    text += fmt::format("{} {}\n", counter_name(counter), counters.get(counter));
  }
  text += fmt::format("estimated_bytes {}\nend\n", estimated_bytes);
  return text;
}

StoredStatistics StoredStatistics::from_text(std::string_view text) {
  StoredStatistics statistics;
  if (!text.starts_with(kFirstLine) || !text.ends_with("\nend\n")) return {};
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line(part);
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, space);
    const auto value = parse_int(line.substr(space + 1));
    if (!value || *value < 0) continue;
    if (name == "estimated_bytes") statistics.estimated_bytes = static_cast<std::uint64_t>(*value);
    for (unsigned i = 0; i < kCounters; ++i) {
      if (name == counter_name(static_cast<Counter>(i))) {
        statistics.counters.add(static_cast<Counter>(i), static_cast<std::uint64_t>(*value));
      }
    }
  }
  return statistics;
}

StoredStatistics read_statistics(const EntryStore& store) {
  const auto text = store.read(store.root() + "/" + kFileName);
  return text ? StoredStatistics::from_text(*text) : StoredStatistics{};
}

bool update_statistics(const EntryStore& store,
                       const std::function<void(StoredStatistics&)>& change) {
  const auto lock =
      FileLock::acquire(store.lock_path(), kStatisticsLockOffset, kLockWait, store.file_mode());
  if (!lock && lock.error().code == ErrorCode::kResources) return false;
  StoredStatistics statistics = read_statistics(store);
  change(statistics);
  return store.replace_file(kFileName, statistics.to_text()).has_value();
}

}  // namespace hmmjit::cache
