#include "search/spool_run.hpp"

namespace hmmjit {
namespace {

// The least and most that is read of a run at once.
constexpr std::uint64_t kLeastBuffer = 4096, kLargestBuffer = std::uint64_t{1} << 18;

}  // namespace

std::unexpected<Error> damaged_spool_file() {
  return fail(ErrorCode::kOutput, "a temporary file does not hold what was written to it", {},
              "check the disk, or set TMPDIR to another folder");
}

std::uint64_t spool_buffer(std::uint64_t memory, std::size_t runs) {
  return std::clamp<std::uint64_t>(memory / 4 / std::max<std::size_t>(runs, 1), kLeastBuffer,
                                   kLargestBuffer);
}

Result<std::string_view> SpoolRun::peek(std::size_t count) {
  if (bytes_.size() - at_ < count) {
    offset_ += at_;
    at_ = 0;
    const std::uint64_t size =
        std::min<std::uint64_t>(std::max<std::uint64_t>(count, buffer_), end_ - offset_);
    HMMJIT_TRY(file_->read(offset_, size, bytes_));
    if (bytes_.size() < count) return damaged_spool_file();
  }
  return std::string_view(bytes_).substr(at_, count);
}

}  // namespace hmmjit
