// Numbers and texts as bytes, for part files (docs/part-format.md) and for hits spilled to disk.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace hmmjit {

// Numbers are stored as the machine has them; every supported machine is little-endian.
static_assert(std::endian::native == std::endian::little);

/// Unsigned, seven bits a byte from the lowest on, the top bit of all bytes but the last set.
inline void put_count(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

/// The bytes of a number or of a plain struct.
template <typename T>
void put_bytes(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline void put_text(std::string& out, std::string_view text) {
  put_count(out, text.size());
  out += text;
}

/// Takes values from the front of bytes. After a value that does not fit, `ok` stays false and all
/// further values are zeros and empty texts.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t count() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      if (shift == 63 && byte > 1) break;
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  /// A count that must be at most `limit`.
  template <typename Number>
  Number count_up_to(std::uint64_t limit) {
    const std::uint64_t value = count();
    if (value <= limit) return static_cast<Number>(value);
    ok_ = false;
    return {};
  }
  int integer() { return count_up_to<int>(0x7fffffff); }
  template <typename T>
  T bytes() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (bytes_.size() < sizeof value) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view text() {
    const std::uint64_t size = count();
    if (size > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view found = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return found;
  }

  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace hmmjit
