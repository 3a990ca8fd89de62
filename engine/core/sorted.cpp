#include "core/sorted.hpp"

namespace hmmjit {

std::unexpected<Error> damaged_spool_file() {
  return fail(ErrorCode::kOutput, "a temporary file has changed or lost data", {},
              "check the disk, or set TMPDIR to another folder");
}

Status SpoolRun::append(SpoolFile& file, std::string_view record) {
  const std::uint64_t size = record.size();
  HMMJIT_TRY(file.append({reinterpret_cast<const char*>(&size), sizeof size}));
  return file.append(record);
}

Result<bool> SpoolRun::next(std::string_view& record) {
  if (offset_ + at_ == end_) {
    bytes_ = {};
    offset_ = end_;
    at_ = 0;
    return false;
  }
  std::uint64_t size = 0;
  HMMJIT_ASSIGN(const std::string_view head, take(sizeof size));
  std::memcpy(&size, head.data(), sizeof size);
  HMMJIT_ASSIGN(record, take(size));
  return true;
}

Result<std::string_view> SpoolRun::take(std::uint64_t count) {
  if (bytes_.size() - at_ < count) {
    offset_ += std::exchange(at_, 0);
    const std::uint64_t size = std::min(std::max(count, buffer_), end_ - offset_);
    HMMJIT_TRY(file_->read(offset_, size, bytes_));
    if (bytes_.size() < count) return damaged_spool_file();
  }
  return std::string_view(bytes_).substr(std::exchange(at_, at_ + count), count);
}

}  // namespace hmmjit
