#include "parts/model_index.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/checksum.hpp"
#include "core/coding.hpp"
#include "core/output_file.hpp"

namespace hmmjit::parts {
namespace {

constexpr std::string_view kIndexMagic = "\x89HJMX\r\n\x1a";
constexpr std::uint32_t kIndexVersion = 1;
// What is compared of the model file: its ends, and its size.
constexpr std::uint64_t kSample = std::uint64_t{64} << 10;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

std::unexpected<Error> unreadable(const std::string& path, int error) {
  if (error == ENOMEM) throw std::bad_alloc();
  return fail(ErrorCode::kInput, std::string("cannot read: ") + std::strerror(error), path,
              "check the name and the permissions");
}

Result<std::string> read_at(const Descriptor& file, const std::string& path, std::uint64_t offset,
                            std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(file.number(), bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

struct FileIdentity {
  std::uint64_t bytes = 0, checksum = 0;
  bool operator==(const FileIdentity&) const = default;
};

Result<FileIdentity> identity_of(const std::string& path) {
  const Descriptor file(path);
  struct stat info {};
  if (file.number() < 0 || ::fstat(file.number(), &info) != 0) return unreadable(path, errno);
  FileIdentity identity;
  identity.bytes = static_cast<std::uint64_t>(info.st_size);
  HMMJIT_ASSIGN(std::string ends, read_at(file, path, 0, kSample));
  if (identity.bytes > kSample) {
    HMMJIT_ASSIGN(const std::string tail, read_at(file, path, identity.bytes - kSample, kSample));
    ends += tail;
  }
  identity.checksum = checksum(ends.data(), ends.size());
  return identity;
}

// Some bytes of a file that is not compressed.
class FileRange final : public ByteSource {
 public:
  FileRange(Descriptor file, const std::string& path, std::uint64_t first, std::uint64_t last)
      : file_(std::move(file)), first_(first), last_(last), at_(first) {
    name_ = path;
  }
  Result<std::span<const char>> next() override {
    constexpr std::uint64_t kChunk = std::uint64_t{1} << 20;
    auto read = read_at(file_, name_, at_, std::min(kChunk, last_ - at_));
    if (!read) return std::unexpected(read.error());
    bytes_.swap(*read);
    at_ += bytes_.size();
    return std::span<const char>(bytes_);
  }
  Status rewind() override {
    at_ = first_;
    return {};
  }
  bool rewindable() const override { return true; }

 private:
  Descriptor file_;
  std::uint64_t first_, last_, at_;
  std::string bytes_;
};

// The file that the models come from: a pressed database may stand in for it.
Result<std::string> source_of(const std::string& path) {
  HMMJIT_ASSIGN(const HmmReader reader, HmmReader::open(path));
  return reader.name();
}

}  // namespace

std::string index_path(const std::string& models) { return models + ".hjidx"; }

std::pair<std::uint64_t, std::uint64_t> ModelIndex::models_of(const Share& share) const {
  const auto first_at = [&](std::uint64_t part) {
    // Of the positions laid end to end; the last bound is after all models.
    const std::uint64_t all = positions.back();
    const std::uint64_t limit = all / share.of * part + all % share.of * part / share.of;
    const auto end = positions.end() - 1;
    return static_cast<std::uint64_t>(std::lower_bound(positions.begin(), end, limit) -
                                      positions.begin());
  };
  return {first_at(share.first - 1u), first_at(share.last)};
}

Result<std::string> write_model_index(const std::string& path) {
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  struct stat info {};
  if (path == "-" || ::stat(reader.name().c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
      reader.compression() != Compression::kNone)
    return fail(ErrorCode::kInput, "only a plain file of models can be indexed", path,
                "decompress it into a file first");
  HMMJIT_ASSIGN(const FileIdentity identity, identity_of(reader.name()));
  std::string entries;
  std::uint64_t models = 0, offset = 0;
  for (;; ++models) {
    HMMJIT_ASSIGN(const std::optional<Hmm> hmm, reader.next());
    if (!hmm) break;
    const std::uint64_t end = reader.offset();
    put_count(entries, end - std::exchange(offset, end));
    put_count(entries, static_cast<std::uint64_t>(hmm->M));
  }
  std::string bytes(kIndexMagic);
  put_bytes(bytes, kIndexVersion);
  put_bytes(bytes, identity.bytes);
  put_bytes(bytes, identity.checksum);
  put_bytes(bytes, models);
  bytes += entries;
  put_bytes(bytes, checksum(bytes.data(), bytes.size()));
  const std::string index = index_path(reader.name());
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(index));
  file.write(bytes);
  HMMJIT_TRY(file.commit());
  return index;
}

Result<ModelIndex> read_model_index(const std::string& path) {
  HMMJIT_ASSIGN(const std::string source, source_of(path));
  const std::string name = index_path(source);
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorCode::kInput, what, name, "make it with hmmjit part index " + path);
  };
  const Descriptor file(name);
  struct stat info {};
  if (file.number() < 0 || ::fstat(file.number(), &info) != 0)
    return refuse(std::string("no index of the models: ") + std::strerror(errno));
  const auto read = read_at(file, name, 0, static_cast<std::size_t>(info.st_size));
  if (!read) return std::unexpected(read.error());
  std::string bytes = *read;
  std::uint64_t sum = 0;
  if (!bytes.starts_with(kIndexMagic) || bytes.size() < kIndexMagic.size() + 36)
    return refuse("not an index of models");
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  bytes.resize(bytes.size() - sizeof sum);
  if (checksum(bytes.data(), bytes.size()) != sum)
    return refuse("the index is damaged: it does not match its checksum");
  Decoder decoder(std::string_view(bytes).substr(kIndexMagic.size()));
  if (decoder.bytes<std::uint32_t>() != kIndexVersion) return refuse("an index of another version");
  FileIdentity identity;
  identity.bytes = decoder.bytes<std::uint64_t>();
  identity.checksum = decoder.bytes<std::uint64_t>();
  HMMJIT_ASSIGN(const FileIdentity now, identity_of(source));
  if (now != identity) return refuse("the models have changed since the index was made");
  const auto models = decoder.bytes<std::uint64_t>();
  ModelIndex index;
  index.offsets.push_back(0);
  index.positions.push_back(0);
  for (std::uint64_t i = 0; i < models && decoder.ok(); ++i) {
    index.offsets.push_back(index.offsets.back() + decoder.count());
    index.positions.push_back(index.positions.back() + decoder.count());
  }
  if (!decoder.ok() || decoder.left() != 0) return refuse("the index is damaged");
  return index;
}

Result<HmmReader> open_models_of(const std::string& path, const ModelIndex& index,
                                 std::uint64_t first, std::uint64_t last) {
  HMMJIT_ASSIGN(const std::string source, source_of(path));
  Descriptor file(source);
  if (file.number() < 0) return unreadable(source, errno);
  return HmmReader::open(std::make_unique<FileRange>(
      std::move(file), source, index.offsets.at(first), index.offsets.at(last)));
}

}  // namespace hmmjit::parts
