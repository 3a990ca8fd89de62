#include "io/target_database.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "core/digest.hpp"
#include "core/read_only_file.hpp"
#include "io/database_format.hpp"
#include "io/sequence_parsing.hpp"

namespace hmmjit {

using namespace database_format;

namespace {

std::unexpected<Error> damaged(const std::string& name, std::string what) {
  return fail(ErrorCode::kInput, "the target database is damaged: " + what, name,
              "make it again with hmmjit db build");
}

// The largest of `count` codes, in a form that compilers vectorise.
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

// The pages of [begin, end) for madvise: all `touched` pages, or only whole ones.
std::pair<char*, std::size_t> pages(const void* begin, const void* end, bool touched) {
  const auto mask = static_cast<std::uintptr_t>(page_size() - 1);
  auto from = reinterpret_cast<std::uintptr_t>(begin), to = reinterpret_cast<std::uintptr_t>(end);
  from = touched ? from & ~mask : (from + mask) & ~mask;
  to = touched ? (to + mask) & ~mask : to & ~mask;
  return {reinterpret_cast<char*>(from), to > from ? to - from : 0};
}

struct AlignedDelete {
  void operator()(const char* p) const {
    ::operator delete[](const_cast<char*>(p), std::align_val_t{kSectionAlignment});
  }
};
using AlignedBytes = std::unique_ptr<char[], AlignedDelete>;

AlignedBytes aligned_bytes(std::uint64_t size) {
  return AlignedBytes(static_cast<char*>(
      ::operator new[](std::max<std::uint64_t>(size, 1), std::align_val_t{kSectionAlignment})));
}

// Bytes of the file, in place or copied.
struct Piece {
  const char* data = nullptr;
  std::shared_ptr<const char> own;  // empty: the bytes are in the mapping or in memory
};

}  // namespace

bool is_target_database(std::string_view head) { return head.starts_with(kMagic); }

Result<bool> is_target_database_file(const std::string& path) {
  struct stat info {};
  if (path == "-" || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  HMMJIT_ASSIGN(const std::string head, read_beginning(path, kMagic.size()));
  return is_target_database(head);
}

struct TargetDatabase::State {
  std::string name;
  // One of these owns the bytes.
  MappedFile mapping;
  AlignedBytes copy;
  ReadOnlyFile file;
  const char* bytes = nullptr;  // of the mapping or the copy; null if read from `file`
  DatabaseSummary summary;
  bool resident = false;
  // Targets [0, checked) are in memory and their residues have been checked. Used only if resident.
  mutable std::atomic<std::uint64_t> checked{0};

  // File offset and size of a section.
  std::uint64_t start_of(SectionIndex i) const { return summary.sections[i].offset; }
  std::uint64_t bytes_of(SectionIndex i) const { return summary.sections[i].bytes; }
  bool mapped() const { return !mapping.bytes().empty(); }
  Result<Piece> piece(std::uint64_t at, std::uint64_t size) const;
  template <typename T>
  Status read(std::uint64_t at, std::span<T> to) const;
  Status read_header();
  Result<TargetEntry> entry(std::uint64_t index) const;
  Result<std::vector<TargetEntry>> copy_entries(std::uint64_t first, std::uint64_t end,
                                                std::uint64_t max_residues) const;
  Status check_entries(std::span<const TargetEntry> copies, std::uint64_t first,
                       std::uint64_t first_residue, std::uint64_t first_text) const;
  Status check_residues(std::span<const TargetEntry> copies, std::uint64_t first,
                        const Residue* at) const;
  template <typename Use>
  Status for_each_piece(std::uint64_t at, std::uint64_t size, Use&& use) const;
  Status check_zeros(std::uint64_t from, std::uint64_t to, const std::string& where) const;
  void expect(const Piece& piece, std::uint64_t size) const;
  void prefetch(std::uint64_t from, std::uint64_t to) const;
};

Result<Piece> TargetDatabase::State::piece(std::uint64_t at, std::uint64_t size) const {
  if (bytes != nullptr) return Piece{bytes + at, {}};
  AlignedBytes own = aligned_bytes(size);
  HMMJIT_TRY(file.read(at, {own.get(), size}));
  const char* const data = own.get();
  return Piece{data, std::shared_ptr<const char>(own.release(), AlignedDelete{})};
}

// Copy before checking: another process may overwrite the file at any moment.
template <typename T>
Status TargetDatabase::State::read(std::uint64_t at, std::span<T> to) const {
  if (bytes == nullptr) return file.read(at, {reinterpret_cast<char*>(to.data()), to.size_bytes()});
  if (!to.empty()) std::memcpy(to.data(), bytes + at, to.size_bytes());
  return {};
}

Status TargetDatabase::State::read_header() {
  Header header{};
  const std::uint64_t size = summary.file_bytes;
  HMMJIT_TRY(read(0, std::span(reinterpret_cast<char*>(&header),
                               std::min<std::uint64_t>(size, sizeof header))));
  if (!is_target_database({header.magic, std::min<std::size_t>(size, sizeof header.magic)}))
    return fail(ErrorCode::kInput, "not a target database", name, "make one with hmmjit db build");
  if (size < sizeof header)
    return damaged(name, fmt::format("{} bytes, a header has {}", size, sizeof header));
  if (header.version != kDatabaseVersion)
    return fail(ErrorCode::kInput,
                fmt::format("target database of format {}; this program reads format {}",
                            header.version, kDatabaseVersion),
                name, "make it again with hmmjit db build of this version");
  if (checksum(&header, offsetof(Header, checksum)) != header.checksum)
    return damaged(name, "the header does not match its checksum");
  if (header.file_bytes != size)
    return damaged(name,
                   fmt::format("the file has {} bytes, {} were written", size, header.file_bytes));
  // Only files of another program can fail the checks below.
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

  std::uint64_t end_of_last = sizeof header;
  for (int i = 0; i < kSections; ++i) {
    const Section& s = header.section[i];
    const std::string_view section_name(s.name, ::strnlen(s.name, sizeof s.name));
    if (section_name != kSectionNames[static_cast<std::size_t>(i)] ||
        s.offset % kSectionAlignment != 0 || s.offset < end_of_last || s.offset > size ||
        s.bytes > size - s.offset)
      return damaged(name, fmt::format("section {} lies outside the file or is misplaced",
                                       kSectionNames[static_cast<std::size_t>(i)]));
    end_of_last = s.offset + s.bytes;
  }
  summary = summary_of(header);
  if (header.targets > 0xffffffffu || bytes_of(kTargets) != header.targets * sizeof(TargetEntry) ||
      bytes_of(kOrder) != header.targets * sizeof(std::uint32_t) ||
      bytes_of(kResidues) < kDatabaseAlignment || bytes_of(kResidues) % kDatabaseAlignment != 0)
    return damaged(name, "section sizes contradict the number of targets");
  return {};
}

Result<TargetEntry> TargetDatabase::State::entry(std::uint64_t index) const {
  TargetEntry found{};
  HMMJIT_TRY(read(start_of(kTargets) + index * sizeof found, std::span(&found, 1)));
  return found;
}

// Copies the entries from `first` up to `end` or the one that fills a block (TargetBlock::full).
Result<std::vector<TargetEntry>> TargetDatabase::State::copy_entries(
    std::uint64_t first, std::uint64_t end, std::uint64_t max_residues) const {
  constexpr std::uint64_t kEntriesAtOnce = 1024;
  std::vector<TargetEntry> out;
  std::uint64_t residues = 0, others = 0;
  const auto wanted = [&] {
    return out.empty() || (residues < max_residues && others < max_residues);
  };
  while (first + out.size() < end && wanted()) {
    std::array<TargetEntry, kEntriesAtOnce> window;
    const std::uint64_t next = first + out.size();
    const auto some = std::span(window).first(std::min(kEntriesAtOnce, end - next));
    HMMJIT_TRY(read(start_of(kTargets) + next * sizeof(TargetEntry), some));
    for (const TargetEntry& e : some) {
      if (!wanted()) break;
      residues += e.length;
      others += sizeof e + std::uint64_t{e.name} + e.accession + e.description;
      out.push_back(e);
    }
  }
  return out;
}

// Residues and text are contiguous, so each entry determines the positions of the next one.
// `first`: index of the first entry, whose residues and text must start at the given positions.
Status TargetDatabase::State::check_entries(std::span<const TargetEntry> copies,
                                            std::uint64_t first, std::uint64_t first_residue,
                                            std::uint64_t first_text) const {
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const TargetEntry& e = copies[i];
    // Offsets are below 2^63 here and lengths below 2^32: no sum overflows.
    const std::uint64_t stored = stored_bytes(e.length);
    const std::uint64_t described = std::uint64_t{e.name} + e.accession + e.description;
    if (e.residues != first_residue || e.text != first_text ||
        e.length > sequence_parsing::kLongestTarget ||
        stored > bytes_of(kResidues) - first_residue || described > bytes_of(kText) - first_text)
      return damaged(name, fmt::format("target {} lies outside its section", first + i + 1));
    first_residue += stored;
    first_text += described;
  }
  return {};
}

// Checks the residues of these entries, which begin at `at`. Code that uses residues of a mapped
// file as indices checks them again (model/residue_copies.hpp).
Status TargetDatabase::State::check_residues(std::span<const TargetEntry> copies,
                                             std::uint64_t first, const Residue* at) const {
  const auto codes = static_cast<Residue>(summary.alphabet->Kp);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const std::uint32_t length = copies[i].length;
    const Residue* const end = at + stored_bytes(length);
    if (largest_code(at, length) >= codes)
      return damaged(name, fmt::format("target {} has a byte that is no residue", first + i + 1));
    if (find_other(at + length, end, kPaddingCode) != end)
      return damaged(name, fmt::format("target {} has residues in its padding", first + i + 1));
    at = end;
  }
  return {};
}

// Calls `use` with all bytes of a part of the file, in order.
template <typename Use>
Status TargetDatabase::State::for_each_piece(std::uint64_t at, std::uint64_t size,
                                             Use&& use) const {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
  while (size > 0) {
    const std::uint64_t some = std::min(size, kPieceBytes);
    HMMJIT_ASSIGN(const Piece bytes_here, piece(at, some));
    HMMJIT_TRY(use(std::string_view(bytes_here.data, some)));
    at += some;
    size -= some;
  }
  return {};
}

Status TargetDatabase::State::check_zeros(std::uint64_t from, std::uint64_t to,
                                          const std::string& where) const {
  return for_each_piece(from, to - from, [&](std::string_view some) -> Status {
    if (find_other(some.data(), some.data() + some.size(), '\0') == some.data() + some.size())
      return {};
    return damaged(name, fmt::format("bytes {} are not zero", where));
  });
}

// Loads these pages at once, instead of by one page fault each.
void TargetDatabase::State::expect(const Piece& where, std::uint64_t size_of_piece) const {
  if (!mapped()) return;
  const auto [from, size] = pages(where.data, where.data + size_of_piece, true);
#ifdef MADV_POPULATE_READ
  if (size > 0) (void)::madvise(from, size, MADV_POPULATE_READ);
#else
  if (size > 0) (void)::madvise(from, size, MADV_WILLNEED);
#endif
}

// Prefetches these bytes of the file into the page cache in the background. Linux honours such
// advice only up to the file system's readahead size at a time: 128 KiB on NFS, FUSE and most disks
// (force_page_cache_readahead in mm/readahead.c).
void TargetDatabase::State::prefetch(std::uint64_t from, std::uint64_t to) const {
  constexpr std::uint64_t kAtOnce = std::uint64_t{128} << 10;
  for (; from < to; from += kAtOnce) {
    const std::uint64_t some = std::min(kAtOnce, to - from);
    if (bytes == nullptr) {
      file.prefetch(from, some);
    } else if (mapped()) {
      const auto [begin, size] = pages(bytes + from, bytes + from + some, true);
      if (size > 0) (void)::madvise(begin, size, MADV_WILLNEED);
    }
  }
}

Result<std::shared_ptr<const TargetDatabase>> TargetDatabase::open(const std::string& path,
                                                                   DatabaseAccess access) {
  auto state = make_hidden<State>();
  state->name = path;
  if (access != DatabaseAccess::kRead) {
    state->resident = access == DatabaseAccess::kResident;
    HMMJIT_ASSIGN(state->mapping, MappedFile::open(path));
    state->bytes = state->mapping.bytes().data();
    state->summary.file_bytes = state->mapping.bytes().size();
  } else {
    HMMJIT_ASSIGN(state->file, ReadOnlyFile::open(path));
    state->summary.file_bytes = state->file.size();
  }
  HMMJIT_TRY(state->read_header());
  return std::shared_ptr<const TargetDatabase>(new TargetDatabase(std::move(state)));
}

Result<std::shared_ptr<const TargetDatabase>> TargetDatabase::from_bytes(std::string name,
                                                                         std::string_view bytes) {
  auto state = make_hidden<State>();
  state->name = std::move(name);
  state->copy = aligned_bytes(bytes.size());
  std::copy(bytes.begin(), bytes.end(), state->copy.get());
  state->bytes = state->copy.get();
  state->summary.file_bytes = bytes.size();
  HMMJIT_TRY(state->read_header());
  return std::shared_ptr<const TargetDatabase>(new TargetDatabase(std::move(state)));
}

const std::string& TargetDatabase::name() const { return state_->name; }
const DatabaseSummary& TargetDatabase::summary() const { return state_->summary; }

Result<std::string> TargetDatabase::about() const {
  std::string text(state_->bytes_of(kAbout), '\0');
  HMMJIT_TRY(state_->read(state_->start_of(kAbout), std::span(text)));
  return text;
}

Result<std::uint32_t> TargetDatabase::length_at_rank(std::uint64_t rank) const {
  const State& s = *state_;
  if (rank >= s.summary.targets)
    return fail(ErrorCode::kUsage, fmt::format("there is no target of rank {}", rank), s.name);
  std::uint32_t index = 0;
  HMMJIT_TRY(s.read(s.start_of(kOrder) + rank * sizeof index, std::span(&index, 1)));
  if (index >= s.summary.targets)
    return damaged(s.name, fmt::format("the length order is wrong at rank {}", rank));
  HMMJIT_ASSIGN(const TargetEntry found, s.entry(index));
  return found.length;
}

Result<std::pair<std::uint64_t, std::uint64_t>> TargetDatabase::targets_of_fraction(
    std::uint64_t from, std::uint64_t to, std::uint64_t of) const {
  const State& s = *state_;
  const auto first_at = [&](std::uint64_t share) -> Result<std::uint64_t> {
    // bytes * share / of, computed without overflow: shares are below `of`, which is below 2^32.
    const std::uint64_t whole = s.bytes_of(kResidues) / of, rest = s.bytes_of(kResidues) % of;
    const std::uint64_t limit = whole * share + rest * share / of;
    // Interpolation search: lengths are similar, so few steps suffice, and on a network file system
    // each step costs a round trip. Every other step bisects, which bounds the steps for any
    // lengths.
    std::uint64_t first = 0, last = s.summary.targets;
    std::uint64_t at_first = kDatabaseAlignment, at_last = s.bytes_of(kResidues);
    for (bool halve = false; first < last; halve = !halve) {
      std::uint64_t middle = first + (last - first) / 2;
      if (!halve && at_first < limit && limit < at_last) {
        const double proportion =
            static_cast<double>(limit - at_first) / static_cast<double>(at_last - at_first);
        const auto step =
            static_cast<std::uint64_t>(proportion * static_cast<double>(last - first));
        middle = first + std::min(step, last - first - 1);
      }
      HMMJIT_ASSIGN(const TargetEntry found, s.entry(middle));
      if (found.residues < limit) {
        first = middle + 1;
        at_first = found.residues;
      } else {
        last = middle;
        at_last = found.residues;
      }
    }
    return first;
  };
  HMMJIT_ASSIGN(const std::uint64_t first, first_at(from));
  HMMJIT_ASSIGN(const std::uint64_t last, first_at(to));
  return std::pair(first, last);
}

Status TargetDatabase::verify() const {
  const State& s = *state_;
  std::uint64_t end_of_last = sizeof(Header);
  for (const DatabaseSection& section : s.summary.sections) {
    HMMJIT_TRY(
        s.check_zeros(end_of_last, section.offset, fmt::format("before section {}", section.name)));
    DigestStream sum;
    HMMJIT_TRY(
        s.for_each_piece(section.offset, section.bytes, [&](std::string_view some) -> Status {
          sum.update(some);
          return {};
        }));
    if (sum.checksum() != section.checksum)
      return damaged(s.name, fmt::format("section {} does not match its checksum", section.name));
    end_of_last = section.offset + section.bytes;
  }
  HMMJIT_TRY(s.check_zeros(end_of_last, s.summary.file_bytes, "after the last section"));

  // The checksums match: any error found below is of the program that wrote the file.
  HMMJIT_ASSIGN(const Piece front, s.piece(s.start_of(kResidues), kDatabaseAlignment));
  const auto* const padding = reinterpret_cast<const Residue*>(front.data);
  if (find_other(padding, padding + kDatabaseAlignment, kPaddingCode) !=
      padding + kDatabaseAlignment)
    return damaged(s.name, "the padding in front of the residues is not padding");
  std::uint64_t residues = 0, residues_end = kDatabaseAlignment, text_end = 0;
  std::uint32_t longest = 0, shortest = s.summary.targets == 0 ? 0 : ~std::uint32_t{0};
  std::vector<std::uint32_t> lengths;
  lengths.reserve(s.summary.targets);
  constexpr std::uint64_t kResiduesAtOnce = std::uint64_t{1} << 20;
  while (lengths.size() < s.summary.targets) {
    const std::uint64_t first = lengths.size();
    HMMJIT_ASSIGN(const auto copies, s.copy_entries(first, s.summary.targets, kResiduesAtOnce));
    HMMJIT_TRY(s.check_entries(copies, first, residues_end, text_end));
    const std::uint64_t begin = residues_end;
    for (const TargetEntry& e : copies) {
      residues += e.length;
      longest = std::max(longest, e.length);
      shortest = std::min(shortest, e.length);
      residues_end = e.residues + stored_bytes(e.length);
      text_end = e.text + e.name + e.accession + e.description;
      lengths.push_back(e.length);
    }
    HMMJIT_ASSIGN(const Piece stored, s.piece(s.start_of(kResidues) + begin, residues_end - begin));
    HMMJIT_TRY(s.check_residues(copies, first, reinterpret_cast<const Residue*>(stored.data)));
  }
  if (residues != s.summary.residues || longest != s.summary.longest ||
      shortest != s.summary.shortest || residues_end != s.bytes_of(kResidues) ||
      text_end != s.bytes_of(kText))
    return damaged(s.name, "counts of the header contradict the targets");
  // Strictly ascending pairs (descending length, index) mean that each target occurs exactly once.
  std::uint32_t before = 0;
  std::uint64_t rank = 0;
  return s.for_each_piece(
      s.start_of(kOrder), s.summary.targets * sizeof before, [&](std::string_view some) -> Status {
        for (std::size_t at = 0; at < some.size(); at += sizeof before, ++rank) {
          std::uint32_t index = 0;
          std::memcpy(&index, some.data() + at, sizeof index);
          bool fits = index < lengths.size();
          if (fits && rank > 0) {
            const std::uint32_t longer = lengths[before], length = lengths[index];
            fits = longer > length || (longer == length && before < index);
          }
          if (!fits)
            return damaged(s.name, fmt::format("the length order is wrong at rank {}", rank));
          before = index;
        }
        return {};
      });
}

DatabaseReader::DatabaseReader(std::shared_ptr<const TargetDatabase> database)
    : database_(std::move(database)), residues_(kDatabaseAlignment) {}

Status DatabaseReader::seek(std::uint64_t index) {
  const TargetDatabase::State& s = *database_->state_;
  if (index > s.summary.targets)
    return fail(ErrorCode::kInput, fmt::format("there is no target {}", index + 1), s.name);
  next_ = index;
  bytes_read_ = 0;
  residues_ = kDatabaseAlignment;
  text_ = 0;
  if (index > 0 && index < s.summary.targets) {
    // read_block() checks the remaining fields.
    HMMJIT_ASSIGN(const TargetEntry first, s.entry(index));
    if (first.residues < kDatabaseAlignment || first.residues % kDatabaseAlignment != 0 ||
        first.residues > s.bytes_of(kResidues) || first.text > s.bytes_of(kText))
      return damaged(s.name, fmt::format("target {} lies outside its section", index + 1));
    residues_ = first.residues;
    text_ = first.text;
  }
  return {};
}

Result<bool> DatabaseReader::read_block(TargetBlock& block, std::uint64_t max_residues) {
  const TargetDatabase::State& s = *database_->state_;
  const std::uint64_t end_of_targets = std::min(end_, s.summary.targets);
  if (next_ >= end_of_targets) return false;
  struct Storage {
    std::shared_ptr<const TargetDatabase> database;
    std::vector<TargetEntry> entries;
    Piece residues, text;
    std::uint64_t residue_bytes = 0, text_bytes = 0;

    Storage() = default;
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    // Drops only the pages: the system reads them again when needed.
    ~Storage() {
      if (!database->state_->mapped() || database->state_->resident) return;
      for (const auto& [begin, bytes] :
           {std::pair(residues.data, residue_bytes), std::pair(text.data, text_bytes)}) {
        const auto [from, size] = pages(begin, begin + bytes, false);
        if (size > 0) (void)::madvise(from, size, MADV_DONTNEED);
      }
    }
  };
  auto stored = std::make_shared<Storage>();
  stored->database = database_;
  HMMJIT_ASSIGN(stored->entries, s.copy_entries(next_, end_of_targets, max_residues));
  std::vector<TargetEntry>& entries = stored->entries;
  HMMJIT_TRY(s.check_entries(entries, next_, residues_, text_));
  const TargetEntry last = entries.back();
  const std::uint64_t residues_end = last.residues + stored_bytes(last.length);
  const std::uint64_t text_end = last.text + last.name + last.accession + last.description;
  stored->residue_bytes = residues_end - residues_;
  stored->text_bytes = text_end - text_;
  // Includes the padding before the first target, which vector code may read.
  const std::uint64_t piece_bytes = stored->residue_bytes + kDatabaseAlignment;
  HMMJIT_ASSIGN(const Piece residues,
                s.piece(s.start_of(kResidues) + residues_ - kDatabaseAlignment, piece_bytes));
  HMMJIT_ASSIGN(stored->text, s.piece(s.start_of(kText) + text_, stored->text_bytes));
  const auto* const begin = reinterpret_cast<const Residue*>(residues.data + kDatabaseAlignment);
  stored->residues = {residues.data + kDatabaseAlignment, residues.own};
  const std::uint64_t end_of_block = next_ + entries.size();
  if (std::uint64_t checked = s.checked; end_of_block > checked) {
    // Prefetch the next block during the search of this one: on a network file system each page
    // fault costs a round trip. Repeat the advice for every block: a busy system drops it, and for
    // pages in memory it costs little.
    constexpr std::uint64_t kAhead = std::uint64_t{8} << 20, kEntriesAhead = std::uint64_t{1} << 16;
    std::uint64_t after_range = s.bytes_of(kResidues);
    if (end_of_targets < s.summary.targets) {
      HMMJIT_ASSIGN(const TargetEntry next, s.entry(end_of_targets));
      after_range = std::min(next.residues, s.bytes_of(kResidues));
    }
    s.prefetch(s.start_of(kResidues) + residues_,
               s.start_of(kResidues) + std::min(residues_end + kAhead, after_range));
    s.prefetch(s.start_of(kTargets) + next_ * sizeof(TargetEntry),
               s.start_of(kTargets) +
                   std::min(next_ + kEntriesAhead, end_of_targets) * sizeof(TargetEntry));
    s.expect(residues, piece_bytes);
    if (begin[-1] != kPaddingCode)
      return damaged(s.name, fmt::format("no padding in front of target {}", next_ + 1));
    HMMJIT_TRY(s.check_residues(entries, next_, begin));
    while (s.resident && next_ <= checked && checked < end_of_block &&
           !s.checked.compare_exchange_weak(checked, end_of_block)) {
    }
  }

  TargetStorage storage;
  storage.residues = begin;
  storage.text = stored->text.data;
  for (TargetEntry& e : entries) {  // make offsets relative to the block's first target
    storage.residue_count += e.length;
    e.residues -= residues_;
    e.text -= text_;
  }
  storage.entries = entries;
  storage.occupied = {begin, stored->residue_bytes};
  storage.owner = stored;
  storage.borrowed = residues.own == nullptr;
  bytes_read_ += storage.occupied.size() + storage.entries.size_bytes() + stored->text_bytes;
  block = TargetBlock(std::move(storage), next_);
  next_ += entries.size();
  residues_ = residues_end;
  text_ = text_end;
  return true;
}

}  // namespace hmmjit
