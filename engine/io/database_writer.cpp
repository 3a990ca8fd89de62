#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <ranges>
#include <utility>
#include <vector>

#include "core/coding.hpp"
#include "core/digest.hpp"
#include "core/output_file.hpp"
#include "core/spool_file.hpp"
#include "io/database_format.hpp"
#include "io/target_database.hpp"

namespace hmmjit {

using namespace database_format;

namespace {

// Counting sort by length, longest first: holds the number of targets of each length and, after
// become_places(), the rank of the next target of each length.
class LengthCounts {
 public:
  std::uint64_t& of(std::uint32_t length) {
    return length < kUsual ? usual_[length] : longer_[length];
  }
  void become_places() {
    std::uint64_t next = 0;
    const auto place = [&next](std::uint64_t& count) { next += std::exchange(count, next); };
    for (auto& [length, count] : longer_) place(count);
    for (std::uint64_t& count : usual_ | std::views::reverse) place(count);
  }

 private:
  static constexpr std::uint32_t kUsual = std::uint32_t{1} << 16;
  std::vector<std::uint64_t> usual_ = std::vector<std::uint64_t>(kUsual);
  std::map<std::uint32_t, std::uint64_t, std::greater<>> longer_;
};

// `entries`: a piece of a SpoolFile.
template <typename Use>
void for_each_length(std::string_view entries, const Use& use) {
  static_assert(SpoolFile::kPiece % sizeof(TargetEntry) == 0, "a piece cuts an entry");
  for (std::size_t at = 0; at < entries.size(); at += sizeof(TargetEntry)) {
    TargetEntry entry;
    std::memcpy(&entry, entries.data() + at, sizeof entry);
    use(entry.length);
  }
}

}  // namespace

struct DatabaseWriter::State {
  OutputFile file;
  SpoolFile entries, text;  // written after the residues
  const Alphabet& alphabet;
  Header header{};
  std::uint64_t written = 0;  // bytes of the file
  DigestStream sum = {};      // of the section being written
  std::string buffer = {};

  void write(std::string_view bytes) {
    sum.update(bytes);
    file.write(bytes);
    written += bytes.size();
  }
  void begin_section(SectionIndex i) {
    const std::uint64_t start = round_up(written, kSectionAlignment);
    file.write(std::string(start - written, '\0'));
    written = start;
    const std::string_view name = kSectionNames[i];
    std::copy(name.begin(), name.end(), header.section[i].name);
    header.section[i].offset = start;
    sum = {};
  }
  void end_section(SectionIndex i) {
    header.section[i].bytes = written - header.section[i].offset;
    header.section[i].checksum = sum.checksum();
  }
};

Result<DatabaseWriter> DatabaseWriter::create(const std::string& path, const Alphabet& alphabet) {
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(path));
  HMMJIT_TRY(file.require_start());
  file.make_durable();
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? std::string(".") : parent.string();
  HMMJIT_ASSIGN(SpoolFile entries, SpoolFile::create(SpoolFile::kPiece, folder));
  HMMJIT_ASSIGN(SpoolFile text, SpoolFile::create(SpoolFile::kPiece, folder));
  auto state = make_hidden<State>(std::move(file), std::move(entries), std::move(text), alphabet);
  // Reserves space for the header, which is written last.
  state->file.write(std::string(sizeof(Header), '\0'));
  state->written = sizeof(Header);
  state->begin_section(kResidues);
  const std::string padding(kDatabaseAlignment, static_cast<char>(kPaddingCode));
  state->write(padding);
  return DatabaseWriter(std::move(state));
}

Status DatabaseWriter::add(const TargetBlock& block) {
  State& s = *state_;
  if (s.header.targets + block.size() > 0xffffffffu)
    return fail(ErrorCode::kInput, "more than 4,294,967,295 targets", s.file.path(),
                "split the input into several databases");
  const std::uint64_t residues_at = s.header.section[kResidues].offset;
  s.buffer.clear();
  for (std::size_t i = 0; i < block.size(); ++i) {
    const TargetView target = block[i];
    TargetEntry entry;
    entry.residues = s.written + s.buffer.size() - residues_at;
    entry.text = s.text.size();
    entry.length = static_cast<std::uint32_t>(target.residues.size());
    entry.name = static_cast<std::uint32_t>(target.name.size());
    entry.accession = static_cast<std::uint32_t>(target.accession.size());
    entry.description = static_cast<std::uint32_t>(target.description.size());
    HMMJIT_TRY(s.entries.append(bytes_of(entry)));
    HMMJIT_TRY(s.text.append(target.name));
    HMMJIT_TRY(s.text.append(target.accession));
    HMMJIT_TRY(s.text.append(target.description));
    s.buffer.append(reinterpret_cast<const char*>(target.residues.data()), entry.length);
    s.buffer.append(stored_bytes(entry.length) - entry.length, static_cast<char>(kPaddingCode));

    const bool first = s.header.targets == 0;
    s.header.longest = std::max(s.header.longest, entry.length);
    s.header.shortest = first ? entry.length : std::min(s.header.shortest, entry.length);
    ++s.header.targets;
    s.header.residues += entry.length;
  }
  s.write(s.buffer);
  return s.file.flush();
}

Result<DatabaseSummary> DatabaseWriter::finish(std::string_view about) {
  State& s = *state_;
  s.end_section(kResidues);

  // A counting sort in two passes: a comparison sort of 10^9 targets would take minutes and 4 GB
  // for the lengths.
  LengthCounts places;
  s.begin_section(kTargets);
  HMMJIT_TRY(s.entries.for_each([&](std::string_view chunk) -> Status {
    for_each_length(chunk, [&](std::uint32_t length) { ++places.of(length); });
    s.write(chunk);
    return {};
  }));
  s.end_section(kTargets);
  s.begin_section(kText);
  HMMJIT_TRY(s.text.for_each([&](std::string_view chunk) -> Status {
    s.write(chunk);
    return {};
  }));
  s.end_section(kText);

  std::vector<std::uint32_t> order(s.header.targets);
  places.become_places();
  std::uint32_t index = 0;
  HMMJIT_TRY(s.entries.for_each([&](std::string_view chunk) -> Status {
    for_each_length(chunk, [&](std::uint32_t length) { order[places.of(length)++] = index++; });
    return {};
  }));
  s.begin_section(kOrder);
  s.write({reinterpret_cast<const char*>(order.data()), order.size() * sizeof order[0]});
  s.end_section(kOrder);
  s.begin_section(kAbout);
  s.write(about);
  s.end_section(kAbout);

  Header& h = s.header;
  std::copy(kMagic.begin(), kMagic.end(), h.magic);
  h.version = kDatabaseVersion;
  h.header_bytes = sizeof h;
  h.file_bytes = s.written;
  h.alphabet = static_cast<std::uint32_t>(s.alphabet.type);
  h.codes = static_cast<std::uint32_t>(s.alphabet.Kp);
  h.alignment = kDatabaseAlignment;
  h.padding_code = kPaddingCode;
  std::copy(s.alphabet.symbols.begin(), s.alphabet.symbols.end(), h.symbols);
  h.sections = kSections;
  h.checksum = checksum(&h, offsetof(Header, checksum));
  HMMJIT_TRY(s.file.write_at(0, bytes_of(h)));
  HMMJIT_TRY(s.file.commit());

  return summary_of(h);
}

}  // namespace hmmjit
