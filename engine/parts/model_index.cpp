#include "parts/model_index.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/coding.hpp"
#include "core/digest.hpp"
#include "core/read_only_file.hpp"

namespace hmmjit::parts {
namespace {

constexpr std::string_view kIndexMagic = "\x89HJMX\r\n\x1a";
constexpr std::uint32_t kIndexVersion = 1;
// The size and the bytes at both ends of a model file reveal changes.
constexpr std::uint64_t kSample = std::uint64_t{64} << 10;

struct FileIdentity {
  std::uint64_t bytes = 0, checksum = 0;
  bool operator==(const FileIdentity&) const = default;
};

Result<FileIdentity> identity_of(const std::string& path) {
  HMMJIT_ASSIGN(const ReadOnlyFile file, ReadOnlyFile::open(path));
  std::string ends(std::min(file.size(), kSample), '\0');
  HMMJIT_TRY(file.read(0, ends));
  if (file.size() > kSample) {
    ends.resize(2 * kSample);
    HMMJIT_TRY(file.read(file.size() - kSample, std::span(ends).last(kSample)));
  }
  return FileIdentity{file.size(), checksum(ends.data(), ends.size())};
}

// The file that is actually read: `path` or its pressed database.
Result<std::string> source_of(const std::string& path) {
  HMMJIT_ASSIGN(const HmmReader reader, HmmReader::open(path));
  return reader.name();
}

}  // namespace

std::string index_path(const std::string& models) { return models + ".hjidx"; }

void add_profile_files(std::vector<NamedFile>& files, const char* what, const std::string& path) {
  files.push_back({what, path});
  if (path == "-") return;
  for (const char* suffix : kPressedSuffixes)
    files.push_back({"pressed profile file", path + suffix});
  for (const std::string& indexed : {path, path + ".h3m"})
    files.push_back({"index of the profile file", index_path(indexed)});
}

std::pair<std::uint64_t, std::uint64_t> ModelIndex::models_of(const Share& share) const {
  const auto first_at = [&](std::uint64_t part) {
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
  const Result<std::string> read = read_whole_file(name);
  if (!read) return refuse("no index of the models: " + read.error().message);
  std::string_view bytes = *read;
  std::uint64_t sum = 0;
  if (!bytes.starts_with(kIndexMagic) || bytes.size() < kIndexMagic.size() + 36)
    return refuse("not an index of models");
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  bytes.remove_suffix(sizeof sum);
  if (checksum(bytes.data(), bytes.size()) != sum)
    return refuse("the index is damaged: it does not match its checksum");
  Decoder decoder(bytes.substr(kIndexMagic.size()));
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
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> range,
                open_file_range(source, index.offsets.at(first), index.offsets.at(last)));
  return HmmReader::open(std::move(range));
}

}  // namespace hmmjit::parts
