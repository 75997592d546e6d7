// State buffers: aligned to a row, on huge pages where the kernel gives them, kept between calls while small.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace qflock {

class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  template <class Row> Row* rows(size_t count) {
    const size_t bytes = count * sizeof(Row);
    if (bytes > size_) {
      std::free(data_);
      data_ = nullptr;
      size_ = 0;
      const size_t alignment = bytes >= huge ? huge : size_t(64);
      const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
      data_ = std::aligned_alloc(alignment, rounded);
      if (data_ == nullptr) throw std::bad_alloc();
      size_ = rounded;
#if defined(__linux__)
      if (bytes >= huge) madvise(data_, rounded, MADV_HUGEPAGE);
#endif
    }
    return static_cast<Row*>(data_);
  }
  template <class Row> Row* get() const { return static_cast<Row*>(data_); }
  // A large buffer would pin memory that the next call may not need.
  void release_if_large() {
    if (size_ <= kept) return;
    std::free(data_);
    data_ = nullptr;
    size_ = 0;
  }

 private:
  static constexpr size_t huge = size_t(1) << 21;
  static constexpr size_t kept = size_t(1) << 27;
  void* data_ = nullptr;
  size_t size_ = 0;
};

// Scratch of one thread. Index by purpose, so that nested uses never share a buffer.
struct Workspace {
  Buffer psi, lambda, sample, slice_psi, slice_lambda;
  static Workspace& of_this_thread() {
    static thread_local Workspace workspace;
    return workspace;
  }
};

struct ReleaseLarge {
  Workspace& w;
  ~ReleaseLarge() {
    w.psi.release_if_large();
    w.lambda.release_if_large();
    w.sample.release_if_large();
  }
};

}  // namespace qflock
