// The arrays that one model's launches read, in one block of memory, so that a single copy
// transfers them to a device. On the host the same block serves kernels in lockstep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace hmmjit::layout {

/// Alignment of arrays, equal to that of device allocations.
inline constexpr std::size_t kArrayAlignment = 256;
constexpr std::size_t aligned_size(std::size_t bytes) {
  return (bytes + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
}

/// An array's position in its block.
template <typename T>
struct Placed {
  std::size_t offset = 0;
  bool present = false;
  /// The array's address if the block starts at `base`; null if it was not placed.
  T* in(std::uintptr_t base) const {
    return present ? reinterpret_cast<T*>(base + offset) : nullptr;
  }
};

class TableBlock {
 public:
  /// `reserved`: bytes before the arrays, for the caller's use.
  explicit TableBlock(std::size_t reserved = 0) : bytes_(aligned_size(reserved)) {}

  /// The array must outlive copy_to().
  template <typename T>
  Placed<T> add(const std::vector<T>& values) {
    const Placed<T> out{bytes_, true};
    pieces_.push_back({bytes_, values.size() * sizeof(T), values.data()});
    bytes_ += aligned_size(values.size() * sizeof(T));
    return out;
  }
  /// Size of the whole block in bytes.
  std::size_t bytes() const { return bytes_; }
  /// Copies the arrays; the reserved bytes are left unchanged.
  void copy_to(std::byte* block) const {
    for (const Piece& piece : pieces_) {
      if (piece.bytes > 0) std::memcpy(block + piece.offset, piece.data, piece.bytes);
    }
  }

 private:
  struct Piece {
    std::size_t offset, bytes;
    const void* data;
  };
  std::vector<Piece> pieces_;
  std::size_t bytes_;
};

}  // namespace hmmjit::layout
