// Rows of lanes: the unit of every kernel.
//
// A row is one vector of real parts and one of imaginary parts. Its lanes hold either one amplitude of W samples
// (batch lanes) or the W amplitudes that log2(W) qubits span (amplitude lanes). The vector width is a compile-time
// choice per instruction set (QFLOCK_VECTOR_BYTES), so that one source serves all of them: wider vectors than the
// registers would spill and run tens of times slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#ifndef QFLOCK_VECTOR_BYTES
#error "QFLOCK_VECTOR_BYTES must be set by the build to 16, 32 or 64"
#endif

#define QF_INLINE inline __attribute__((always_inline))

namespace qflock {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int vector_registers = 32;
#else
constexpr int vector_registers = 16;
#endif

// The element that the vector attribute is applied to has to be spelt per type: it does not accept dependent ones.
template <class T> struct VectorOf;
template <> struct VectorOf<float> { typedef float type __attribute__((vector_size(QFLOCK_VECTOR_BYTES))); };
template <> struct VectorOf<double> { typedef double type __attribute__((vector_size(QFLOCK_VECTOR_BYTES))); };

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

template <class T> struct Lanes {
  static constexpr int width = QFLOCK_VECTOR_BYTES / int(sizeof(T));
  static constexpr int qubits = log2_of(width);
  typedef typename VectorOf<T>::type vec;
  struct Row { vec r, i; };

  template <int Mask, size_t... I> static QF_INLINE vec exchange(vec x, std::index_sequence<I...>) {
    return __builtin_shufflevector(x, x, int(I ^ size_t(Mask))...);
  }
  // The lane l of the result is lane l ^ Mask of x.
  template <int Mask> static QF_INLINE vec exchange(vec x) {
    if constexpr (Mask == 0) return x;
    else return exchange<Mask>(x, std::make_index_sequence<size_t(width)>{});
  }
  template <int Mask> static QF_INLINE Row exchange(const Row& x) { return {exchange<Mask>(x.r), exchange<Mask>(x.i)}; }

  // Lane l of row j becomes lane j of row l: swaps one bit of the lane number with the same bit of the row number at a time.
  static QF_INLINE void transpose(vec* x) { swap_bits<width / 2>(x, std::make_index_sequence<size_t(width)>{}); }

  // The same as `exchange` for a mask that is known at run time only, one bit after the other.
  static QF_INLINE vec exchange_at_run_time(vec x, unsigned mask) {
    if constexpr (width > 1) { if (mask & 1) x = exchange<1>(x); }
    if constexpr (width > 2) { if (mask & 2) x = exchange<2>(x); }
    if constexpr (width > 4) { if (mask & 4) x = exchange<4>(x); }
    if constexpr (width > 8) { if (mask & 8) x = exchange<8>(x); }
    return x;
  }
  static QF_INLINE Row exchange_at_run_time(const Row& x, unsigned mask) {
    return {exchange_at_run_time(x.r, mask), exchange_at_run_time(x.i, mask)};
  }

 private:
  template <int Bit, size_t... I> static QF_INLINE void swap_bits(vec* x, std::index_sequence<I...> lanes) {
    if constexpr (Bit > 0) {
      for (int j = 0; j < width; j++) {
        if (j & Bit) continue;
        const vec a = x[j], b = x[j | Bit];
        x[j] = __builtin_shufflevector(a, b, int(I & Bit ? width + (I ^ Bit) : I)...);
        x[j | Bit] = __builtin_shufflevector(a, b, int(I & Bit ? width + I : I ^ Bit)...);
      }
      swap_bits<Bit / 2>(x, lanes);
    }
  }
};

}  // namespace qflock
