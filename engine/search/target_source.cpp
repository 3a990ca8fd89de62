#include "search/target_source.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "model/residue_copies.hpp"

namespace hmmjit {
namespace {

class RestrictedTargets final : public TargetSource {
 public:
  RestrictedTargets(std::unique_ptr<TargetSource> source, const Alphabet& alphabet,
                    std::string first, std::optional<std::uint64_t> count)
      : source_(std::move(source)), alphabet_(alphabet), first_(std::move(first)), count_(count) {}

  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    while (!count_ || passed_ < *count_) {
      TargetBlock all;
      HMMJIT_ASSIGN(const bool more, source_->next(all, residues));
      if (!more) {
        if (!found())
          return fail(ErrorCode::kInput, "no target is named " + first_, {},
                      "check --restrictdb_stkey");
        return false;
      }
      block.set_first_index(passed_);
      ResidueCopies copies;
      for (std::size_t i = 0; i < all.size() && (!count_ || passed_ < *count_); ++i) {
        const TargetView target = all[i];
        if (!found() && target.name != first_) continue;
        found_ = true;
        HMMJIT_ASSIGN(const auto checked, copies.of(all, i, alphabet_));
        block.begin_target(target.name, target.accession, target.description);
        block.append(checked);
        block.end_target();
        ++passed_;
      }
      if (block.size() > 0) return true;
    }
    return false;
  }
  Status rewind() override {
    found_ = false;
    passed_ = 0;
    return source_->rewind();
  }
  bool rewindable() const override { return source_->rewindable(); }
  bool decode_ahead() override { return source_->decode_ahead(); }
  bool compressed() const override { return source_->compressed(); }
  void limit_targets(std::uint64_t residues) override { source_->limit_targets(residues); }
  std::uint64_t bytes_read() const override { return source_->bytes_read(); }
  std::uint64_t bytes_total() const override { return source_->bytes_total(); }

 private:
  bool found() const { return first_.empty() || found_; }

  std::unique_ptr<TargetSource> source_;
  const Alphabet& alphabet_;
  std::string first_;
  std::optional<std::uint64_t> count_;
  bool found_ = false;
  std::uint64_t passed_ = 0;
};

std::unexpected<Error> spool_error(const char* action, int error) {
  return fail(
      ErrorCode::kOutput,
      std::string("cannot ") + action + " the temporary target file: " + std::strerror(error), {},
      "set TMPDIR to a folder with free space, or raise --mem");
}

// Spool record of a block: fixed header, then per target four lengths and the bytes.
struct BlockHeader {
  std::uint64_t first_index, targets, bytes;
};
struct TargetHeader {
  std::uint32_t residues, name, accession, description;
};

}  // namespace

std::unique_ptr<TargetSource> restrict_targets(std::unique_ptr<TargetSource> source,
                                               const Alphabet& alphabet, std::string first,
                                               std::optional<std::uint64_t> count) {
  return std::make_unique<RestrictedTargets>(std::move(source), alphabet, std::move(first), count);
}

Result<std::unique_ptr<BlockSpool>> BlockSpool::create() {
  const char* folder = std::getenv("TMPDIR");
  std::string name = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") +
                     "/hmmjit-targets-XXXXXX";
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) return spool_error("create", errno);
  ::unlink(name.c_str());
  return std::unique_ptr<BlockSpool>(new BlockSpool(descriptor));
}

BlockSpool::~BlockSpool() { ::close(descriptor_); }

Status BlockSpool::append(const TargetBlock& block) {
  std::string body;
  body.reserve(block.bytes());
  const auto put = [&](const void* data, std::size_t size) {
    body.append(static_cast<const char*>(data), size);
  };
  for (std::size_t i = 0; i < block.size(); ++i) {
    const TargetView target = block[i];
    const TargetHeader header{static_cast<std::uint32_t>(target.residues.size()),
                              static_cast<std::uint32_t>(target.name.size()),
                              static_cast<std::uint32_t>(target.accession.size()),
                              static_cast<std::uint32_t>(target.description.size())};
    put(&header, sizeof header);
    put(target.name.data(), target.name.size());
    put(target.accession.data(), target.accession.size());
    put(target.description.data(), target.description.size());
    put(target.residues.data(), target.residues.size());
  }
  const BlockHeader header{block.first_index(), block.size(), body.size()};
  HMMJIT_TRY(write(std::string(reinterpret_cast<const char*>(&header), sizeof header)));
  return write(body);
}

Status BlockSpool::write(const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(end_));
    if (written < 0) {
      if (errno == EINTR) continue;
      return spool_error("write", errno);
    }
    done += static_cast<std::size_t>(written);
    end_ += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<bool> BlockSpool::read(std::string& bytes, std::size_t count) {
  bytes.resize(count);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data() + done, count - done, static_cast<off_t>(position_));
    if (got < 0) {
      if (errno == EINTR) continue;
      return spool_error("read", errno);
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
    position_ += static_cast<std::uint64_t>(got);
  }
  if (done == 0 && count > 0) return false;
  if (done < count) return spool_error("read", EIO);
  return true;
}

Result<bool> BlockSpool::next(TargetBlock& block, std::size_t) {
  std::string bytes;
  HMMJIT_ASSIGN(const bool more, read(bytes, sizeof(BlockHeader)));
  if (!more) return false;
  BlockHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  HMMJIT_TRY(read(bytes, header.bytes));
  block.set_first_index(header.first_index);
  const char* at = bytes.data();
  const auto take = [&at](std::size_t size) {
    const std::string_view text(at, size);
    at += size;
    return text;
  };
  for (std::uint64_t i = 0; i < header.targets; ++i) {
    TargetHeader target;
    std::memcpy(&target, take(sizeof target).data(), sizeof target);
    const auto name = take(target.name);
    const auto accession = take(target.accession);
    const auto description = take(target.description);
    block.begin_target(name, accession, description);
    const auto residues = take(target.residues);
    block.append({reinterpret_cast<const Residue*>(residues.data()), residues.size()});
    block.end_target();
  }
  return true;
}

Status BlockSpool::rewind() {
  position_ = 0;
  return {};
}

}  // namespace hmmjit
