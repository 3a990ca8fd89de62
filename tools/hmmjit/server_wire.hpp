// Frames, of which requests and answers consist: a line of JSON, and the bytes whose number it
// says.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace hmmjit::tools {

/// The line of a frame that `bytes` bytes follow.
std::string frame_head(nlohmann::json head, std::uint64_t bytes = 0);

/// Any bytes as ASCII text ("%FF"), and back: '+' stands for a blank.
std::string percent_encoded(std::string_view bytes);
std::string percent_decoded(std::string_view text);

/// Takes frames apart as their bytes arrive.
class FrameReader {
 public:
  /// `on_head` gets each line, `on_bytes` the bytes that follow it in pieces.
  FrameReader(std::function<Status(const nlohmann::json&)> on_head,
              std::function<Status(std::string_view)> on_bytes)
      : on_head_(std::move(on_head)), on_bytes_(std::move(on_bytes)) {}
  /// Fails with kInput where a line is none of a frame, or as one of the functions does.
  Status feed(std::string_view bytes);
  /// Whether the last frame is complete.
  bool complete() const { return left_ == 0 && line_.empty(); }

 private:
  std::function<Status(const nlohmann::json&)> on_head_;
  std::function<Status(std::string_view)> on_bytes_;
  std::string line_;
  std::uint64_t left_ = 0;
};

}  // namespace hmmjit::tools
