// Grow-only, 64-byte aligned storage for matrices and tables.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace hmmjit {

/// Uninitialised storage of trivially copyable elements. `ensure` may discard the contents.
/// Throws std::bad_alloc.
template <typename T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t count) { ensure(count); }
  ~AlignedArray() { release(); }
  AlignedArray(AlignedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)),
        large_(std::exchange(other.large_, false)) {}
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(large_, other.large_);
    return *this;
  }

  /// Room for `count` elements; contents are lost when the storage has to grow.
  T* ensure(std::size_t count) {
    // Headroom, so that slowly growing requests do not reallocate every time.
    if (count > capacity_) allocate(count + count / 4 + 16);
    return data_;
  }
  /// As ensure, without headroom.
  T* ensure_exactly(std::size_t count) {
    if (count > capacity_) allocate(count);
    return data_;
  }
  /// As ensure, keeping the first `kept` elements.
  T* grow(std::size_t count, std::size_t kept) {
    if (count > capacity_) {
      AlignedArray larger(count);
      if (kept > 0) std::memcpy(larger.data_, data_, kept * sizeof(T));
      *this = std::move(larger);
    }
    return data_;
  }
  void zero(std::size_t count) { std::memset(ensure(count), 0, count * sizeof(T)); }
  /// Gives the memory back.
  void release() {
    if (data_) ::operator delete(data_, alignment());
    data_ = nullptr;
    capacity_ = 0;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t kLargePage = std::size_t{1} << 21;
  void allocate(std::size_t count) {
    release();
    std::size_t bytes = count * sizeof(T);
    // A traceback steps over a matrix by more than a page at a time: with small pages every
    // step would miss the translation buffer.
    // More than half of one is worth a whole one, which takes one fault instead of hundreds.
    large_ = bytes > kLargePage / 2;
    if (large_) bytes = std::max(bytes, kLargePage);
    data_ = static_cast<T*>(::operator new(bytes, alignment()));
    if (large_) ::madvise(data_, bytes, MADV_HUGEPAGE);
    capacity_ = count;
  }
  std::align_val_t alignment() const { return std::align_val_t{large_ ? kLargePage : 64}; }

  T* data_ = nullptr;
  std::size_t capacity_ = 0;
  bool large_ = false;
};

/// Zeros of which only the pages that are written to take memory. Throws std::bad_alloc.
template <typename T>
class ZeroPages {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ZeroPages(std::size_t count) : bytes_(count * sizeof(T)) {
    void* pages = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(pages);
    // A large page would take its whole size for one value.
    ::madvise(data_, bytes_, MADV_NOHUGEPAGE);
  }
  ~ZeroPages() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  ZeroPages(ZeroPages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  ZeroPages& operator=(ZeroPages&&) = delete;

  T* data() { return data_; }

 private:
  T* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace hmmjit
