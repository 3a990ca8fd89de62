// Requests and answers consist of frames: a line of JSON, then as many bytes as it states.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace hmmjit::tools {

/// The line of a frame with `bytes` bytes.
std::string frame_head(nlohmann::json head, std::uint64_t bytes = 0);

/// Converts any bytes to ASCII text ("%FF"), and back; '+' means a blank.
std::string percent_encoded(std::string_view bytes);
std::string percent_decoded(std::string_view text);

/// Parses frames as their bytes arrive.
class FrameReader {
 public:
  /// `on_head` receives each line, `on_bytes` the bytes after it, in pieces.
  FrameReader(std::function<Status(const nlohmann::json&)> on_head,
              std::function<Status(std::string_view)> on_bytes)
      : on_head_(std::move(on_head)), on_bytes_(std::move(on_bytes)) {}
  /// Fails with kInput for a malformed line, or as the functions do.
  Status feed(std::string_view bytes);
  /// True if the last frame is complete.
  bool complete() const { return left_ == 0 && line_.empty(); }

 private:
  std::function<Status(const nlohmann::json&)> on_head_;
  std::function<Status(std::string_view)> on_bytes_;
  std::string line_;
  std::uint64_t left_ = 0;
};

}  // namespace hmmjit::tools
