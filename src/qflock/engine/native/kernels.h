// Applying one block to a run of rows, and its adjoint step.
//
// A block acts on k qubits: some live in the lanes, the others in the row index. Splitting a matrix index a into its
// row part r and its lane part, every case is the same sum over row parts c and lane exchanges m,
//     y_r[lane] = sum_{c,m} coefficient_{r,c,m}[lane] * x_c[lane ^ m],
// with coefficient_{r,c,m}[lane] = U[(r, lane), (c, lane ^ m)]. With no lane qubit the coefficients are scalars.
//
// The adjoint step un-applies the block: psi <- U^+ psi, then G[a,b] += conj(lambda[a]) psi[b], then lambda <- U^+ lambda.
// G is gathered in the same split form and folded back to matrix indices at the end of a run of rows. Where neither state
// is needed any further, M[a,c] = sum conj(lambda[a]) psi[c] is gathered from the states as they are, and
// G[a,b] = sum_c M[a,c] U^+[b,c]: a third of the work.
#pragma once

#include <algorithm>
#include <complex>
#include <vector>

#include "lanes.h"

namespace qflock {

constexpr int max_block_qubits = 10;

enum class Shape : int { dense = 0, real = 1, diagonal = 2 };

// Where a block acts: bits of the amplitude index inside one slice; bit b < Lanes::qubits is a lane bit unless the
// lanes hold samples, when `lane_bits` is 0 and every bit is a row bit.
struct Placement {
  int qubits = 0;
  int bits[max_block_qubits];  // ascending; bits[j] carries bit j of the matrix index (little-endian)
};

template <class T> struct Matrix {  // row-major U (or U^+) in the state's precision
  int dim = 0;
  Shape shape = Shape::dense;
  const T* re = nullptr;
  const T* im = nullptr;
};

template <class T> class Kernel {
 public:
  using L = Lanes<T>;
  using vec = typename L::vec;
  using Row = typename L::Row;
  static constexpr int width = L::width;

  // lane_bits: how many low bits of the amplitude index are lanes (Lanes::qubits, or 0 when lanes hold samples).
  static void apply(Row* s, ptrdiff_t rows, int lane_bits, const Placement& at, const Matrix<T>& u) {
    step<Mode::apply>(s, nullptr, rows, lane_bits, at, u, nullptr);
  }

  // u is U^+. G (dim*dim complex doubles, row-major) is added to when it is not null; `keep` says whether the states
  // are needed any further.
  static void adjoint(Row* psi, Row* lambda, ptrdiff_t rows, int lane_bits, const Placement& at, const Matrix<T>& u,
                      std::complex<double>* G, bool keep) {
    if (G == nullptr) {
      if (!keep) return;
      step<Mode::apply>(psi, nullptr, rows, lane_bits, at, u, nullptr);
      step<Mode::apply>(lambda, nullptr, rows, lane_bits, at, u, nullptr);
    } else if (keep) {
      step<Mode::adjoint>(psi, lambda, rows, lane_bits, at, u, G);
    } else {
      std::vector<std::complex<double>> M(size_t(u.dim) * u.dim);
      step<Mode::gather>(psi, lambda, rows, lane_bits, at, u, M.data());
      for (int a = 0; a < u.dim; a++)
        for (int b = 0; b < u.dim; b++)
          for (int c = 0; c < u.dim; c++)
            G[a * u.dim + b] += M[a * u.dim + c] * std::complex<double>(u.re[b * u.dim + c], u.im[b * u.dim + c]);
    }
  }

 protected:
  enum class Mode { apply, adjoint, gather };

  template <Mode Do>
  static void step(Row* s, Row* t, ptrdiff_t rows, int lane_bits, const Placement& at, const Matrix<T>& u,
                   std::complex<double>* G) {
    if (at.qubits != 2) return general<Do>(s, t, rows, lane_bits, at, u, G);
    switch (u.shape) {
      case Shape::real: return pair<Do, Shape::real>(s, t, rows, lane_bits, at, u, G);
      case Shape::diagonal: return pair<Do, Shape::diagonal>(s, t, rows, lane_bits, at, u, G);
      default: return pair<Do, Shape::dense>(s, t, rows, lane_bits, at, u, G);
    }
  }

  template <Mode Do, Shape S>
  static void pair(Row* s, Row* t, ptrdiff_t rows, int lane_bits, const Placement& at, const Matrix<T>& u,
                   std::complex<double>* G) {
    const int a = at.bits[0], b = at.bits[1];  // a < b
    if (a >= lane_bits) return between<Do, S>(s, t, rows, a - lane_bits, b - lane_bits, u, G);
    if (b >= lane_bits) {
      switch (a) {
        case 0: return mixed<Do, S, 0>(s, t, rows, b - lane_bits, u, G);
        case 1: return mixed<Do, S, 1>(s, t, rows, b - lane_bits, u, G);
        case 2: return mixed<Do, S, 2>(s, t, rows, b - lane_bits, u, G);
        default: return mixed<Do, S, 3>(s, t, rows, b - lane_bits, u, G);
      }
    }
    switch (a * 4 + b) {
      case 0 * 4 + 1: return inside<Do, S, 0, 1>(s, t, rows, u, G);
      case 0 * 4 + 2: return inside<Do, S, 0, 2>(s, t, rows, u, G);
      case 0 * 4 + 3: return inside<Do, S, 0, 3>(s, t, rows, u, G);
      case 1 * 4 + 2: return inside<Do, S, 1, 2>(s, t, rows, u, G);
      case 1 * 4 + 3: return inside<Do, S, 1, 3>(s, t, rows, u, G);
      default: return inside<Do, S, 2, 3>(s, t, rows, u, G);
    }
  }

  static QF_INLINE double total(const vec& x) {
    double sum = 0;
    for (int l = 0; l < width; l++) sum += double(x[l]);
    return sum;
  }

  // g += conj(l) x; of a real block only the real part enters the gradient.
  template <Shape S> static QF_INLINE void accumulate(Row& g, const Row& l, const Row& x) {
    g.r += l.r * x.r; g.r += l.i * x.i;
    if constexpr (S != Shape::real) { g.i += l.r * x.i; g.i -= l.i * x.r; }
  }
  // y = c x, y += c x
  template <Shape S, class C> static QF_INLINE void multiply(Row& y, const C& cr, const C& ci, const Row& x) {
    y.r = cr * x.r; y.i = cr * x.i;
    if constexpr (S != Shape::real) { y.r -= ci * x.i; y.i += ci * x.r; }
  }
  template <Shape S, class C> static QF_INLINE void multiply_add(Row& y, const C& cr, const C& ci, const Row& x) {
    y.r += cr * x.r; y.i += cr * x.i;
    if constexpr (S != Shape::real) { y.r -= ci * x.i; y.i += ci * x.r; }
  }
  // y[r] = sum_k c[r, k] x[k] for n outputs of m terms each; a diagonal block has the terms k = r * m / n alone.
  template <Shape S, int N, int M, class C> static QF_INLINE void times(const C* cr, const C* ci, const Row* x, Row* y) {
    #pragma GCC unroll 4
    for (int r = 0; r < N; r++) {
      if constexpr (S == Shape::diagonal) {
        const int k = r * (M / N);
        multiply<S>(y[r], cr[r * M + k], ci[r * M + k], x[k]);
      } else {
        multiply<S>(y[r], cr[r * M], ci[r * M], x[0]);
        #pragma GCC unroll 3
        for (int k = 1; k < M; k++) multiply_add<S>(y[r], cr[r * M + k], ci[r * M + k], x[k]);
      }
    }
  }
  template <Shape S, int N, int M> static QF_INLINE void gather(Row* g, const Row* l, const Row* x) {
    #pragma GCC unroll 4
    for (int r = 0; r < N; r++) {
      if constexpr (S == Shape::diagonal) {
        accumulate<S>(g[r * M + r * (M / N)], l[r], x[r * (M / N)]);
      } else {
        #pragma GCC unroll 4
        for (int k = 0; k < M; k++) accumulate<S>(g[r * M + k], l[r], x[k]);
      }
    }
  }

  static constexpr ptrdiff_t at_a_time = 16;
  // The adjoint step of one row under a diagonal block, in one pass: there is nothing to compute that would spare registers.
  template <Mode Do, class C>
  static QF_INLINE void diagonal_step(Row& x, Row& l, Row& g, const C& cr, const C& ci) {
    Row y = x;
    if constexpr (Do == Mode::adjoint) { multiply<Shape::diagonal>(y, cr, ci, x); x = y; }
    accumulate<Shape::diagonal>(g, l, y);
    if constexpr (Do == Mode::adjoint) { multiply<Shape::diagonal>(y, cr, ci, l); l = y; }
  }

  // Both qubits in the row index. The rows are taken four by four, some fours at a time: what the passes over them share
  // stays in the first-level cache, and what one pass gathers stays in registers.
  template <Mode Do, Shape S>
  static void between(Row* __restrict s, Row* __restrict t, ptrdiff_t rows, int p, int q, const Matrix<T>& u,
                      std::complex<double>* G) {
    const Fours fours{ptrdiff_t(1) << p, ptrdiff_t(1) << q};
    T ur[16], ui[16];
    for (int k = 0; k < 16; k++) { ur[k] = u.re[k]; ui[k] = u.im[k]; }
    if constexpr (Do == Mode::apply) return apply_fours<S>(s, fours, 0, rows / 4, ur, ui);
    Row g[16]{};
    if constexpr (S == Shape::diagonal) {
      for (ptrdiff_t m = 0; m < rows / 4; m++) {
        #pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
          const ptrdiff_t i = fours.row(fours.first(m), k);
          diagonal_step<Do>(s[i], t[i], g[5 * k], ur[5 * k], ui[5 * k]);
        }
      }
    } else {
      for (ptrdiff_t from = 0; from < rows / 4; from += at_a_time) {
        const ptrdiff_t to = std::min(rows / 4, from + at_a_time);
        if constexpr (Do == Mode::adjoint) apply_fours<S>(s, fours, from, to, ur, ui);
        gather_fours<S, 0, vector_registers / 16>(g, t, s, fours, from, to);
        if constexpr (Do == Mode::adjoint) apply_fours<S>(t, fours, from, to, ur, ui);
      }
    }
    for (int k = 0; k < 16; k++) G[k] += std::complex<double>(total(g[k].r), total(g[k].i));
  }
  // The rows that differ in two bits only: P and Q, the smaller first.
  struct Fours {
    ptrdiff_t P, Q;
    // The first row of the m-th four.
    QF_INLINE ptrdiff_t first(ptrdiff_t m) const {
      const ptrdiff_t low = m & (P - 1), middle = m & (Q / 2 - 1) & ~(P - 1), high = m & ~(Q / 2 - 1);
      return low | middle << 1 | high << 2;
    }
    QF_INLINE ptrdiff_t row(ptrdiff_t first, int k) const { return first + (k & 1 ? P : 0) + (k & 2 ? Q : 0); }
  };
  template <Shape S>
  static QF_INLINE void apply_fours(Row* __restrict s, const Fours& fours, ptrdiff_t from, ptrdiff_t to, const T* ur, const T* ui) {
    for (ptrdiff_t m = from; m < to; m++) {
      const ptrdiff_t i = fours.first(m);
      Row x[4], y[4];
      #pragma GCC unroll 4
      for (int k = 0; k < 4; k++) x[k] = s[fours.row(i, k)];
      times<S, 4, 4>(ur, ui, x, y);
      #pragma GCC unroll 4
      for (int k = 0; k < 4; k++) s[fours.row(i, k)] = y[k];
    }
  }
  // The rows R, R + 1, ... of the matrix, N in each pass.
  template <Shape S, int R, int N>
  static QF_INLINE void gather_fours(Row* to_add, const Row* __restrict lambda, const Row* __restrict psi, const Fours& fours,
                                     ptrdiff_t from, ptrdiff_t to) {
    Row g[4 * N];
    for (int k = 0; k < 4 * N; k++) g[k] = to_add[4 * R + k];
    for (ptrdiff_t m = from; m < to; m++) {
      const ptrdiff_t i = fours.first(m);
      Row l[N];
      #pragma GCC unroll 4
      for (int j = 0; j < N; j++) l[j] = lambda[fours.row(i, R + j)];
      #pragma GCC unroll 4
      for (int k = 0; k < 4; k++) {
        const Row x = psi[fours.row(i, k)];
        #pragma GCC unroll 4
        for (int j = 0; j < N; j++) accumulate<S>(g[4 * j + k], l[j], x);
      }
    }
    for (int k = 0; k < 4 * N; k++) to_add[4 * R + k] = g[k];
    if constexpr (R + N < 4) gather_fours<S, R + N, N>(to_add, lambda, psi, fours, from, to);
  }

  // The first qubit in the lanes (lane bit Lane), the second in the row index.
  template <Mode Do, Shape S, int Lane>
  static void mixed(Row* __restrict s, Row* __restrict t, ptrdiff_t rows, int row, const Matrix<T>& u,
                    std::complex<double>* G) {
    if constexpr (Lane < L::qubits) {
      const auto entry = mixed_entry<Lane>;
      vec cr[8]{}, ci[8]{};
      Row g[8];
      for (int k = 0; k < 8; k++) {
        for (int l = 0; l < width; l++) { cr[k][l] = u.re[entry(k, l)]; ci[k][l] = u.im[entry(k, l)]; }
        g[k] = Row{};
      }
      const Pairs pairs{ptrdiff_t(1) << row};
      if constexpr (Do == Mode::apply) return apply_pairs<S, Lane>(s, pairs, 0, rows / 2, cr, ci);
      if constexpr (S == Shape::diagonal) {
        for (ptrdiff_t m = 0; m < rows / 2; m++) {
          const ptrdiff_t i = pairs.first(m), j = i + pairs.P;
          diagonal_step<Do>(s[i], t[i], g[0], cr[0], ci[0]);
          diagonal_step<Do>(s[j], t[j], g[6], cr[6], ci[6]);
        }
      } else {
        for (ptrdiff_t from = 0; from < rows / 2; from += at_a_time) {
          const ptrdiff_t to = std::min(rows / 2, from + at_a_time);
          if constexpr (Do == Mode::adjoint) apply_pairs<S, Lane>(s, pairs, from, to, cr, ci);
          for (ptrdiff_t m = from; m < to; m++) {
            const ptrdiff_t i = pairs.first(m);
            Row x[4];
            spread<Lane>(s[i], s[i + pairs.P], x);
            const Row l[2] = {t[i], t[i + pairs.P]};
            gather<S, 2, 4>(g, l, x);
          }
          if constexpr (Do == Mode::adjoint) apply_pairs<S, Lane>(t, pairs, from, to, cr, ci);
        }
      }
      for (int k = 0; k < 8; k++)
        for (int l = 0; l < width; l++) G[entry(k, l)] += std::complex<double>(g[k].r[l], g[k].i[l]);
    }
  }
  // The rows that differ in one bit only.
  struct Pairs {
    ptrdiff_t P;
    QF_INLINE ptrdiff_t first(ptrdiff_t m) const { return (m & (P - 1)) | (m & ~(P - 1)) << 1; }
  };
  template <Shape S, int Lane>
  static QF_INLINE void apply_pairs(Row* __restrict s, const Pairs& pairs, ptrdiff_t from, ptrdiff_t to, const vec* cr, const vec* ci) {
    for (ptrdiff_t m = from; m < to; m++) {
      const ptrdiff_t i = pairs.first(m);
      Row x[4], y[2];
      spread<Lane>(s[i], s[i + pairs.P], x);
      times<S, 2, 4>(cr, ci, x, y);
      s[i] = y[0]; s[i + pairs.P] = y[1];
    }
  }
  // The matrix element behind coefficient k = (row part r, row part c, exchanged or not) in a lane.
  template <int Lane> static int mixed_entry(int k, int lane) {
    const int r = k >> 2, c = (k >> 1) & 1, bit = (lane >> Lane) & 1;
    return (r * 2 + bit) * 4 + c * 2 + (bit ^ (k & 1));
  }
  template <int Lane> static QF_INLINE void spread(const Row& x0, const Row& x1, Row* x) {
    x[0] = x0; x[1] = L::template exchange<(1 << Lane)>(x0);
    x[2] = x1; x[3] = L::template exchange<(1 << Lane)>(x1);
  }

  // Both qubits in the lanes.
  template <Mode Do, Shape S, int A, int B>
  static void inside(Row* __restrict s, Row* __restrict t, ptrdiff_t rows, const Matrix<T>& u, std::complex<double>* G) {
    if constexpr (B < L::qubits) {
      const auto entry = inside_entry<A, B>;
      vec cr[4]{}, ci[4]{};
      Row g[4];
      for (int m = 0; m < 4; m++) {
        for (int l = 0; l < width; l++) { cr[m][l] = u.re[entry(m, l)]; ci[m][l] = u.im[entry(m, l)]; }
        g[m] = Row{};
      }
      for (ptrdiff_t i = 0; i < rows; i++) {
        Row x[4], y;
        spread<A, B>(s[i], x);
        if constexpr (Do != Mode::gather) {
          times<S, 1, 4>(cr, ci, x, &y);
          s[i] = y;
        }
        if constexpr (Do != Mode::apply) {
          if constexpr (Do == Mode::adjoint) spread<A, B>(y, x);
          const Row l = t[i];
          gather<S, 1, 4>(g, &l, x);
          if constexpr (Do == Mode::adjoint) {
            spread<A, B>(l, x);
            times<S, 1, 4>(cr, ci, x, &t[i]);
          }
        }
      }
      if constexpr (Do != Mode::apply)
        for (int m = 0; m < 4; m++)
          for (int l = 0; l < width; l++) G[entry(m, l)] += std::complex<double>(g[m].r[l], g[m].i[l]);
    }
  }
  // The matrix element behind coefficient m (which of the two bits are exchanged) in a lane.
  template <int A, int B> static int inside_entry(int m, int lane) {
    const int at = ((lane >> A) & 1) | ((lane >> B) & 1) << 1;
    return at * 4 + (at ^ m);
  }
  template <int A, int B> static QF_INLINE void spread(const Row& v, Row* x) {
    x[0] = v;
    x[1] = L::template exchange<(1 << A)>(v);
    x[2] = L::template exchange<(1 << B)>(v);
    x[3] = L::template exchange<(1 << A | 1 << B)>(v);
  }

  // Any number of qubits anywhere, straight from the formula above.
  template <Mode Do>
  static void general(Row* s, Row* t, ptrdiff_t rows, int lane_bits, const Placement& at, const Matrix<T>& u,
                      std::complex<double>* G) {
    int lane_at[max_block_qubits], row_at[max_block_qubits], in_lanes = 0, in_rows = 0;
    for (int j = 0; j < at.qubits; j++) {
      if (at.bits[j] < lane_bits) lane_at[in_lanes++] = j;
      else row_at[in_rows++] = j;
    }
    const int R = 1 << in_rows, M = 1 << in_lanes;
    const auto spread_index = [](int value, const int* where, int count) {
      int index = 0;
      for (int j = 0; j < count; j++) index |= ((value >> j) & 1) << where[j];
      return index;
    };
    const auto lane_part = [&](int lane) {
      int index = 0;
      for (int j = 0; j < in_lanes; j++) index |= ((lane >> at.bits[lane_at[j]]) & 1) << lane_at[j];
      return index;
    };
    const auto entry = [&](int r, int c, int m, int lane) {
      const int here = lane_part(lane), flip = spread_index(m, lane_at, in_lanes);
      return (spread_index(r, row_at, in_rows) | here) * u.dim + (spread_index(c, row_at, in_rows) | (here ^ flip));
    };
    std::vector<Row> coefficient(size_t(R) * R * M), gathered(Do == Mode::apply ? 0 : coefficient.size(), Row{});
    std::vector<Row> x(size_t(R) * M), y(R), l(R);
    std::vector<unsigned> exchange_mask(M, 0);
    std::vector<ptrdiff_t> offset(R, 0);
    for (int r = 0; r < R; r++)
      for (int j = 0; j < in_rows; j++)
        if (r >> j & 1) offset[r] |= ptrdiff_t(1) << (at.bits[row_at[j]] - lane_bits);
    for (int m = 0; m < M; m++)
      for (int j = 0; j < in_lanes; j++)
        if (m >> j & 1) exchange_mask[m] |= 1u << at.bits[lane_at[j]];
    for (int k = 0; k < R * R * M; k++)
      for (int lane = 0; lane < width; lane++) {
        const int e = entry(k / M / R, k / M % R, k % M, lane_bits ? lane : 0);
        coefficient[k].r[lane] = u.re[e]; coefficient[k].i[lane] = u.im[e];
      }
    const auto load = [&](const Row* from) {
      for (int c = 0; c < R; c++)
        for (int m = 0; m < M; m++) x[c * M + m] = L::exchange_at_run_time(from[c], exchange_mask[m]);
    };
    const auto multiply_rows = [&](Row* to) {
      for (int r = 0; r < R; r++) {
        Row sum{};
        for (int k = 0; k < R * M; k++) 
          multiply_add<Shape::dense>(sum, coefficient[r * R * M + k].r, coefficient[r * R * M + k].i, x[k]);
        to[r] = sum;
      }
    };
    ptrdiff_t covered = offset[R - 1];
    for (ptrdiff_t i = 0; i < rows; i++) {
      if (i & covered) continue;
      for (int r = 0; r < R; r++) y[r] = s[i + offset[r]];
      load(y.data());
      if constexpr (Do != Mode::gather) {
        multiply_rows(y.data());
        for (int r = 0; r < R; r++) s[i + offset[r]] = y[r];
      }
      if constexpr (Do != Mode::apply) {
        if constexpr (Do == Mode::adjoint) load(y.data());
        for (int r = 0; r < R; r++) {
          l[r] = t[i + offset[r]];
          for (int k = 0; k < R * M; k++) accumulate<Shape::dense>(gathered[r * R * M + k], l[r], x[k]);
        }
        if constexpr (Do == Mode::adjoint) {
          load(l.data());
          multiply_rows(y.data());
          for (int r = 0; r < R; r++) t[i + offset[r]] = y[r];
        }
      }
    }
    if constexpr (Do != Mode::apply)
      for (int k = 0; k < R * R * M; k++)
        for (int lane = 0; lane < width; lane++)
          G[entry(k / M / R, k / M % R, k % M, lane_bits ? lane : 0)] +=
              std::complex<double>(gathered[k].r[lane], gathered[k].i[lane]);
  }
};

}  // namespace qflock
