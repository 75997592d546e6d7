// A compiled circuit: templates (products of factors on the same qubits) and blocks (a template at a place).
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels.h"

namespace qflock {

using complexd = std::complex<double>;

// One factor of a template: a fixed matrix, or a rotation sum_j exp(i pi half_turns[j] x) projector_j.
struct Factor {
  int expression = -1;  // index of x, or -1 for a fixed matrix
  std::vector<double> half_turns;
  std::vector<complexd> operators;  // the fixed matrix, or the projectors one after the other
  std::vector<complexd> generator;  // sum_j half_turns[j] projector_j
};

struct Template {
  int dim = 0;
  Shape shape = Shape::dense;
  bool trainable = false;
  std::vector<Factor> factors;  // first applied first
  size_t offset = 0;            // of this template's matrix in a buffer that holds all of them
};

struct Block {
  int templ = 0;
  Placement at;
  bool undone = false;     // the adjoint pass has to un-apply it
  bool trainable = false;  // and to gather its gradient
  int reach = 0;           // row bits of its slice that can be set by now in a state that began at |0...0>
};

// The matrices of all templates in the precision T of the states.
template <class T> struct MatrixSet {
  std::vector<T> re, im;
  void load(const std::vector<Template>& templates, const std::vector<complexd>& u, bool conjugate_transpose) {
    re.resize(u.size());
    im.resize(u.size());
    for (const auto& t : templates)
      for (int a = 0; a < t.dim; a++)
        for (int b = 0; b < t.dim; b++) {
          const complexd z = conjugate_transpose ? std::conj(u[t.offset + size_t(b) * t.dim + a])
                                                 : u[t.offset + size_t(a) * t.dim + b];
          re[t.offset + size_t(a) * t.dim + b] = T(z.real());
          im[t.offset + size_t(a) * t.dim + b] = T(z.imag());
        }
  }
  Matrix<T> of(const Template& t) const { return {t.dim, t.shape, re.data() + t.offset, im.data() + t.offset}; }
};

struct Schedule;

// Values that are worked out once for each key; may be asked for by several threads. A copy starts empty.
template <class Key, class Value> class Once {
 public:
  Once() = default;
  Once(const Once&) {}
  template <class Make> const Value& get(const Key& key, const Make& make) const {
    std::lock_guard<std::mutex> lock(guard_);
    auto& known = known_[key];
    if (!known) known = std::make_shared<const Value>(make());
    return *known;
  }

 private:
  mutable std::mutex guard_;
  mutable std::map<Key, std::shared_ptr<const Value>> known_;
};

class Program {
 public:
  int bits = 0;         // qubits
  int expressions = 0;  // rotation angles that a call must supply
  std::vector<Template> templates;
  std::vector<Block> blocks;
  size_t matrix_elements = 0;
  MatrixSet<float> constant_float;  // the matrices of a program without expressions
  MatrixSet<double> constant_double;

  template <class T> const MatrixSet<T>& constant() const {
    if constexpr (sizeof(T) == sizeof(float)) return constant_float;
    else return constant_double;
  }

  void finish() {
    matrix_elements = 0;
    for (auto& t : templates) {
      t.offset = matrix_elements;
      matrix_elements += size_t(t.dim) * t.dim;
      for (auto& f : t.factors) {
        if (f.expression < 0) continue;
        t.trainable = true;
        f.generator.assign(size_t(t.dim) * t.dim, 0.0);
        for (size_t j = 0; j < f.half_turns.size(); j++)
          for (size_t k = 0; k < f.generator.size(); k++)
            f.generator[k] += f.half_turns[j] * f.operators[j * f.generator.size() + k];
      }
    }
    mark_undone();
    if (expressions == 0) {
      std::vector<complexd> u(matrix_elements);
      matrices(nullptr, u.data());
      constant_float.load(templates, u, false);
      constant_double.load(templates, u, false);
    }
  }

  // A gradient G is a partial trace over the qubits that its block does not touch, which a unitary on those qubits
  // leaves as it is. So a block need only be un-applied where an earlier one that matters shares a qubit with it.
  void mark_undone() {
    std::vector<char> matters(size_t(bits), 0);
    for (auto& b : blocks) {
      b.trainable = templates[b.templ].trainable;
      b.undone = false;
      for (int j = 0; j < b.at.qubits; j++) b.undone = b.undone || matters[b.at.bits[j]];
      if (!b.undone && !b.trainable) continue;
      for (int j = 0; j < b.at.qubits; j++) matters[b.at.bits[j]] = 1;
    }
  }

  // All templates' unitaries for the angles x.
  void matrices(const double* x, complexd* out) const {
    std::vector<complexd> next, factor;
    for (const auto& t : templates) {
      complexd* u = out + t.offset;
      const size_t size = size_t(t.dim) * t.dim;
      bool first = true;
      for (const auto& f : t.factors) {
        const complexd* m = factor_matrix(t, f, x, factor);
        if (first) {
          std::copy(m, m + size, u);
          first = false;
          continue;
        }
        next.resize(size);
        product(t.dim, m, u, next.data());
        std::copy(next.begin(), next.end(), u);
      }
    }
  }

  // dE/dx += 2 Re tr(dU/dx G^T) for each template's G, where U = F_k ... F_1. Moving M = (F_{j-1}..F_1) G^T (F_k..F_{j+1})
  // from one factor to the next, M <- F M F^+ costs two small products per factor, whatever the number of angles.
  // With the generator H of a rotation F, dF/dx = i pi H F.
  // u: the templates' unitaries at x.
  void contract(const double* x, const complexd* u, const complexd* G, double* gradient) const {
    std::vector<complexd> factor, M, A, B;
    for (const auto& t : templates) {
      if (!t.trainable) continue;
      const int d = t.dim;
      const size_t size = size_t(d) * d;
      M.resize(size); A.resize(size); B.resize(size);
      // F_1 M_1 = G^T (F_k ... F_1) F_1^+ ... so start from N_0 = G^T U, where N_j = F_j..F_1 G^T F_k..F_{j+1}.
      for (int a = 0; a < d; a++)
        for (int b = 0; b < d; b++) A[size_t(a) * d + b] = G[t.offset + size_t(b) * d + a];
      product(d, A.data(), u + t.offset, M.data());
      for (const auto& f : t.factors) {
        const complexd* m = factor_matrix(t, f, x, factor);
        // N_j = F N_{j-1} F^+
        product(d, m, M.data(), A.data());
        for (int a = 0; a < d; a++)
          for (int b = 0; b < d; b++) B[size_t(a) * d + b] = std::conj(m[size_t(b) * d + a]);
        product(d, A.data(), B.data(), M.data());
        if (f.expression < 0) continue;
        complexd trace = 0;
        for (int a = 0; a < d; a++)
          for (int b = 0; b < d; b++) trace += f.generator[size_t(a) * d + b] * M[size_t(b) * d + a];
        gradient[f.expression] += -2.0 * M_PI * trace.imag();  // 2 Re(i pi trace)
      }
    }
  }

  // The order of a sweep over the state, worked out once for each layout.
  const Schedule& schedule(int lane_bits, int slice_bits) const;

 private:
  Once<std::pair<int, int>, Schedule> schedules_;

  static const complexd* factor_matrix(const Template& t, const Factor& f, const double* x,
                                       std::vector<complexd>& scratch) {
    if (f.expression < 0) return f.operators.data();
    const size_t size = size_t(t.dim) * t.dim;
    scratch.assign(size, 0.0);
    for (size_t j = 0; j < f.half_turns.size(); j++) {
      const complexd phase = std::polar(1.0, M_PI * std::fmod(f.half_turns[j] * x[f.expression], 2.0));
      const complexd* projector = f.operators.data() + j * size;
      for (size_t k = 0; k < size; k++) {
        const double a = projector[k].real(), b = projector[k].imag();
        scratch[k] += complexd(phase.real() * a - phase.imag() * b, phase.real() * b + phase.imag() * a);
      }
    }
    return scratch.data();
  }

  // c = a b, spelt out: std::complex's own product checks for infinities. The size that nearly all blocks have is known
  // to the compiler, which makes vectors of its rows.
  static void product(int d, const complexd* a, const complexd* b, complexd* c) {
    if (d == 4) sized_product<4>(d, a, b, c);
    else sized_product<0>(d, a, b, c);
  }
  template <int D> static void sized_product(int d, const complexd* a, const complexd* b, complexd* __restrict c) {
    const int n = D ? D : d;
    for (int i = 0; i < n; i++) {
      double* row = reinterpret_cast<double*>(c + size_t(i) * n);
      std::fill_n(row, 2 * n, 0.0);
      for (int k = 0; k < n; k++) {
        const double re = a[size_t(i) * n + k].real(), im = a[size_t(i) * n + k].imag();
        const double* of = reinterpret_cast<const double*>(b + size_t(k) * n);
        for (int j = 0; j < n; j++) {
          row[2 * j] += re * of[2 * j] - im * of[2 * j + 1];
          row[2 * j + 1] += re * of[2 * j + 1] + im * of[2 * j];
        }
      }
    }
  }
};

}  // namespace qflock
