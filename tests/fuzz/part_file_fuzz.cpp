// For any bytes, a part file is refused or every record is read within its bounds; unchanged, and
// with recomputed checksums.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "core/digest.hpp"
#include "parts/part_reader.hpp"
#include "tests/fuzz/entry.hpp"

namespace {

using namespace hmmjit;
using namespace hmmjit::parts;

// An unnamed file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", 0)) {
    require(descriptor_ >= 0 &&
            ::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

void read_everything(std::string_view bytes) {
  const MemoryFile file(bytes);
  const auto part = PartFile::open(file.path());
  if (!part) return require(!part.error().message.empty());
  for (std::size_t n = 0; n < (*part)->hit_blocks(); ++n) {
    // Skips blocks of a stated gigabyte, since filling one is slow.
    if ((*part)->hit_block(n).raw > 1u << 20) return;
  }
  for (std::size_t n = 0; n < (*part)->head_blocks(); ++n) {
    if ((*part)->head_block(n).raw > 1u << 20) return;
  }
  const bool whole = (*part)->verify().has_value();
  PartCursor cursor(*part);
  ModelHead head;
  for (;;) {
    const auto more = cursor.next_model(head);
    require(more || !whole);
    if (!more || !*more) return;
    if (!cursor.begin_hits(head)) return require(!whole);
    Hit hit;
    for (std::uint64_t n = 0; n < head.reported; ++n) {
      const auto found = cursor.next_hit(hit);
      require((found && *found) || !whole);
      if (!found || !*found) break;
    }
  }
}

// Recomputes all checksums whose offsets lie in the file.
void seal(std::string& bytes) {
  Prelude p;
  std::memcpy(&p, bytes.data(), sizeof p);
  const std::uint64_t size = bytes.size();
  const auto inside = [&](std::uint64_t at, std::uint64_t count) {
    return at <= size && count <= size - at;
  };
  p.file_bytes = size;
  if (inside(sizeof p, p.settings_bytes)) {
    p.settings_checksum = checksum(bytes.data() + sizeof p, p.settings_bytes);
    p.search = digest_of(std::string_view(bytes).substr(sizeof p, p.settings_bytes));
  }
  if (inside(p.origin_offset, p.origin_bytes))
    p.origin_checksum = checksum(bytes.data() + p.origin_offset, p.origin_bytes);
  if (inside(p.table_offset, 0)) {
    for (std::uint64_t at = p.table_offset; inside(at, sizeof(BlockEntry));
         at += sizeof(BlockEntry)) {
      BlockEntry entry;
      std::memcpy(&entry, bytes.data() + at, sizeof entry);
      if (inside(entry.offset, entry.stored))
        entry.checksum = checksum(bytes.data() + entry.offset, entry.stored);
      std::memcpy(bytes.data() + at, &entry, sizeof entry);
    }
    p.table_checksum = checksum(bytes.data() + p.table_offset, size - p.table_offset);
  }
  p.checksum = checksum(&p, offsetof(Prelude, checksum));
  std::memcpy(bytes.data(), &p, sizeof p);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read_everything(bytes);
  if (size < sizeof(Prelude)) return 0;
  seal(bytes);
  read_everything(bytes);
  return 0;
}

std::vector<std::string> fuzz_seeds() { return {std::string(kPartMagic)}; }

std::vector<std::string> fuzz_folders() { return {}; }
