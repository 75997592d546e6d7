// Reading out a two-qubit Hermitian matrix H: its expectation value and, for gradients, what it adds to the co-state.
//
// e[lane] += Re <psi|H|psi>, lambda += w H psi, M[c,b] += sum w conj(psi[c]) psi[b], in one pass over the states. M is
// Hermitian; where both qubits are in the row index, only its upper half is gathered.
#pragma once

#include "kernels.h"

namespace qflock {

template <class T> class ReadoutKernel : private Kernel<T> {
  using K = Kernel<T>;

 public:
  using L = Lanes<T>;
  using vec = typename L::vec;
  using Row = typename L::Row;
  static constexpr int width = L::width;

  // weight holds one w per lane; without lambda only e is added to. e: (width) doubles; M: 16 complex doubles.
  static void run(const Row* psi, Row* lambda, ptrdiff_t rows, int lane_bits, const Placement& at, const Matrix<T>& h,
                  const vec& weight, double* e, std::complex<double>* M) {
    if (lambda) pair<true>(psi, lambda, rows, lane_bits, at, h, weight, e, M);
    else pair<false>(psi, nullptr, rows, lane_bits, at, h, weight, e, M);
  }

 private:
  template <bool Gradient>
  static void pair(const Row* s, Row* t, ptrdiff_t rows, int lane_bits, const Placement& at, const Matrix<T>& h,
                   const vec& w, double* e, std::complex<double>* M) {
    const int a = at.bits[0], b = at.bits[1];  // a < b
    if (a >= lane_bits) return between<Gradient>(s, t, rows, a - lane_bits, b - lane_bits, h, w, e, M);
    if (b >= lane_bits) {
      switch (a) {
        case 0: return mixed<Gradient, 0>(s, t, rows, b - lane_bits, h, w, e, M);
        case 1: return mixed<Gradient, 1>(s, t, rows, b - lane_bits, h, w, e, M);
        case 2: return mixed<Gradient, 2>(s, t, rows, b - lane_bits, h, w, e, M);
        default: return mixed<Gradient, 3>(s, t, rows, b - lane_bits, h, w, e, M);
      }
    }
    switch (a * 4 + b) {
      case 0 * 4 + 1: return inside<Gradient, 0, 1>(s, t, rows, h, w, e, M);
      case 0 * 4 + 2: return inside<Gradient, 0, 2>(s, t, rows, h, w, e, M);
      case 0 * 4 + 3: return inside<Gradient, 0, 3>(s, t, rows, h, w, e, M);
      case 1 * 4 + 2: return inside<Gradient, 1, 2>(s, t, rows, h, w, e, M);
      case 1 * 4 + 3: return inside<Gradient, 1, 3>(s, t, rows, h, w, e, M);
      default: return inside<Gradient, 2, 3>(s, t, rows, h, w, e, M);
    }
  }

  static QF_INLINE vec overlap(const Row& x, const Row& y) { return x.r * y.r + x.i * y.i; }
  static QF_INLINE Row weighted(const vec& w, const Row& x) { return {w * x.r, w * x.i}; }
  static QF_INLINE void add(Row& t, const vec& w, const Row& y) { t.r += w * y.r; t.i += w * y.i; }
  static void add_lanes(const vec& sum, double* e) { for (int l = 0; l < width; l++) e[l] += double(sum[l]); }

  template <bool Gradient>
  static void between(const Row* __restrict s, Row* __restrict t, ptrdiff_t rows, int p, int q, const Matrix<T>& h,
                      const vec& w, double* e, std::complex<double>* M) {
    const ptrdiff_t P = ptrdiff_t(1) << p, Q = ptrdiff_t(1) << q;
    T hr[16], hi[16];
    for (int k = 0; k < 16; k++) { hr[k] = h.re[k]; hi[k] = h.im[k]; }
    Row g[16]{};
    vec sum{};
    for (ptrdiff_t a = 0; a < rows; a += 2 * Q) {
      vec middle{};  // sums of sums, so that rounding errors do not grow with the number of rows
      for (ptrdiff_t b = a; b < a + Q; b += 2 * P) {
        vec inner{};
        for (ptrdiff_t i = b; i < b + P; i++) {
          const ptrdiff_t at[4] = {i, i + P, i + Q, i + P + Q};
          Row x[4];
          #pragma GCC unroll 4
          for (int k = 0; k < 4; k++) x[k] = s[at[k]];
          #pragma GCC unroll 4
          for (int r = 0; r < 4; r++) {
            Row y;
            K::template times<Shape::dense, 1, 4>(hr + 4 * r, hi + 4 * r, x, &y);
            inner += overlap(x[r], y);
            if constexpr (Gradient) {
              add(t[at[r]], w, y);
              const Row l = weighted(w, x[r]);
              #pragma GCC unroll 4
              for (int k = r; k < 4; k++) K::template accumulate<Shape::dense>(g[4 * r + k], l, x[k]);
            }
          }
        }
        middle += inner;
      }
      sum += middle;
    }
    add_lanes(sum, e);
    if constexpr (Gradient)
      for (int r = 0; r < 4; r++)
        for (int k = r; k < 4; k++) {
          const std::complex<double> z(K::total(g[4 * r + k].r), K::total(g[4 * r + k].i));
          M[4 * r + k] += z;
          if (k > r) M[4 * k + r] += std::conj(z);
        }
  }

  template <bool Gradient, int Lane>
  static void mixed(const Row* __restrict s, Row* __restrict t, ptrdiff_t rows, int row, const Matrix<T>& h, const vec& w,
                    double* e, std::complex<double>* M) {
    if constexpr (Lane < L::qubits) {
      vec cr[8]{}, ci[8]{};
      for (int k = 0; k < 8; k++)
        for (int l = 0; l < width; l++) {
          cr[k][l] = h.re[K::template mixed_entry<Lane>(k, l)];
          ci[k][l] = h.im[K::template mixed_entry<Lane>(k, l)];
        }
      Row g[8]{};
      vec sum{};
      const ptrdiff_t P = ptrdiff_t(1) << row;
      for (ptrdiff_t a = 0; a < rows; a += 2 * P) {
        vec inner{};
        for (ptrdiff_t i = a; i < a + P; i++) {
          Row x[4], y[2];
          K::template spread<Lane>(s[i], s[i + P], x);
          K::template times<Shape::dense, 2, 4>(cr, ci, x, y);
          inner += overlap(x[0], y[0]) + overlap(x[2], y[1]);
          if constexpr (Gradient) {
            add(t[i], w, y[0]);
            add(t[i + P], w, y[1]);
            const Row l[2] = {weighted(w, x[0]), weighted(w, x[2])};
            K::template gather<Shape::dense, 2, 4>(g, l, x);
          }
        }
        sum += inner;
      }
      add_lanes(sum, e);
      if constexpr (Gradient)
        for (int k = 0; k < 8; k++)
          for (int l = 0; l < width; l++)
            M[K::template mixed_entry<Lane>(k, l)] += std::complex<double>(g[k].r[l], g[k].i[l]);
    }
  }

  template <bool Gradient, int A, int B>
  static void inside(const Row* __restrict s, Row* __restrict t, ptrdiff_t rows, const Matrix<T>& h, const vec& w,
                     double* e, std::complex<double>* M) {
    if constexpr (B < L::qubits) {
      vec cr[4]{}, ci[4]{};
      for (int m = 0; m < 4; m++)
        for (int l = 0; l < width; l++) {
          cr[m][l] = h.re[K::template inside_entry<A, B>(m, l)];
          ci[m][l] = h.im[K::template inside_entry<A, B>(m, l)];
        }
      Row g[4]{};
      constexpr ptrdiff_t chunk = 256;
      for (ptrdiff_t from = 0; from < rows; from += chunk) {
        vec sum{};
        for (ptrdiff_t i = from; i < std::min(rows, from + chunk); i++) {
          Row x[4], y;
          K::template spread<A, B>(s[i], x);
          K::template times<Shape::dense, 1, 4>(cr, ci, x, &y);
          sum += overlap(x[0], y);
          if constexpr (Gradient) {
            add(t[i], w, y);
            const Row l = weighted(w, x[0]);
            K::template gather<Shape::dense, 1, 4>(g, &l, x);
          }
        }
        add_lanes(sum, e);
      }
      if constexpr (Gradient)
        for (int m = 0; m < 4; m++)
          for (int l = 0; l < width; l++)
            M[K::template inside_entry<A, B>(m, l)] += std::complex<double>(g[m].r[l], g[m].i[l]);
    }
  }
};

}  // namespace qflock
