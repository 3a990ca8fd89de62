#include "io/target_database.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/checksum.hpp"
#include "core/mapped_file.hpp"
#include "io/database_format.hpp"

namespace hmmjit {

using namespace database_format;

namespace {

std::unexpected<Error> damaged(const std::string& name, std::string what) {
  return fail(ErrorCode::kInput, "the target database is damaged: " + what, name,
              "make it again with hmmjit db build");
}

// Largest of `count` codes, in a form compilers turn into vector code.
Residue largest_code(const Residue* codes, std::size_t count) {
  Residue largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, codes[i]);
  return largest;
}

// First byte of [begin, end) that is not `value`, or `end`.
template <typename Byte>
const Byte* find_other(const Byte* begin, const Byte* end, Byte value) {
  return std::find_if(begin, end, [value](Byte b) { return b != value; });
}

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

// Page-aligned part of [begin, end) for madvise: all touched pages, or only whole ones.
std::pair<char*, std::size_t> pages(const void* begin, const void* end, bool touched) {
  const auto mask = static_cast<std::uintptr_t>(page_size() - 1);
  auto from = reinterpret_cast<std::uintptr_t>(begin), to = reinterpret_cast<std::uintptr_t>(end);
  from = touched ? from & ~mask : (from + mask) & ~mask;
  to = touched ? (to + mask) & ~mask : to & ~mask;
  return {reinterpret_cast<char*>(from), to > from ? to - from : 0};
}

// A value of the mapping that another process may change between two looks at it.
template <typename T>
T read_once(const T& value) {
  return *static_cast<const volatile T*>(&value);
}

struct AlignedDelete {
  void operator()(char* p) const { ::operator delete[](p, std::align_val_t{64}); }
};

}  // namespace

bool is_target_database(std::string_view head) { return head.starts_with(kMagic); }

struct TargetDatabase::State {
  std::string name;
  MappedFile file;                              // or
  std::unique_ptr<char[], AlignedDelete> copy;  // of bytes in memory
  std::span<const char> bytes;
  DatabaseSummary summary;
  const Residue* residues = nullptr;
  std::uint64_t residue_bytes = 0;
  std::span<const TargetEntry> entries;
  std::string_view text, about;
  std::span<const std::uint32_t> order;

  bool mapped() const { return copy == nullptr; }
  Status read_header();
  std::vector<TargetEntry> copy_entries(std::uint64_t first, std::uint64_t count) const;
  Status check_entries(std::span<const TargetEntry> copies, std::uint64_t first,
                       std::uint64_t residues_at, std::uint64_t text_at) const;
  Status check_residues(std::span<const TargetEntry> copies, std::uint64_t first) const;
  void expect(const void* begin, const void* end) const;
  void prefetch(std::uint64_t from, std::uint64_t to) const;
};

Status TargetDatabase::State::read_header() {
  Header header;
  if (!is_target_database({bytes.data(), std::min<std::size_t>(bytes.size(), 8)}))
    return fail(ErrorCode::kInput, "not a target database", name, "make one with hmmjit db build");
  if (bytes.size() < sizeof header)
    return damaged(name, fmt::format("{} bytes, a header has {}", bytes.size(), sizeof header));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != kDatabaseVersion)
    return fail(ErrorCode::kInput,
                fmt::format("target database of format {}; this program reads format {}",
                            header.version, kDatabaseVersion),
                name, "make it again with hmmjit db build of this version");
  if (checksum(&header, offsetof(Header, checksum)) != header.checksum)
    return damaged(name, "the header does not match its checksum");
  if (header.file_bytes != bytes.size())
    return damaged(name, fmt::format("the file has {} bytes, {} were written", bytes.size(),
                                     header.file_bytes));
  // What follows can only fail in a file that another program made.
  if (header.alphabet < 1 || header.alphabet > 3)
    return damaged(name, fmt::format("alphabet {} is unknown", header.alphabet));
  const Alphabet& alphabet = alphabet_of(static_cast<AlphabetType>(header.alphabet));
  std::string symbols(header.symbols, sizeof header.symbols);
  symbols.resize(std::min(symbols.find('\0'), symbols.size()));
  if (header.codes != static_cast<std::uint32_t>(alphabet.Kp) || symbols != alphabet.symbols)
    return damaged(
        name, fmt::format("its {} residue codes are not those of this program", alphabet.name));
  if (header.header_bytes != sizeof header || header.alignment != kDatabaseAlignment ||
      header.padding_code != kPaddingCode || header.sections != kSections)
    return damaged(name, "header fields contradict the format");

  summary.alphabet = &alphabet;
  summary.targets = header.targets;
  summary.residues = header.residues;
  summary.longest = header.longest;
  summary.shortest = header.shortest;
  summary.file_bytes = header.file_bytes;
  summary.identity = identity(header);
  std::uint64_t behind = sizeof header;
  for (int i = 0; i < kSections; ++i) {
    const Section& s = header.section[i];
    const std::string_view section_name(s.name, ::strnlen(s.name, sizeof s.name));
    if (section_name != kSectionNames[static_cast<std::size_t>(i)] ||
        s.offset % kSectionAlignment != 0 || s.offset < behind || s.offset > bytes.size() ||
        s.bytes > bytes.size() - s.offset)
      return damaged(name, fmt::format("section {} lies outside the file or is misplaced",
                                       kSectionNames[static_cast<std::size_t>(i)]));
    behind = s.offset + s.bytes;
    summary.sections.push_back(
        {kSectionNames[static_cast<std::size_t>(i)], s.offset, s.bytes, s.checksum});
  }
  const auto section = [&](SectionIndex i) { return bytes.data() + header.section[i].offset; };
  const auto size = [&](SectionIndex i) { return header.section[i].bytes; };
  if (header.targets > 0xffffffffu || size(kTargets) != header.targets * sizeof(TargetEntry) ||
      size(kOrder) != header.targets * sizeof(std::uint32_t) ||
      size(kResidues) < kDatabaseAlignment || size(kResidues) % kDatabaseAlignment != 0)
    return damaged(name, "section sizes contradict the number of targets");
  residues = reinterpret_cast<const Residue*>(section(kResidues));
  residue_bytes = size(kResidues);
  entries = {reinterpret_cast<const TargetEntry*>(section(kTargets)), header.targets};
  text = {section(kText), size(kText)};
  order = {reinterpret_cast<const std::uint32_t*>(section(kOrder)), header.targets};
  about = {section(kAbout), size(kAbout)};
  return {};
}

// What is checked has to be copied before: another process may overwrite the file at any moment.
std::vector<TargetEntry> TargetDatabase::State::copy_entries(std::uint64_t first,
                                                             std::uint64_t count) const {
  const auto part = entries.subspan(first, count);
  return {part.begin(), part.end()};
}

// Entries follow one another without gaps in both pools, so each says where the next must be.
// `first`: index of the first of them.
Status TargetDatabase::State::check_entries(std::span<const TargetEntry> copies,
                                            std::uint64_t first, std::uint64_t residues_at,
                                            std::uint64_t text_at) const {
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const TargetEntry& e = copies[i];
    // Offsets are below 2^63 here and lengths below 2^32: no sum overflows.
    const std::uint64_t stored = stored_bytes(e.length);
    const std::uint64_t described = std::uint64_t{e.name} + e.accession + e.description;
    if (e.residues != residues_at || e.text != text_at || e.length > 0x7fffffffu ||
        stored > residue_bytes - residues_at || described > text.size() - text_at)
      return damaged(name, fmt::format("target {} lies outside its section", first + i + 1));
    residues_at += stored;
    text_at += described;
  }
  return {};
}

// Finds damage. What uses codes as indices makes sure of them again (model/residue_copies.hpp).
Status TargetDatabase::State::check_residues(std::span<const TargetEntry> copies,
                                             std::uint64_t first) const {
  const auto codes = static_cast<Residue>(summary.alphabet->Kp);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const TargetEntry& e = copies[i];
    const Residue* at = residues + e.residues;
    const Residue* end = at + stored_bytes(e.length);
    if (largest_code(at, e.length) >= codes)
      return damaged(name, fmt::format("target {} has a byte that is no residue", first + i + 1));
    if (find_other(at + e.length, end, kPaddingCode) != end)
      return damaged(name, fmt::format("target {} has residues in its padding", first + i + 1));
  }
  return {};
}

// Has the pages read in, as far as they are not in memory, before they are touched one by one.
void TargetDatabase::State::expect(const void* begin, const void* end) const {
  if (!mapped()) return;
  const auto [from, size] = pages(begin, end, true);
#ifdef MADV_POPULATE_READ
  if (size > 0) (void)::madvise(from, size, MADV_POPULATE_READ);
#else
  if (size > 0) (void)::madvise(from, size, MADV_WILLNEED);
#endif
}

// Has the system read them into its cache meanwhile.
void TargetDatabase::State::prefetch(std::uint64_t from, std::uint64_t to) const {
  if (!mapped() || from >= to) return;
  const auto [begin, size] = pages(residues + from, residues + to, true);
  if (size > 0) (void)::madvise(begin, size, MADV_WILLNEED);
}

TargetDatabase::TargetDatabase(std::unique_ptr<State> state) : state_(std::move(state)) {}
TargetDatabase::~TargetDatabase() = default;

Result<std::shared_ptr<const TargetDatabase>> TargetDatabase::open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->name = path;
  HMMJIT_ASSIGN(state->file, MappedFile::open(path));
  state->bytes = state->file.bytes();
  HMMJIT_TRY(state->read_header());
  return std::shared_ptr<const TargetDatabase>(new TargetDatabase(std::move(state)));
}

Result<std::shared_ptr<const TargetDatabase>> TargetDatabase::from_bytes(std::string name,
                                                                         std::string_view bytes) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->copy.reset(static_cast<char*>(
      ::operator new[](std::max<std::size_t>(bytes.size(), 1), std::align_val_t{64})));
  std::copy(bytes.begin(), bytes.end(), state->copy.get());
  state->bytes = {state->copy.get(), bytes.size()};
  HMMJIT_TRY(state->read_header());
  return std::shared_ptr<const TargetDatabase>(new TargetDatabase(std::move(state)));
}

const std::string& TargetDatabase::name() const { return state_->name; }
const DatabaseSummary& TargetDatabase::summary() const { return state_->summary; }
std::span<const std::uint32_t> TargetDatabase::length_order() const { return state_->order; }
std::string_view TargetDatabase::about() const { return state_->about; }

std::optional<std::uint32_t> TargetDatabase::length_at_rank(std::uint64_t rank) const {
  const State& s = *state_;
  if (rank >= s.order.size()) return std::nullopt;
  const std::uint32_t index = read_once(s.order[rank]);
  if (index >= s.entries.size()) return std::nullopt;
  return s.entries[index].length;
}

std::pair<std::uint64_t, std::uint64_t> TargetDatabase::targets_of_fraction(
    std::uint64_t from, std::uint64_t to, std::uint64_t of) const {
  const State& s = *state_;
  const auto first_at = [&](std::uint64_t share) {
    // bytes * share / of, without the product: shares are below `of`, which is below 2^32.
    const std::uint64_t whole = s.residue_bytes / of, rest = s.residue_bytes % of;
    const std::uint64_t limit = whole * share + rest * share / of;
    const auto found = std::ranges::partition_point(
        s.entries, [&](const TargetEntry& e) { return e.residues < limit; });
    return static_cast<std::uint64_t>(found - s.entries.begin());
  };
  return {first_at(from), first_at(to)};
}

Status TargetDatabase::verify() const {
  const State& s = *state_;
  std::uint64_t behind = sizeof(Header);
  for (const DatabaseSection& section : s.summary.sections) {
    const char* at = s.bytes.data() + section.offset;
    if (find_other(s.bytes.data() + behind, at, '\0') != at)
      return damaged(s.name,
                     fmt::format("bytes in front of section {} are not zero", section.name));
    if (checksum(at, section.bytes) != section.checksum)
      return damaged(s.name, fmt::format("section {} does not match its checksum", section.name));
    behind = section.offset + section.bytes;
  }
  const char* end = s.bytes.data() + s.bytes.size();
  if (find_other(s.bytes.data() + behind, end, '\0') != end)
    return damaged(s.name, "bytes behind the last section are not zero");

  // The checksums match: from here on only a program that wrote nonsense can be at fault.
  const Residue* padding = s.residues + kDatabaseAlignment;
  if (find_other(s.residues, padding, kPaddingCode) != padding)
    return damaged(s.name, "the padding in front of the residues is not padding");
  std::uint64_t residues = 0, residues_end = kDatabaseAlignment, text_end = 0;
  std::uint32_t longest = 0, shortest = s.entries.empty() ? 0 : ~std::uint32_t{0};
  constexpr std::uint64_t kEntriesAtOnce = 1 << 15;
  for (std::uint64_t first = 0; first < s.entries.size(); first += kEntriesAtOnce) {
    const auto copies = s.copy_entries(first, std::min(kEntriesAtOnce, s.entries.size() - first));
    HMMJIT_TRY(s.check_entries(copies, first, residues_end, text_end));
    HMMJIT_TRY(s.check_residues(copies, first));
    for (const TargetEntry& e : copies) {
      residues += e.length;
      longest = std::max(longest, e.length);
      shortest = std::min(shortest, e.length);
      residues_end = e.residues + stored_bytes(e.length);
      text_end = e.text + e.name + e.accession + e.description;
    }
  }
  if (residues != s.summary.residues || longest != s.summary.longest ||
      shortest != s.summary.shortest || residues_end != s.residue_bytes ||
      text_end != s.text.size())
    return damaged(s.name, "counts of the header contradict the targets");
  // Strictly ascending pairs (length falling, index): each target exactly once.
  std::uint32_t before = 0;
  for (std::size_t rank = 0; rank < s.order.size(); ++rank) {
    const std::uint32_t index = read_once(s.order[rank]);
    bool fits = index < s.entries.size();
    if (fits && rank > 0) {
      const std::uint32_t longer = s.entries[before].length, length = s.entries[index].length;
      fits = longer > length || (longer == length && before < index);
    }
    if (!fits) return damaged(s.name, fmt::format("the length order is wrong at rank {}", rank));
    before = index;
  }
  return {};
}

// ---- DatabaseReader
// -------------------------------------------------------------------------------

DatabaseReader::DatabaseReader(std::shared_ptr<const TargetDatabase> database)
    : database_(std::move(database)), residues_(kDatabaseAlignment) {}

Status DatabaseReader::seek(std::uint64_t index) {
  const TargetDatabase::State& s = *database_->state_;
  if (index > s.entries.size())
    return fail(ErrorCode::kInput, fmt::format("there is no target {}", index + 1), s.name);
  next_ = index;
  bytes_read_ = 0;
  prefetched_ = 0;
  residues_ = kDatabaseAlignment;
  text_ = 0;
  if (index > 0 && index < s.entries.size()) {
    // Where it says it starts, if that is a place; read_block checks the rest.
    residues_ = read_once(s.entries[index].residues);
    text_ = read_once(s.entries[index].text);
    if (residues_ < kDatabaseAlignment || residues_ % kDatabaseAlignment != 0 ||
        residues_ > s.residue_bytes || text_ > s.text.size())
      return damaged(s.name, fmt::format("target {} lies outside its section", index + 1));
  }
  return {};
}

Result<bool> DatabaseReader::read_block(TargetBlock& block, std::uint64_t max_residues) {
  const TargetDatabase::State& s = *database_->state_;
  const std::uint64_t end_of_targets = std::min<std::uint64_t>(end_, s.entries.size());
  if (next_ >= end_of_targets) return false;
  std::uint64_t count = 0, residues = 0;
  while (next_ + count < end_of_targets && (count == 0 || residues < max_residues))
    residues += s.entries[next_ + count++].length;
  auto entries = std::make_shared<const std::vector<TargetEntry>>(s.copy_entries(next_, count));
  HMMJIT_TRY(s.check_entries(*entries, next_, residues_, text_));
  residues = 0;
  for (const TargetEntry& e : *entries) residues += e.length;
  const TargetEntry& last = entries->back();
  const std::uint64_t residues_end = last.residues + stored_bytes(last.length);
  const std::uint64_t text_end = last.text + last.name + last.accession + last.description;
  s.expect(s.residues + residues_, s.residues + residues_end);
  // What comes next is read while this is searched: a page at a time it would take a round trip
  // each on a network file system.
  constexpr std::uint64_t kAhead = std::uint64_t{16} << 20;
  const std::uint64_t behind_range =
      end_of_targets < s.entries.size()
          ? std::min(s.entries[end_of_targets].residues, s.residue_bytes)
          : s.residue_bytes;
  const std::uint64_t ahead = std::min(residues_end + kAhead, behind_range);
  if (ahead > prefetched_) s.prefetch(std::max(prefetched_, residues_end), ahead);
  prefetched_ = std::max(prefetched_, ahead);
  if (s.residues[residues_ - 1] != kPaddingCode)
    return damaged(s.name, fmt::format("no padding in front of target {}", next_ + 1));
  HMMJIT_TRY(s.check_residues(*entries, next_));

  TargetStorage storage;
  storage.residues = s.residues;
  storage.text = s.text.data();
  storage.entries = *entries;
  storage.residue_count = residues;
  storage.occupied = {s.residues + residues_, residues_end - residues_};
  const Residue* begin = storage.occupied.data();
  const Residue* end = begin + storage.occupied.size();
  storage.owner = std::shared_ptr<const void>(
      begin, [database = database_, entries, begin, end, text = s.text.data() + text_,
              text_bytes = text_end - text_](const void*) {
        // Unmaps the pages only: they are read from the file again if need be.
        if (!database->state_->mapped()) return;
        for (const auto& [from, size] :
             {pages(begin, end, false), pages(text, text + text_bytes, false)})
          if (size > 0) (void)::madvise(from, size, MADV_DONTNEED);
      });
  bytes_read_ += storage.occupied.size() + storage.entries.size_bytes() + (text_end - text_);
  block = TargetBlock(std::move(storage), next_);
  next_ += count;
  residues_ = residues_end;
  text_ = text_end;
  return true;
}

}  // namespace hmmjit
