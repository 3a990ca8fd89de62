#include "hmmjit/command_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>

#include "cache/entry_lock.hpp"
#include "cache/maintenance.hpp"
#include "core/diagnostics.hpp"
#include "core/numbers.hpp"
#include "core/output_file.hpp"
#include "core/read_only_file.hpp"
#include "core/threads.hpp"
#include "hmmjit/fields.hpp"

namespace hmmjit::tools {
namespace {

constexpr int kLowestPriority = 19;  // steps of nice(2)

using cache::CacheKey;
using cache::Counter;
using cache::EntryStore;
using cache::StoredFile;

constexpr std::size_t kShownValue = 40;

std::string utc(std::int64_t nanoseconds) {
  const auto time = static_cast<std::time_t>(nanoseconds / 1'000'000'000);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string human(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

bool is_short(const std::string& value) {
  return value.size() <= kShownValue &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c < 127; });
}

std::string summary(const CacheKey& key) {
  std::string text;
  for (const auto& [name, value] : key.components()) {
    if (name == "schema" || !is_short(value)) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

// The name of a kernel in `hmmjit plan`: "ssv multi_lane_half, 256 positions". Empty if the entry
// does not record it.
std::string kernel_of(const cache::Entry& entry) {
  const auto plan = entry.attachments.find("plan");
  if (plan == entry.attachments.end()) return {};
  const Json json = Json::parse(plan->second, nullptr, false);
  if (!json.is_object()) return {};
  const auto text = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  std::string out = text("stage") + " " + text("variant");
  if (const auto length = json.find("covered_length");
      length != json.end() && length->is_number_integer())
    out += fmt::format(", {} positions", length->get<std::int64_t>());
  return out;
}

Json components_json(const CacheKey& key) {
  Json list = Json::array();
  for (const auto& [name, value] : key.components()) {
    Json item = {{"name", name}, {"digest", digest_of(value).hex()}, {"bytes", value.size()}};
    if (is_short(value)) item["value"] = value;
    list.push_back(std::move(item));
  }
  return list;
}

// The shared state of the subcommands: settings, output style, stores.
struct Context {
  const ParsedOptions& options;
  cache::Settings settings;

  bool json() const { return options.is_set("--json"); }
  void print(const Json& fields) const { print_fields(fields, json()); }
  // `text`: for a result of one line, or a table.
  void print(const Json& fields, const std::string& text) const {
    fmt::print("{}", json() ? json_text(fields) : text);
  }

  Result<EntryStore> user_store(bool for_writing) const {
    if (settings.directory.empty()) {
      return fail(ErrorCode::kOutput, "there is no kernel cache folder", "",
                  "set HMMJIT_CACHE_DIR or HOME");
    }
    if (for_writing && settings.mode != cache::Mode::kReadWrite &&
        settings.mode != cache::Mode::kRefresh) {
      return fail(
          ErrorCode::kUsage,
          fmt::format("cache mode {} forbids changing the cache", cache::mode_name(settings.mode)),
          settings.directory, "use --cache-mode rw");
    }
    cache::StoreOptions store;
    store.allow_group = settings.allow_group;
    store.access = for_writing ? cache::Access::kReadWrite : cache::Access::kReadOnly;
    return EntryStore::open(settings.directory, store);
  }

  std::optional<EntryStore> system_store() const {
    if (settings.system_directory.empty()) return std::nullopt;
    auto opened =
        EntryStore::open(settings.system_directory, cache::StoreOptions::of_system_folder());
    if (!opened || !opened->exists()) return std::nullopt;
    return std::move(*opened);
  }
};

struct Located {
  EntryStore store;
  cache::Layer layer;
  StoredFile file;
};

/// All entries of both disk layers, most recently used first within a layer.
Result<std::vector<Located>> all_entries(const Context& context, bool for_writing = false) {
  std::vector<Located> located;
  const auto collect = [&](const EntryStore& store, cache::Layer layer) {
    auto scan = store.scan();
    std::ranges::sort(scan.entries, [](const StoredFile& a, const StoredFile& b) {
      return a.last_used != b.last_used ? a.last_used > b.last_used : a.name < b.name;
    });
    for (StoredFile& file : scan.entries) located.push_back({store, layer, std::move(file)});
  };
  HMMJIT_ASSIGN(const EntryStore user, context.user_store(for_writing));
  collect(user, cache::Layer::kUser);
  if (const auto system = context.system_store()) collect(*system, cache::Layer::kSystem);
  return located;
}

Result<cache::DecodedEntry> load(const Located& located, cache::Attachments attachments) {
  HMMJIT_ASSIGN(const std::string bytes, located.store.read(located.file.path));
  HMMJIT_ASSIGN(cache::DecodedEntry decoded, cache::decode_entry(bytes, attachments));
  if (decoded.key.digest() != located.file.name) {
    return fail(ErrorCode::kInput, "damaged cache entry: it holds another key than its name says");
  }
  return decoded;
}

/// Finds an entry by its digest or an unambiguous prefix.
Result<Located> resolve(const Context& context, const std::string& id) {
  HMMJIT_ASSIGN(const std::vector<Located> entries, all_entries(context));
  const Located* found = nullptr;
  for (const Located& entry : entries) {
    if (id.empty() || !entry.file.name.hex().starts_with(id)) continue;
    if (found != nullptr && found->file.name != entry.file.name) {
      return fail(ErrorCode::kUsage, "several cached kernels begin so", id, "give more digits");
    }
    if (found == nullptr) found = &entry;
  }
  if (found == nullptr) {
    return fail(ErrorCode::kInput, "no cached kernel begins so", id,
                "hmmjit cache list shows them");
  }
  return *found;
}

Result<cache::EntryFilter> make_filter(const std::vector<std::string>& conditions) {
  if (conditions.empty()) return cache::EntryFilter{};
  // Conditions on the same component are alternatives; conditions on different components must all
  // hold.
  std::map<std::string, std::vector<std::string>> wanted;
  for (const std::string& condition : conditions) {
    const std::size_t equals = condition.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(ErrorCode::kUsage, "unusable condition", condition, "write COMPONENT=VALUE");
    }
    wanted[condition.substr(0, equals)].push_back(condition.substr(equals + 1));
  }
  return cache::EntryFilter([wanted](const CacheKey& key) {
    return std::ranges::all_of(wanted, [&](const auto& item) {
      const std::string* value = key.find(item.first);
      return value != nullptr && std::ranges::find(item.second, *value) != item.second.end();
    });
  });
}

Status show_path(const Context& context) {
  const auto store = context.user_store(false);
  const bool exists = store && store->exists();
  Json fields = {{"directory", context.settings.directory},
                 {"exists", exists},
                 {"usable", store.has_value()},
                 {"system_directory", context.settings.system_directory},
                 {"system_exists", context.system_store().has_value()},
                 {"mode", cache::mode_name(context.settings.mode)},
                 {"max_bytes", context.settings.max_bytes}};
  if (!store) fields["problem"] = store.error().to_string();
  context.print(fields, context.settings.directory + "\n");
  if (!store) return std::unexpected(store.error());
  return {};
}

Status show_stats(const Context& context) {
  HMMJIT_ASSIGN(const EntryStore store, context.user_store(false));
  const cache::StoreScan scan = store.scan();
  const cache::StoredStatistics stored = cache::read_statistics(store);
  Json counters = Json::object();
  for (unsigned i = 0; i < static_cast<unsigned>(Counter::kCount); ++i) {
    const auto counter = static_cast<Counter>(i);
    counters[cache::counter_name(counter)] = stored.counters.get(counter);
  }
  std::uint64_t entry_bytes = 0;
  for (const StoredFile& file : scan.entries) entry_bytes += file.allocated;
  const std::uint64_t hits = stored.counters.hits();
  Json fields = {{"directory", store.root()},
                 {"entries", scan.entries.size()},
                 {"temporaries", scan.temporaries.size()},
                 {"allocated_bytes", scan.allocated_total},
                 {"entry_bytes", entry_bytes},
                 {"max_bytes", context.settings.max_bytes},
                 {"hits", hits},
                 {"lookups", hits + stored.counters.get(Counter::kMisses)},
                 {"counters", counters}};
  if (const auto system = context.system_store()) {
    const cache::StoreScan shared = system->scan();
    fields["system"] = {{"directory", system->root()},
                        {"entries", shared.entries.size()},
                        {"allocated_bytes", shared.allocated_total}};
  }
  context.print(fields);
  return {};
}

Status list_entries(const Context& context) {
  HMMJIT_ASSIGN(const cache::EntryFilter filter, make_filter(context.options.list("--where")));
  HMMJIT_ASSIGN(const std::vector<Located> entries, all_entries(context));
  Json document = Json::array();
  std::string text;
  for (const Located& located : entries) {
    const auto decoded = load(located, cache::Attachments::kLoad);
    if (filter && (!decoded || !filter(decoded->key))) continue;
    const std::string digest = located.file.name.hex();
    Json item = {{"digest", digest},
                 {"layer", cache::layer_name(located.layer)},
                 {"allocated_bytes", located.file.allocated},
                 {"last_used", utc(located.file.last_used)}};
    std::string what;
    if (decoded) {
      item["payload_bytes"] = decoded->entry.payload.size();
      item["components"] = components_json(decoded->key);
      item["attributes"] = decoded->entry.attributes;
      const std::string kernel = kernel_of(decoded->entry);
      if (!kernel.empty()) item["kernel"] = kernel;
      what = kernel + (kernel.empty() ? "" : "  ") + summary(decoded->key);
    } else {
      item["problem"] = decoded.error().message;
      what = decoded.error().message;
    }
    document.push_back(std::move(item));
    text += fmt::format("{}  {:<6}  {:>10}  {}  {}\n", digest.substr(0, 12),
                        cache::layer_name(located.layer), human(located.file.allocated),
                        utc(located.file.last_used), what);
  }
  context.print(document, text);
  return {};
}

// Prints one part of an entry, unchanged.
Status print_part(const std::string* value, const std::string& name) {
  if (value == nullptr)
    return fail(ErrorCode::kUsage, "the entry has no such part", name,
                "hmmjit cache show lists its parts");
  std::fwrite(value->data(), 1, value->size(), stdout);
  return {};
}

Status show_entry(const Context& context) {
  HMMJIT_ASSIGN(const Located located, resolve(context, context.options.arguments()[0]));
  HMMJIT_ASSIGN(const cache::DecodedEntry decoded, load(located, cache::Attachments::kLoad));
  const auto& [key, entry] = decoded;
  const std::string component(context.options.text("--component"));
  const std::string attachment(context.options.text("--attachment"));
  if (!component.empty()) return print_part(key.find(component), component);
  if (!attachment.empty()) {
    const auto found = entry.attachments.find(attachment);
    return print_part(found == entry.attachments.end() ? nullptr : &found->second, attachment);
  }
  if (context.options.is_set("--payload")) {
    HMMJIT_ASSIGN(OutputFile file, OutputFile::create(context.options.path("--payload")));
    file.write(entry.payload);
    return file.commit();
  }
  Json attachments = Json::object();
  for (const auto& [name, value] : entry.attachments) attachments[name] = value.size();
  context.print({{"digest", key.digest().hex()},
                 {"layer", cache::layer_name(located.layer)},
                 {"file", located.file.path},
                 {"allocated_bytes", located.file.allocated},
                 {"last_used", utc(located.file.last_used)},
                 {"payload_bytes", entry.payload.size()},
                 {"components", components_json(key)},
                 {"attributes", entry.attributes},
                 {"attachments", attachments},
                 {"log", entry.log}});
  return {};
}

Status explain_entries(const Context& context) {
  const std::vector<std::string>& names = context.options.arguments();
  const std::string& first = names[0];
  const std::string second = names.size() > 1 ? names[1] : std::string();
  HMMJIT_ASSIGN(const Located a, resolve(context, first));
  HMMJIT_ASSIGN(const cache::DecodedEntry one, load(a, cache::Attachments::kSkip));
  std::optional<CacheKey> other;
  if (!second.empty()) {
    HMMJIT_ASSIGN(const Located b, resolve(context, second));
    HMMJIT_ASSIGN(const cache::DecodedEntry two, load(b, cache::Attachments::kSkip));
    other = two.key;
  } else {
    cache::Settings settings = context.settings;
    settings.mode = cache::Mode::kReadOnly;
    const auto layers = cache::KernelCache::open(settings);
    const auto nearest = layers->nearest(one.key);
    if (!nearest) {
      return fail(ErrorCode::kInput, "no other cached kernel to compare with", first);
    }
    other = nearest->key;
  }
  const std::vector<cache::KeyDifference> differences = cache::explain(one.key, *other);
  Json list = Json::array();
  std::string text = fmt::format("{} -> {}\n", one.key.digest().hex(), other->digest().hex());
  for (const auto& difference : differences) {
    list.push_back({{"component", difference.component},
                    {"first_digest", difference.first.hex()},
                    {"second_digest", difference.second.hex()},
                    {"detail", difference.detail}});
    text += fmt::format("  {}: {}\n", difference.component, difference.detail);
  }
  if (differences.empty()) text += "  the keys are equal\n";
  context.print(
      {{"first", one.key.digest().hex()}, {"second", other->digest().hex()}, {"differences", list}},
      text);
  return {};
}

Status verify(const Context& context) {
  const bool repair = context.options.is_set("--repair");
  const std::string bundle(context.options.text("--bundle"));
  if (!bundle.empty()) {
    HMMJIT_ASSIGN(const std::string bytes, read_whole_file(bundle));
    std::uint64_t count = 0;
    const Status read =
        cache::read_bundle(bytes, [&](cache::DecodedEntry&&, std::string_view) -> Status {
          ++count;
          return {};
        });
    if (!read) return fail(read.error().code, read.error().message, bundle, "fetch it again");
    context.print({{"bundle", bundle}, {"entries", count}},
                  fmt::format("{}: {} intact kernels\n", bundle, count));
    return {};
  }
  HMMJIT_ASSIGN(const std::vector<Located> entries, all_entries(context, repair));
  Json damaged = Json::array();
  std::string text;
  std::uint64_t removed = 0;
  std::uint64_t others = 0;
  for (const Located& located : entries) {
    const auto decoded = load(located, cache::Attachments::kLoad);
    if (decoded) continue;
    if (decoded.error().where == "absent") continue;  // removed meanwhile
    if (const auto bytes = located.store.read(located.file.path);
        bytes && cache::is_other_version(*bytes)) {
      ++others;
      continue;
    }
    const bool gone = repair && located.layer == cache::Layer::kUser &&
                      located.store.remove(located.file.name, located.file.identity);
    removed += gone ? 1 : 0;
    damaged.push_back(
        {{"file", located.file.path}, {"problem", decoded.error().message}, {"removed", gone}});
    text += fmt::format("{}: {}{}\n", located.file.path, decoded.error().message,
                        gone ? " (removed)" : "");
  }
  text += fmt::format("{} entries, {} damaged, {} removed, {} of other format versions\n",
                      entries.size(), damaged.size(), removed, others);
  const std::uint64_t left = damaged.size() - removed;
  context.print({{"entries", entries.size()},
                 {"removed", removed},
                 {"other_versions", others},
                 {"damaged", damaged}},
                text);
  if (left != 0) {
    return fail(ErrorCode::kInput, fmt::format("{} damaged cache entries", left), "",
                "hmmjit cache verify --repair removes those of the user's folder");
  }
  return {};
}

Status trim_store(const Context& context) {
  HMMJIT_ASSIGN(const EntryStore store, context.user_store(true));
  if (!store.exists()) {
    context.print({{"entries_removed", 0}}, "nothing cached\n");
    return {};
  }
  const auto report = cache::trim(store, context.settings.max_bytes);
  if (!report) {
    return fail(ErrorCode::kResources, "another process trims this cache now", store.root());
  }
  context.print({{"bytes_before", report->bytes_before},
                 {"bytes_after", report->bytes_after},
                 {"entries_removed", report->entries_removed},
                 {"temporaries_removed", report->temporaries_removed}},
                fmt::format("{} -> {}, {} kernels and {} temporaries removed\n",
                            human(report->bytes_before), human(report->bytes_after),
                            report->entries_removed, report->temporaries_removed));
  return {};
}

Status clear_store(const Context& context) {
  HMMJIT_ASSIGN(const EntryStore store, context.user_store(true));
  const cache::ClearReport report = cache::clear(store, context.settings.max_bytes);
  context.print({{"entries_removed", report.removed}, {"entries_left", report.left}},
                fmt::format("{} kernels removed\n", report.removed));
  return report.status(store);
}

Status export_entries(const Context& context) {
  const std::string& path = context.options.arguments()[0];
  HMMJIT_ASSIGN(const cache::EntryFilter filter, make_filter(context.options.list("--where")));
  std::optional<EntryStore> store;
  if (context.options.is_set("--system")) {
    store = context.system_store();
  } else {
    HMMJIT_ASSIGN(store, context.user_store(false));
  }
  if (!store)
    return fail(ErrorCode::kInput, "no usable system cache folder",
                context.settings.system_directory);
  HMMJIT_ASSIGN(const cache::ExportReport report, cache::export_bundle(*store, path, filter));
  context.print({{"bundle", path},
                 {"entries", report.entries},
                 {"bytes", report.bytes},
                 {"skipped_damaged", report.skipped_bad}},
                fmt::format("{}: {} kernels, {}{}\n", path, report.entries, human(report.bytes),
                            report.skipped_bad == 0
                                ? std::string()
                                : fmt::format(", {} damaged ones left out", report.skipped_bad)));
  return {};
}

// Fails if trimming has removed some of the `added` kernels: they exceed the cache's size.
Status fits_the_cache(const EntryStore& store, std::uint64_t added) {
  const std::uint64_t left = store.scan().entries.size();
  if (left >= added) return {};
  return fail(ErrorCode::kOutput,
              fmt::format("{} of {} kernels exceed the cache's size and were removed again",
                          added - left, added),
              store.root(), "raise --cache-max-size");
}

Status import_entries(const Context& context) {
  const std::string& path = context.options.arguments()[0];
  HMMJIT_ASSIGN(const EntryStore store, context.user_store(true));
  HMMJIT_ASSIGN(const cache::ImportReport report,
                cache::import_and_trim(store, path, context.settings.max_bytes));
  constexpr const char* kTrust =
      "The checksum shows that the bundle is undamaged, not who made it: its kernels will run, so "
      "import only what comes from an author you trust.";
  context.print({{"bundle", path},
                 {"imported", report.imported},
                 {"already_present", report.already_present},
                 {"trust", kTrust}},
                fmt::format("{}: {} kernels imported, {} present already\n{}\n", path,
                            report.imported, report.already_present, kTrust));
  return fits_the_cache(store, report.imported);
}

Status warm_cache(const Context& context, const WarmFunction& warm) {
  if (!warm) {
    return fail(ErrorCode::kCompile, "this build has no kernel compiler", "",
                "import a bundle made elsewhere (hmmjit cache import)");
  }
  HMMJIT_ASSIGN(const EntryStore store, context.user_store(true));
  cache::FileLock only_one;
  if (context.options.is_set("--idle")) {
    HMMJIT_TRY(store.prepare());  // the lock is a file in the folder
    // If the file system has no locks, several processes may run and make the same kernels.
    auto lock = cache::FileLock::acquire(store.lock_path(), cache::kIdleWarmLockOffset,
                                         std::chrono::milliseconds(0), store.file_mode());
    if (!lock && lock.error().code == ErrorCode::kResources) {
      context.print({{"made", 0}, {"present", 0}}, "another process does it already\n");
      return {};
    }
    if (lock) only_one = *std::move(lock);
    lower_thread_priority(kLowestPriority);
  }
  const auto layers = cache::KernelCache::open(context.settings);
  HMMJIT_ASSIGN(const WarmReport report, warm(*layers, context.options));
  Json failures = Json::array();
  std::string text;
  for (const Error& failure : report.failures) {
    failures.push_back(failure.to_string());
    text += failure.to_string() + "\n";
  }
  const std::uint64_t lost = layers->counters().get(Counter::kPublishFailures);
  text += fmt::format("{} kernel{} made, {} present already, {} failed\n", report.made,
                      report.made == 1 ? "" : "s", report.present, report.failures.size());
  context.print({{"made", report.made},
                 {"present", report.present},
                 {"not_stored", lost},
                 {"failures", failures}},
                text);
  if (lost != 0) {
    const auto warnings = layers->warnings();
    return fail(ErrorCode::kOutput, fmt::format("{} kernels could not be stored", lost),
                context.settings.directory, warnings.empty() ? "" : warnings.back().to_string());
  }
  if (!report.failures.empty()) return std::unexpected(report.failures.front());
  if (report.made + report.present == 0) {
    return fail(ErrorCode::kCompile, "no kernel was made", "",
                "name targets and models that need one");
  }
  return fits_the_cache(store, report.made);
}

}  // namespace

std::vector<OptionSpec> with_cache_options(std::vector<OptionSpec> options) {
  static const std::vector<std::string> help = [] {  // option tables hold views
    std::vector<std::string> texts;
    for (const cache::SettingDescription& setting : cache::setting_descriptions())
      texts.push_back(fmt::format("{} [{}]", setting.help, setting.variable));
    return texts;
  }();
  for (std::size_t i = 0; i < help.size(); ++i)
    options.push_back({"Kernel cache", cache::setting_descriptions()[i].flag, "s", help[i]});
  return options;
}

Result<cache::Settings> cache_settings(const ParsedOptions& options, const char* command) {
  HMMJIT_ASSIGN(cache::Settings settings, cache::settings_from_environment());
  if (command != nullptr)
    settings.on_warning = [command](const Error& warning) {
      diagnose("hmmjit {}: warning: {}\n", command, warning.to_string());
    };
  for (const cache::SettingDescription& setting : cache::setting_descriptions()) {
    if (!options.is_set(setting.flag)) continue;
    std::string value(options.text(setting.flag));
    // On a command line, folders may be relative paths.
    if (std::string_view(setting.variable).ends_with("_DIR") && !value.empty())
      value = std::filesystem::absolute(value).lexically_normal().string();
    Status applied = cache::apply_setting(settings, setting.variable, value);
    if (!applied) {
      applied.error().where = setting.flag;
      return std::unexpected(applied.error());
    }
  }
  return settings;
}

std::vector<int> lengths_of(const ParsedOptions& options) {
  std::vector<int> out;
  for (const std::string& text : options.list("--length"))
    out.push_back(static_cast<int>(*parse_int(text)));
  return out;
}

CommandSpec cache_command(WarmFunction warm, WarmNames names) {
  const auto command = [](std::string_view name, std::string_view summary,
                          std::vector<ArgumentSpec> arguments, std::vector<OptionSpec> options,
                          std::function<Status(const Context&)> act) {
    return CommandSpec{name, summary, std::move(arguments), std::move(options),
                       [act = std::move(act)](const ParsedOptions& given) -> Result<int> {
                         HMMJIT_ASSIGN(cache::Settings settings, cache_settings(given));
                         HMMJIT_TRY(act({given, std::move(settings)}));
                         HMMJIT_TRY(flush_standard_output());
                         return 0;
                       }};
  };
  constexpr OptionSpec where{kPlain, "--where", "s",
                             "only kernels whose key has COMPONENT=VALUE; may be repeated",
                             kSeveral};
  const ArgumentSpec entry{"entry", "digest or the beginning of one"};
  CommandSpec out{"cache",
                  "inspect, fill and move the cache of compiled kernels",
                  {},
                  with_cache_options({help_option(), kPrintJson})};
  out.subcommands = {
      command("path", "print the folder of the user's kernels", {}, {}, show_path),
      command("stats", "size as du counts, hits, and every counter", {}, {}, show_stats),
      command("list", "list cached kernels, most recently used first", {}, {where}, list_entries),
      command("show", "print one entry: key, attributes, log, attachments", {entry},
              {{kPlain, "--component", "s", "print one component of the key, e.g. source"},
               {kPlain, "--attachment", "s", "print one attachment, e.g. plan"},
               {kPlain, "--payload", "f", "write the compiled kernel to this file"}},
              show_entry),
      command(
          "explain", "name the parts in which two keys differ",
          {{"first", entry.help}, {"second", "another; default: the nearest other entry", false}},
          {}, explain_entries),
      command("verify", "read and check every entry", {},
              {{kPlain, "--repair", "", "remove damaged entries of the user's folder"},
               {kPlain, "--bundle", "@f", "check a bundle file instead"}},
              verify),
      command("trim", "bring the folder below its cap and sweep old temporaries", {}, {},
              trim_store),
      command("clear", "remove every kernel of the user's folder", {}, {}, clear_store),
      command("export", "write kernels to one checked bundle file", {{"bundle", "file to write"}},
              {where, {kPlain, "--system", "", "export the system folder instead of the user's"}},
              export_entries),
      command("import", "store the kernels of a bundle (trusting its author)",
              {{"bundle", "file to read"}}, {}, import_entries),
      command(
          "warm", "compile kernels ahead of time; needs no GPU",
          {{"files", "HMM files, as with --model", false, true}},
          {{kPlain, "--target", "s", "architectures, e.g. sm_80,sm_90", list_of(names.targets)},
           {kPlain, "--model", "@f", "HMM file whose kernels are wanted; may be repeated",
            kSeveral},
           {kPlain, "--length", "n n>0", "model lengths", kListed},
           {kPlain, "--up-to", "n 0<n<=1000000", "every size class of models up to this length"},
           {kPlain, "--stage", "s", "search stages, e.g. ssv", list_of(names.stages)},
           {kPlain, "--idle", "",
            "with the lowest priority, and not while another process does it"}},
          [warm = std::move(warm)](const Context& context) { return warm_cache(context, warm); })};
  return out;
}

}  // namespace hmmjit::tools
