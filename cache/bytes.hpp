// Little-endian fields in byte strings; unaligned, bounds-checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace hmmjit::cache {

template <typename T>
void put(std::string& out, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (unsigned i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(value >> (8 * i))));
  }
}

/// A cursor that never passes the end: a read that would do so returns false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  bool get(T& value) {
    static_assert(std::is_unsigned_v<T>);
    if (rest_.size() < sizeof(T)) return false;
    value = 0;
    for (unsigned i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(
          value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(rest_[i])) << (8 * i)));
    }
    rest_.remove_prefix(sizeof(T));
    return true;
  }

  std::optional<std::string_view> take(std::uint64_t length) {
    if (length > rest_.size()) return std::nullopt;
    std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  bool at_end() const { return rest_.empty(); }
  std::uint64_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
};

}  // namespace hmmjit::cache
