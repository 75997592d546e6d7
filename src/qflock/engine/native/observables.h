// Pauli strings: expectation values, and the co-state lambda = sum_o weight_o P_o psi.
//
// A Pauli string is P|j> = i^nY (-1)^{|j & z|} |j ^ x>. Terms with the same x share the products conj(psi_i) psi_{i^x};
// a term then adds them up with the signs of its z.
#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <vector>

#include "lanes.h"

namespace qflock {

struct PauliTerm {
  uint64_t z = 0;
  int y_count = 0;
  int observable = 0;
};

struct Observables {
  int count = 0;
  std::map<uint64_t, std::vector<PauliTerm>> by_flip;  // key: x
};

template <class T> class Measure {
 public:
  using L = Lanes<T>;
  using vec = typename L::vec;
  using Row = typename L::Row;
  static constexpr int width = L::width;

  // values[o * width + lane] += the rows [begin, end)'s share; with amplitude lanes the caller adds the lanes up.
  static void expectations(const Observables& obs, const Row* psi, ptrdiff_t begin, ptrdiff_t end, int lane_bits,
                           double* values) {
    for (const auto& [x, terms] : obs.by_flip) {
      const uint64_t flip = x >> lane_bits;
      const unsigned lane_flip = unsigned(x & ((uint64_t(1) << lane_bits) - 1));
      std::vector<Row> sums(terms.size());
      for (ptrdiff_t from = begin; from < end; from += chunk) {
        const ptrdiff_t to = std::min(end, from + chunk);
        for (auto& s : sums) s = Row{};
        for (ptrdiff_t i = from; i < to; i++) {
          const Row a = psi[i];
          Row product;
          if (x == 0) {
            product = {a.r * a.r + a.i * a.i, vec{}};
          } else {
            const Row b = L::exchange_at_run_time(psi[ptrdiff_t(uint64_t(i) ^ flip)], lane_flip);
            product = {a.r * b.r + a.i * b.i, a.r * b.i - a.i * b.r};
          }
          for (size_t k = 0; k < terms.size(); k++) {
            const bool imaginary = terms[k].y_count & 1;
            const vec& part = imaginary ? product.i : product.r;
            if (odd(uint64_t(i) & (terms[k].z >> lane_bits))) sums[k].r -= part;
            else sums[k].r += part;
          }
        }
        for (size_t k = 0; k < terms.size(); k++) {
          const double scale = (terms[k].y_count & 2) ? -1.0 : 1.0;
          for (int l = 0; l < width; l++)
            values[terms[k].observable * width + l] += scale * lane_sign(terms[k].z, l, lane_bits) * double(sums[k].r[l]);
        }
      }
    }
  }

  // lambda_i = sum over terms, for the rows [begin, end); weights[o * width + lane] is the upstream gradient.
  static void costate(const Observables& obs, const Row* psi, Row* lambda, ptrdiff_t begin, ptrdiff_t end,
                      int lane_bits, const double* weights) {
    for (ptrdiff_t i = begin; i < end; i++) lambda[i] = Row{};
    for (const auto& [x, terms] : obs.by_flip) {
      const uint64_t flip = x >> lane_bits;
      const unsigned lane_flip = unsigned(x & ((uint64_t(1) << lane_bits) - 1));
      std::vector<Row> scaled(terms.size());  // weight * (-i)^nY * lane sign
      for (size_t k = 0; k < terms.size(); k++) {
        scaled[k] = Row{};
        const int turn = terms[k].y_count & 3;
        for (int l = 0; l < width; l++) {
          const T w = T(weights[terms[k].observable * width + l] *
                        lane_sign(terms[k].z, l, lane_bits) * ((turn == 1 || turn == 2) ? -1.0 : 1.0));
          if (turn & 1) scaled[k].i[l] = w;
          else scaled[k].r[l] = w;
        }
      }
      for (ptrdiff_t i = begin; i < end; i++) {
        Row d{};
        for (size_t k = 0; k < terms.size(); k++) {
          if (odd(uint64_t(i) & (terms[k].z >> lane_bits))) { d.r -= scaled[k].r; d.i -= scaled[k].i; }
          else { d.r += scaled[k].r; d.i += scaled[k].i; }
        }
        const Row b = L::exchange_at_run_time(psi[ptrdiff_t(uint64_t(i) ^ flip)], lane_flip);
        lambda[i].r += d.r * b.r; lambda[i].r -= d.i * b.i;
        lambda[i].i += d.r * b.i; lambda[i].i += d.i * b.r;
      }
    }
  }

 private:
  static constexpr ptrdiff_t chunk = 256;  // rows summed in the state's precision before going over to double
  static bool odd(uint64_t x) { return __builtin_parityll(x); }
  static double lane_sign(uint64_t z, int lane, int lane_bits) {
    if (lane_bits == 0) return 1.0;
    return odd(uint64_t(lane) & z & ((uint64_t(1) << lane_bits) - 1)) ? -1.0 : 1.0;
  }
};

}  // namespace qflock
