#include "server_wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace hmmjit::tools {

std::string frame_head(nlohmann::json head, std::uint64_t bytes) {
  if (bytes > 0) head["bytes"] = bytes;
  // File names may have any bytes.
  return head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string percent_encoded(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    const bool plain = code > 0x20 && code < 0x7f && c != '%' && c != '+';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", code);
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::sscanf(std::string(text.substr(i + 1, 2)).c_str(), "%2x", &code) == 1) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

Status FrameReader::feed(std::string_view bytes) {
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  const auto malformed = [] { return fail(ErrorCode::kInput, "not a sequence of frames"); };
  while (!bytes.empty()) {
    if (left_ > 0) {
      const auto piece = bytes.substr(0, std::min<std::uint64_t>(left_, bytes.size()));
      left_ -= piece.size();
      bytes.remove_prefix(piece.size());
      HMMJIT_TRY(on_bytes_(piece));
      continue;
    }
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > kLongest) return malformed();
    if (end == bytes.npos) return {};
    bytes.remove_prefix(end + 1);
    const nlohmann::json head = nlohmann::json::parse(line_, nullptr, false);
    line_.clear();
    if (!head.is_object()) return malformed();
    if (const auto found = head.find("bytes"); found != head.end()) {
      if (!found->is_number_unsigned()) return malformed();
      left_ = found->get<std::uint64_t>();
    }
    HMMJIT_TRY(on_head_(head));
  }
  return {};
}

}  // namespace hmmjit::tools
