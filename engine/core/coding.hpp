// Encodes numbers and text as bytes, for part files (docs/part-format.md), spilled hits and cached
// kernels (docs/cache-format.md).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace hmmjit {

// Numbers are stored in native byte order; every supported machine is little-endian.
static_assert(std::endian::native == std::endian::little);

/// Unsigned LEB128: base 128, lowest digit first, the top bit set in all bytes but the last.
inline void put_count(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

/// The bytes of a number or plain struct.
template <typename T>
std::string_view bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <typename T>
void put_bytes(std::string& out, const T& value) {
  out += bytes_of(value);
}

inline void put_text(std::string& out, std::string_view text) {
  put_count(out, text.size());
  out += text;
}

/// Reads values from the front of a byte string. After a value that does not fit, `ok` is false and
/// all further values are zero or empty.
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
  std::string_view text() { return take(count()); }
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view found = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return found;
  }

  bool ok() const { return ok_; }
  /// Declares the values read so far malformed.
  void fail() { ok_ = false; }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

// A "coder", a template over FieldWriter and FieldReader, lists the fields of a record once for
// writing and reading.

class FieldWriter {
 public:
  static constexpr bool kReads = false;
  explicit FieldWriter(std::string& out) : out_(out) {}

  template <typename Number>
  void count(const Number& value) {
    put_count(out_, static_cast<std::uint64_t>(value));
  }
  template <typename T>
  void bytes(const T& value) {
    put_bytes(out_, value);
  }
  void text(const std::string& value) { put_text(out_, value); }
  void optional_text(const std::optional<std::string>& value) {
    count(value.has_value());
    if (value) text(*value);
  }

 private:
  std::string& out_;
};

class FieldReader {
 public:
  static constexpr bool kReads = true;
  explicit FieldReader(Decoder& decoder) : decoder_(decoder) {}

  template <typename Number>
  void count(Number& value) {
    value = decoder_.count_up_to<Number>(std::numeric_limits<Number>::max());
  }
  template <typename T>
  void bytes(T& value) {
    value = decoder_.bytes<T>();
  }
  void text(std::string& value) { value = decoder_.text(); }
  void optional_text(std::optional<std::string>& value) {
    value.reset();
    if (decoder_.count_up_to<bool>(1)) text(value.emplace());
  }
  /// True if `count` records of at least `least` bytes each may follow. Call it before a resize: a
  /// damaged count must not set the size of an allocation.
  bool fits(std::uint64_t count, std::uint64_t least) {
    if (!decoder_.ok() || count > decoder_.left() / least) decoder_.fail();
    return decoder_.ok();
  }
  bool ok() const { return decoder_.ok(); }
  void fail() { decoder_.fail(); }

 private:
  Decoder& decoder_;
};

}  // namespace hmmjit
