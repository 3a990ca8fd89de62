// Grow-only, 64-byte aligned storage for matrices and tables.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace hmmjit {

/// Size of the processor's large pages, in bytes.
inline constexpr std::size_t kLargePage = std::size_t{1} << 21;

/// The address sanitizer only finds errors around heap blocks.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

/// Ends a mapping of `size` bytes.
struct Unmap {
  std::size_t size = 0;
  void operator()(const void* pages) const { ::munmap(const_cast<void*>(pages), size); }
};

/// Rounds up to whole system pages.
inline std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// Maps `bytes` (whole pages) of zeros, aligned to a large page and backed by large pages if the
/// system has any. Null if there is no memory. Release with munmap.
inline void* map_large_pages(std::size_t bytes) noexcept {
  const std::size_t mapped = bytes + kLargePage;
  if (mapped < bytes) return nullptr;
  void* const pages =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(pages);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(pages) % kLargePage;
  if (before > 0) ::munmap(begin, before);
  char* const first = begin + before;
  ::munmap(first + bytes, kLargePage - before);
  ::madvise(first, bytes, MADV_HUGEPAGE);
  return first;
}

/// Uninitialised storage of trivially copyable elements. `ensure` may discard the contents.
/// Throws std::bad_alloc.
template <typename T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t count) { ensure(count); }
  ~AlignedArray() { release(); }
  AlignedArray(AlignedArray&& other) noexcept { *this = std::move(other); }
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }

  /// Makes room for `count` elements; the contents are lost if the storage must grow.
  T* ensure(std::size_t count) {
    // Headroom: slowly growing requests must not reallocate every time.
    if (count > capacity_) allocate(count + count / 4 + 16);
    return data_;
  }
  /// Like ensure, without headroom.
  T* ensure_exactly(std::size_t count) {
    if (count > capacity_) allocate(count);
    return data_;
  }
  /// Like ensure, keeping the first `kept` elements.
  T* grow(std::size_t count, std::size_t kept) {
    if (count > capacity_) {
      AlignedArray larger(count);
      if (kept > 0) std::memcpy(larger.data_, data_, kept * sizeof(T));
      *this = std::move(larger);
    }
    return data_;
  }
  void zero(std::size_t count) { std::memset(ensure(count), 0, count * sizeof(T)); }
  /// Frees the memory.
  void release() {
    if (data_ != nullptr && mapped_ > 0) {
      ::munmap(data_, mapped_);
    } else if (data_ != nullptr) {
      ::operator delete(data_, kAlignment);
    }
    data_ = nullptr;
    capacity_ = 0;
    mapped_ = 0;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::align_val_t kAlignment{64};

  void allocate(std::size_t count) {
    release();
    const std::size_t bytes = count * sizeof(T);
    // A traceback steps through a matrix by more than a page at a time: with small pages every step
    // would miss the TLB. An array of more than half a large page gets a whole one: one page fault
    // instead of hundreds. On the heap, such arrays would leave unusable gaps.
    if (bytes > kLargePage / 2 && !kAddressSanitizer) {
      const std::size_t mapped = std::max(kLargePage, whole_pages(bytes));
      data_ = static_cast<T*>(map_large_pages(mapped));
      if (data_ == nullptr) throw std::bad_alloc();
      mapped_ = mapped;
    } else {
      data_ = static_cast<T*>(::operator new(bytes, kAlignment));
    }
    capacity_ = count;
  }

  T* data_ = nullptr;
  std::size_t capacity_ = 0;
  /// size of the array's own mapping in bytes; 0 if it lies on the heap
  std::size_t mapped_ = 0;
};

/// Zero-initialised storage. Only written pages take memory. Throws std::bad_alloc.
template <typename T>
class ZeroPages {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ZeroPages(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    // A single value would occupy a whole large page.
    ::madvise(pages, bytes, MADV_NOHUGEPAGE);
    data_ = {static_cast<T*>(pages), Unmap{bytes}};
  }

  T* data() { return data_.get(); }

 private:
  std::unique_ptr<T, Unmap> data_;
};

}  // namespace hmmjit
