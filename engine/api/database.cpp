// Target databases for host programs.
#include "hmmjit/database.hpp"

#include <filesystem>
#include <system_error>
#include <tuple>

#include "api/inputs.hpp"
#include "io/target_database.hpp"
#include "search/database_builder.hpp"

namespace hmmjit::v0 {
namespace {

std::shared_ptr<const TargetDatabase> open_database(const std::string& path) {
  return value(TargetDatabase::open(path, DatabaseAccess::kRead));
}

DatabaseInfo describe(const TargetDatabase& database) {
  const DatabaseSummary& s = database.summary();
  DatabaseInfo out{};
  out.size = sizeof(hmmjit_database_info);
  out.format_version = static_cast<std::int32_t>(s.version);
  out.alphabet = static_cast<std::int32_t>(to_alphabet(*s.alphabet));
  const auto members = [](auto& o) {
    return std::tie(o.targets, o.residues, o.shortest, o.longest, o.file_bytes, o.identity);
  };
  members(out) = members(s);
  if (s.targets > 0) out.median = value(database.length_at_rank(s.targets / 2));
  out.about = value(database.about());
  return out;
}

}  // namespace

DatabaseInfo build_database(const std::vector<Targets>& inputs, const std::string& output,
                            Alphabet alphabet) {
  return guarded([&] {
    if (inputs.empty()) throw Error(ErrorCode::kUsage, "a database of no input", output);
    const hmmjit::Alphabet& codes = alphabet_of(alphabet);
    std::vector<DatabaseInput> sources;
    std::vector<NamedFile> files;
    std::error_code ignored;
    for (const Targets& input : inputs) {
      const auto& impl = input.impl();
      if (!impl->path.empty()) files.push_back({"sequence file", impl->path});
      sources.push_back({impl->path.empty() ? std::string("memory") : impl->path,
                         [&impl, &codes] { return open_targets(impl, codes); },
                         std::filesystem::is_regular_file(impl->path, ignored)});
    }
    check_output(output, files);
    value(hmmjit::build_database(sources, codes, output, "hmmjit " HMMJIT_VERSION));
    return describe(*open_database(output));
  });
}

DatabaseInfo database_info(const std::string& path) {
  return guarded([&] { return describe(*open_database(path)); });
}

DatabaseInfo verify_database(const std::string& path) {
  return guarded([&] {
    const auto database = open_database(path);
    check(database->verify());
    return describe(*database);
  });
}

}  // namespace hmmjit::v0
