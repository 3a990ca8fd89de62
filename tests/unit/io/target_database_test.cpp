// Target databases: round trips, detection of damage, offsets beyond 4 GB.
#include "io/target_database.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "core/digest.hpp"
#include "io/database_format.hpp"
#include "tests/unit/io/io_support.hpp"

namespace hmmjit {
namespace {

using database_format::Header;
using io_test::read_file;
using io_test::Target;
using io_test::TemporaryFolder;

void add_target(TargetBlock& block, const Target& target, const Alphabet& alphabet) {
  block.begin_target(target.name, target.accession, target.description);
  std::vector<Residue> codes;
  for (const char c : target.residues)
    codes.push_back(alphabet.digit[static_cast<unsigned char>(c)]);
  block.append(codes);
  block.end_target();
}

Result<DatabaseSummary> write(const std::string& path, const std::vector<Target>& targets,
                              const Alphabet& alphabet = amino_alphabet(),
                              std::size_t per_block = 3) {
  auto writer = DatabaseWriter::create(path, alphabet);
  if (!writer) return std::unexpected(writer.error());
  for (std::size_t at = 0; at < targets.size(); at += per_block) {
    TargetBlock block;
    for (std::size_t i = at; i < std::min(targets.size(), at + per_block); ++i)
      add_target(block, targets[i], alphabet);
    if (auto status = writer->add(block); !status) return std::unexpected(status.error());
  }
  return writer->finish("program test\nsource somewhere\n");
}

// A database in a temporary folder.
struct Written {
  TemporaryFolder folder;
  std::string path = folder.path() / "written.hjdb";
  explicit Written(const std::vector<Target>& targets,
                   const Alphabet& alphabet = amino_alphabet()) {
    const auto summary = write(path, targets, alphabet);
    EXPECT_TRUE(summary) << summary.error().to_string();
  }
  std::shared_ptr<const TargetDatabase> open(DatabaseAccess access = DatabaseAccess::kMap) const {
    auto database = TargetDatabase::open(path, access);
    if (!database) throw std::runtime_error(database.error().to_string());
    return *database;
  }
  std::string bytes() const { return read_file(path); }
};

std::vector<Target> read(DatabaseReader& reader, std::uint64_t block_residues,
                         const Alphabet& alphabet, std::string* error = nullptr) {
  std::vector<Target> out;
  for (;;) {
    TargetBlock block;
    auto more = reader.read_block(block, block_residues);
    if (!more && error != nullptr) *error = more.error().to_string();
    if (!more && error == nullptr) ADD_FAILURE() << more.error().to_string();
    if (!more || !*more) return out;
    EXPECT_EQ(block.first_index() + block.size(), reader.targets_read());
    std::uint64_t residues = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const TargetView view = block[i];
      EXPECT_EQ(view.length(), block.length(i));
      EXPECT_EQ(view.residues.data()[-1], kPaddingCode);
      EXPECT_EQ((view.residues.data() - block.packed_residues().data()) % kDatabaseAlignment, 0);
      residues += view.residues.size();
    }
    EXPECT_EQ(residues, block.residue_count());
    io_test::expect_bounded(block, block_residues);
    EXPECT_GE(block.bytes(), residues);
    for (Target& t : io_test::targets_of(block, alphabet)) out.push_back(std::move(t));
  }
}

std::vector<Target> odd_targets() {
  std::vector<Target> targets = {{"", "", "", "ACDEFGHIKLMNPQRSTVWY"},
                                 {"degenerate", "P12345.1", "BJZOUX and the rest", "BJZOUX*~-"},
                                 {"empty", "", "no residues", ""},
                                 {"stars", "", "", "****************"},
                                 {"a name\twith <odd> \"signs\"", "", "\xc3\xa9", "M"},
                                 {"", "", "", ""},
                                 {"repeat", "", "", "MK"},
                                 {"repeat", "", "", "MK"}};
  for (const std::size_t length : {14, 15, 16, 17, 31, 32, 33, 1000})
    targets.push_back({"len" + std::to_string(length), "", "", std::string(length, 'W')});
  return targets;
}

class DatabaseAccesses : public testing::TestWithParam<DatabaseAccess> {};
INSTANTIATE_TEST_SUITE_P(Each, DatabaseAccesses,
                         testing::Values(DatabaseAccess::kMap, DatabaseAccess::kResident,
                                         DatabaseAccess::kRead),
                         [](const auto& access) {
                           return access.param == DatabaseAccess::kMap        ? "Map"
                                  : access.param == DatabaseAccess::kResident ? "Resident"
                                                                              : "Read";
                         });

TEST_P(DatabaseAccesses, ReturnsWhatWasWritten) {
  const std::vector<Target> targets = odd_targets();
  const Written file(targets);
  const auto database = file.open(GetParam());
  EXPECT_TRUE(database->verify());
  EXPECT_EQ(database->summary().targets, targets.size());
  EXPECT_EQ(database->summary().longest, 1000u);
  EXPECT_EQ(database->summary().shortest, 0u);
  EXPECT_EQ(database->summary().file_bytes, std::filesystem::file_size(file.path));
  EXPECT_EQ(database->about().value(), "program test\nsource somewhere\n");
  for (const std::uint64_t block : {1, 7, 40, 100000}) {
    DatabaseReader reader(database);
    EXPECT_EQ(read(reader, block, amino_alphabet()), targets) << block;
    ASSERT_TRUE(reader.seek(0));
    EXPECT_EQ(read(reader, block, amino_alphabet()), targets) << "again";
    ASSERT_TRUE(reader.seek(5));
    EXPECT_EQ(read(reader, block, amino_alphabet()),
              (std::vector<Target>(targets.begin() + 5, targets.end())));
    EXPECT_FALSE(reader.seek(targets.size() + 1));
    EXPECT_TRUE(reader.seek(targets.size()));
  }
  // The file does not depend on the division into blocks.
  const std::string other = file.folder.path() / "other.hjdb";
  const auto summary = write(other, targets, amino_alphabet(), 100);
  ASSERT_TRUE(summary);
  EXPECT_EQ(database->summary().identity, summary->identity);
  EXPECT_EQ(file.bytes(), read_file(other));
}

TEST_P(DatabaseAccesses, BlocksOutliveReaderAndHandle) {
  TargetBlock block;
  {
    DatabaseReader reader(Written(odd_targets()).open(GetParam()));
    ASSERT_TRUE(*reader.read_block(block, 1 << 20));
  }
  const TargetBlock copy = block;
  block = TargetBlock();
  EXPECT_EQ(io_test::targets_of(copy, amino_alphabet()), odd_targets());
}

TEST(TargetDatabase, EveryCodeOfEveryAlphabetComesBack) {
  for (const Alphabet* alphabet : {&amino_alphabet(), &dna_alphabet(), &rna_alphabet()}) {
    const std::vector<Target> targets = {{"all", "", "", std::string(alphabet->symbols)}};
    const auto database = Written(targets, *alphabet).open();
    EXPECT_EQ(database->summary().alphabet, alphabet);
    EXPECT_TRUE(database->verify());
    DatabaseReader reader(database);
    EXPECT_EQ(read(reader, 100, *alphabet), targets);
  }
}

TEST_P(DatabaseAccesses, NoTargetsAtAll) {
  const auto database = Written({}).open(GetParam());
  EXPECT_TRUE(database->verify());
  EXPECT_EQ(database->summary().targets, 0u);
  DatabaseReader reader(database);
  TargetBlock block;
  EXPECT_FALSE(*reader.read_block(block, 100));
}

TEST(TargetDatabase, LengthOrderIsStable) {
  std::vector<Target> targets;
  for (const char* residues : {"MM", "MMMM", "MM", "", "MMMM"})
    targets.push_back({"t", "", "", residues});
  const Written file(targets);
  const auto database = file.open();
  const DatabaseSection& section = database->summary().sections[database_format::kOrder];
  ASSERT_EQ(section.bytes, 5 * sizeof(std::uint32_t));
  std::vector<std::uint32_t> order(5);
  std::memcpy(order.data(), file.bytes().data() + section.offset, section.bytes);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 4, 0, 2, 3}));
  EXPECT_EQ(database->length_at_rank(2).value(), 2u);
  EXPECT_EQ(database->length_at_rank(4).value(), 0u);
  EXPECT_FALSE(database->length_at_rank(5));
}

// A mapping would raise SIGBUS, which a library must not handle, in each of these cases.
TEST(TargetDatabase, FileCutShortWhileItIsReadIsAnErrorValue) {
  const Written file(std::vector<Target>(3000, {"t", "", "", std::string(300, 'W')}));
  const auto database = file.open(DatabaseAccess::kRead);
  DatabaseReader reader(database);
  TargetBlock block;
  ASSERT_TRUE(*reader.read_block(block, 200000));
  const auto first = io_test::targets_of(block, amino_alphabet());
  std::filesystem::resize_file(file.path, 4096);
  EXPECT_EQ(io_test::targets_of(block, amino_alphabet()), first) << "the block owns its bytes";
  const auto is_cut = [&](const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::kInput);
    EXPECT_EQ(error.where, file.path);
    EXPECT_THAT(error.message, testing::HasSubstr("cut short"));
  };
  TargetBlock next;
  is_cut(reader.read_block(next, 200000).error());
  is_cut(reader.seek(5).error());
  is_cut(database->verify().error());
  is_cut(database->about().error());
  is_cut(database->length_at_rank(0).error());
  is_cut(database->targets_of_fraction(0, 1, 2).error());
}

// Similar lengths, a long target at either end, growing lengths, no residues.
TEST(TargetDatabase, FractionsEqualALinearSearch) {
  const auto lengths_of = [](int kind, int n) {
    if (kind == 0) return 100 + (n * 7919) % 400;
    if (kind == 1) return n == 0 ? 300000 : 1 + n % 3;
    if (kind == 2) return n == 499 ? 300000 : 1 + n % 3;
    return kind == 3 ? n * n / 100 : 0;
  };
  for (int kind = 0; kind < 5; ++kind) {
    std::vector<Target> targets;
    std::vector<std::uint64_t> starts;
    std::uint64_t bytes = 16;
    for (int n = 0; n < 500; ++n) {
      const auto length = static_cast<std::size_t>(lengths_of(kind, n));
      targets.push_back({"t", "", "", std::string(length, 'D')});
      starts.push_back(bytes);
      bytes += (length + 16) / 16 * 16;
    }
    const auto database = Written(targets).open();
    for (const std::uint64_t of : {1u, 2u, 3u, 7u, 64u, 499u, 500u, 1000u, 4000000000u}) {
      for (std::uint64_t at = 0; at < of; at += std::max<std::uint64_t>(1, of / 50)) {
        const auto place = [&](std::uint64_t share) {
          const std::uint64_t limit = bytes * share / of;
          return static_cast<std::uint64_t>(std::ranges::lower_bound(starts, limit) -
                                            starts.begin());
        };
        EXPECT_EQ(*database->targets_of_fraction(at, at + 1, of),
                  std::pair(place(at), place(at + 1)))
            << kind << ": " << at << " of " << of;
      }
    }
  }
}

TEST(TargetDatabase, BlocksOwnTheirBytes) {
  const Written file(odd_targets());
  DatabaseReader reader(file.open(DatabaseAccess::kRead));
  TargetBlock block;
  ASSERT_TRUE(*reader.read_block(block, 1 << 20));
  const std::string noise(file.bytes().size(), '\xff');
  const int descriptor = ::open(file.path.c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(descriptor, noise.data(), noise.size(), 0),
            static_cast<ssize_t>(noise.size()));
  ::close(descriptor);
  EXPECT_EQ(io_test::targets_of(block, amino_alphabet()), odd_targets());
}

TEST(TargetDatabase, ResidentResiduesAreCheckedWhenTheyAreFirstRead) {
  const std::vector<Target> targets(20, {"t", "", "", "ACDEFGHIKLMNPQRSTVWY"});
  const Written file(targets);
  const auto database = file.open(DatabaseAccess::kResident);
  const auto put = [&](std::uint64_t target, Residue code) {
    const std::fstream::off_type at = static_cast<std::fstream::off_type>(
        database->summary().sections[0].offset + kDatabaseAlignment + target * 32);
    std::fstream out(file.path, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(at).put(static_cast<char>(code));
  };
  const auto error_of = [&](std::uint64_t from) {
    DatabaseReader reader(database);
    EXPECT_TRUE(reader.seek(from));
    std::string error;
    read(reader, 60, amino_alphabet(), &error);
    return error;
  };
  put(12, 0xee);
  EXPECT_EQ(error_of(15), "");  // leaves no mark: the targets before are unread
  EXPECT_THAT(error_of(0), testing::HasSubstr("target 13 has a byte that is no residue"));
  EXPECT_THAT(error_of(9), testing::HasSubstr("target 13 has a byte that is no residue"));
  put(12, 0);
  EXPECT_EQ(error_of(0), "");
  put(12, 0xee);
  DatabaseReader reader(database);
  TargetBlock block;
  ASSERT_TRUE(reader.read_block(block, 1 << 20).value());
  EXPECT_EQ(block[12].residues[0], 0xee);
}

// Opens, reads and verifies; true if open or verify fails. Must never crash.
bool complains(const Result<std::shared_ptr<const TargetDatabase>>& database,
               const std::string& bytes) {
  if (!database) {
    EXPECT_FALSE(database.error().message.empty());
    EXPECT_EQ(database.error().code, ErrorCode::kInput);
    return true;
  }
  DatabaseReader reader(*database);
  std::string error;
  for (const Target& t : read(reader, 100, *(*database)->summary().alphabet, &error))
    EXPECT_LE(t.residues.size(), bytes.size());
  return !(*database)->verify();
}

bool complains(const std::string& bytes) {
  return complains(TargetDatabase::from_bytes("bytes", bytes), bytes);
}

TEST(TargetDatabase, EveryFlippedByteIsReported) {
  const std::string bytes = Written(odd_targets()).bytes();
  ASSERT_FALSE(complains(bytes));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int mask : {1, 0x20, 0x80}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      ASSERT_TRUE(complains(changed)) << "byte " << at << " of " << bytes.size();
    }
  }
}

TEST(TargetDatabase, EveryTruncationIsReported) {
  const std::string bytes = Written(odd_targets()).bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_TRUE(complains(bytes.substr(0, size))) << size;
  EXPECT_TRUE(complains(bytes + '\0'));
}

// The same for a file that is read instead of mapped.
TEST(TargetDatabase, EveryFlippedByteOfAFileIsReported) {
  const Written written(odd_targets());
  const std::string bytes = written.bytes();
  const auto complains_now = [&] {
    return complains(TargetDatabase::open(written.path, DatabaseAccess::kRead), bytes);
  };
  ASSERT_FALSE(complains_now());
  const int file = ::open(written.path.c_str(), O_WRONLY);
  ASSERT_GE(file, 0);
  const auto put = [&](char byte, std::size_t at) {
    ASSERT_EQ(::pwrite(file, &byte, 1, static_cast<off_t>(at)), 1);
  };
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    put(static_cast<char>(bytes[at] ^ 0x20), at);
    ASSERT_TRUE(complains_now()) << "byte " << at << " of " << bytes.size();
    put(bytes[at], at);
  }
  for (std::size_t size = bytes.size(); size-- > 0;) {
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(size)), 0);
    ASSERT_TRUE(complains_now()) << size;
  }
  ::close(file);
}

// A malicious file has a valid header checksum.
void seal(std::string& bytes) {
  const std::uint64_t sum = checksum(bytes.data(), offsetof(Header, checksum));
  std::memcpy(bytes.data() + offsetof(Header, checksum), &sum, sizeof sum);
}

TEST(TargetDatabase, SealedNonsenseNeverCrashes) {
  const std::string bytes = Written(odd_targets()).bytes();
  std::mt19937_64 random(7);
  const std::uint64_t values[] = {0,          1,          ~0ull,          ~0ull - 63,   1ull << 63,
                                  0x7fffffff, 0xffffffff, 0x100000000ull, bytes.size(), 64};
  for (int n = 0; n < 20000; ++n) {
    std::string changed = bytes;
    for (int changes = 1 + static_cast<int>(random() % 2); changes > 0; --changes) {
      const std::uint64_t value = values[random() % std::size(values)];
      const std::size_t width = random() % 2 == 0 ? 4 : 8;
      // Mostly in the header and the entries, which hold offsets.
      const std::size_t at =
          random() % 2 == 0 ? random() % 312 / 4 * 4 : random() % (changed.size() - width) / 4 * 4;
      std::memcpy(changed.data() + at, &value, width);
    }
    seal(changed);
    if (changed != bytes) (void)complains(changed);
  }
}

TEST(TargetDatabase, MessagesSayWhatAndWhatToDo) {
  const std::string bytes = Written(odd_targets()).bytes();
  const auto message = [](std::string changed, bool sealed) {
    if (sealed) seal(changed);
    const auto database = TargetDatabase::from_bytes("x.hjdb", changed);
    if (!database) return database.error().to_string();
    const Status status = (*database)->verify();
    return status ? std::string("whole") : status.error().to_string();
  };
  std::string changed = bytes;
  changed[8] = 2;
  EXPECT_EQ(message(changed, true),
            "x.hjdb: target database of format 2; this program reads format 1; make it again with "
            "hmmjit db build of this version");
  changed = bytes;
  changed[600] ^= 1;
  EXPECT_EQ(message(changed, false),
            "x.hjdb: the target database is damaged: section residues does not match its checksum; "
            "make it again with hmmjit db build");
  EXPECT_THAT(message(bytes.substr(0, 2000), false), testing::HasSubstr("the file has 2000 bytes"));
  EXPECT_THAT(message("\x89HJDB\r\n\x1a", false), testing::HasSubstr("a header has 512"));
  EXPECT_THAT(message(">a\nMK\n", false), testing::HasSubstr("not a target database"));
}

// Residues that are no codes would index beyond filter tables; a search reads no checksums.
TEST(TargetDatabase, ReaderRefusesBytesThatAreNoResidues) {
  const std::string bytes = Written({{"a", "", "", "MKV"}}).bytes();
  const std::size_t first = sizeof(Header) + kDatabaseAlignment;
  for (const std::size_t at : {first - 1, first + 1, first + 3}) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(at == first + 1 ? 29 : 3);
    const auto database = TargetDatabase::from_bytes("bytes", changed);
    ASSERT_TRUE(database);
    DatabaseReader reader(*database);
    TargetBlock block;
    EXPECT_FALSE(reader.read_block(block, 100)) << at;
  }
}

// A sparse file with one target after four gigabytes of others.
TEST(TargetDatabase, OffsetsBeyondFourGigabytes) {
  const std::vector<Target> last_target = {{"last", "A1", "far away", "MKVLAT"}};
  std::vector<Target> targets(3, {"short", "", "", "M"});
  targets.push_back(last_target[0]);
  const Written small(targets);
  const std::string bytes = small.bytes();
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto old = header;
  std::vector<TargetEntry> entries(4);
  std::memcpy(entries.data(), bytes.data() + old.section[database_format::kTargets].offset,
              old.section[database_format::kTargets].bytes);
  const std::string last = bytes.substr(old.section[0].offset + entries[3].residues - 16, 32);
  const std::string other_sections = bytes.substr(old.section[1].offset);
  constexpr std::uint32_t kLong = 0x7fffffff;
  std::uint64_t at = kDatabaseAlignment;
  for (int i = 0; i < 4; ++i) {
    entries[i].residues = at;
    if (i < 3) entries[i].length = kLong;
    at += database_format::stored_bytes(entries[i].length);
  }
  const std::uint64_t shift = at - old.section[0].bytes;
  ASSERT_GT(entries[3].residues, std::uint64_t{6} << 30);
  header.residues = 3 * std::uint64_t{kLong} + 6;
  header.longest = kLong;
  header.section[0].bytes = at;
  const std::uint64_t moved =
      database_format::round_up(old.section[1].offset + shift, 64) - old.section[1].offset;
  for (int i = 1; i < database_format::kSections; ++i) header.section[i].offset += moved;
  header.file_bytes = old.file_bytes + moved;
  header.checksum = checksum(&header, offsetof(Header, checksum));

  const std::string path = small.folder.path() / "large.hjdb";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  const auto put = [&](const void* data, std::size_t size, std::uint64_t offset) {
    ASSERT_EQ(::pwrite(file, data, size, static_cast<off_t>(offset)), static_cast<ssize_t>(size));
  };
  put(&header, sizeof header, 0);
  put(last.data(), last.size(), header.section[0].offset + entries[3].residues - 16);
  put(other_sections.data(), other_sections.size(), header.section[1].offset);
  put(entries.data(), entries.size() * sizeof entries[0], header.section[1].offset);
  ::close(file);

  for (const DatabaseAccess access :
       {DatabaseAccess::kMap, DatabaseAccess::kResident, DatabaseAccess::kRead}) {
    const auto database = TargetDatabase::open(path, access);
    ASSERT_TRUE(database) << database.error().to_string();
    DatabaseReader reader(*database);
    ASSERT_TRUE(reader.seek(3));
    TargetBlock block;
    const auto more = reader.read_block(block, 100);
    ASSERT_TRUE(more) << more.error().to_string();
    EXPECT_EQ(io_test::targets_of(block, amino_alphabet()), last_target);
  }
}

TEST(TargetDatabase, NothingIsLeftOfAnUnfinishedFile) {
  const TemporaryFolder folder;
  {
    auto writer = DatabaseWriter::create(folder.path() / "never.hjdb", amino_alphabet());
    ASSERT_TRUE(writer);
    TargetBlock block;
    add_target(block, {"a", "", "", "MKV"}, amino_alphabet());
    ASSERT_TRUE(writer->add(block));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_FALSE(DatabaseWriter::create(folder.path() / "missing" / "x.hjdb", amino_alphabet()));
}

}  // namespace
}  // namespace hmmjit
