// The kernels against the definition, amplitude by amplitude: every placement of one, two and three qubits, in the lanes
// and in the rows, forward and adjoint, both precisions. Needs no Python, so that it runs under an emulator too.
#include <cmath>
#include <complex>
#include <cstdio>
#include <random>
#include <vector>

#include "evaluate.h"

using namespace qflock;

namespace {

std::mt19937_64 generator(7);
double uniform() { return std::uniform_real_distribution<double>(-1, 1)(generator); }

using State = std::vector<complexd>;

// One amplitude of a row layout: with lane_bits 0, `lane` picks the sample.
template <class T> complexd amplitude(const typename Lanes<T>::Row* s, size_t index, int lane_bits, int lane) {
  const size_t row = index >> lane_bits;
  const int at = lane_bits ? int(index & ((size_t(1) << lane_bits) - 1)) : lane;
  return complexd(s[row].r[at], s[row].i[at]);
}

size_t with_bits(size_t index, const Placement& at, int value) {
  for (int j = 0; j < at.qubits; j++) {
    index &= ~(size_t(1) << at.bits[j]);
    index |= size_t(value >> j & 1) << at.bits[j];
  }
  return index;
}
int bits_of(size_t index, const Placement& at) {
  int value = 0;
  for (int j = 0; j < at.qubits; j++) value |= int(index >> at.bits[j] & 1) << j;
  return value;
}
State times(const std::vector<complexd>& u, const Placement& at, const State& x) {
  const int dim = 1 << at.qubits;
  State y(x.size());
  for (size_t i = 0; i < x.size(); i++)
    for (int c = 0; c < dim; c++) y[i] += u[size_t(bits_of(i, at)) * dim + c] * x[with_bits(i, at, c)];
  return y;
}

template <class T> double largest_error(int bits, int lane_bits, const Placement& at, Shape shape) {
  using Row = typename Lanes<T>::Row;
  const int dim = 1 << at.qubits;
  const size_t size = size_t(1) << bits, rows = size >> lane_bits;
  std::vector<complexd> u(size_t(dim) * dim);
  std::vector<T> re(u.size()), im(u.size());
  for (size_t k = 0; k < u.size(); k++) {
    const bool kept = shape != Shape::diagonal || k % (dim + 1) == 0;
    u[k] = kept ? complexd(T(uniform()), shape == Shape::real ? T(0) : T(uniform())) : 0.0;
    re[k] = T(u[k].real()); im[k] = T(u[k].imag());
  }
  Buffer a, b;
  Row *psi = a.rows<Row>(rows), *lambda = b.rows<Row>(rows);
  for (size_t i = 0; i < rows; i++)
    for (int l = 0; l < Lanes<T>::width; l++) {
      psi[i].r[l] = T(uniform()); psi[i].i[l] = T(uniform());
      lambda[i].r[l] = T(uniform()); lambda[i].i[l] = T(uniform());
    }
  const int samples = lane_bits ? 1 : Lanes<T>::width;
  std::vector<State> x(samples, State(size)), y(samples, State(size));
  for (int s = 0; s < samples; s++)
    for (size_t i = 0; i < size; i++) {
      x[s][i] = amplitude<T>(psi, i, lane_bits, s);
      y[s][i] = amplitude<T>(lambda, i, lane_bits, s);
    }
  std::vector<complexd> G(u.size()), gathered_G(u.size()), expected_G(u.size());
  const Matrix<T> matrix{dim, shape, re.data(), im.data()};
  Kernel<T>::adjoint(psi, lambda, ptrdiff_t(rows), lane_bits, at, matrix, gathered_G.data(), false);
  Kernel<T>::adjoint(psi, lambda, ptrdiff_t(rows), lane_bits, at, matrix, G.data(), true);
  double error = 0;
  for (int s = 0; s < samples; s++) {
    const State new_psi = times(u, at, x[s]), new_lambda = times(u, at, y[s]);
    for (size_t i = 0; i < size; i++) {
      error = std::max(error, std::abs(amplitude<T>(psi, i, lane_bits, s) - new_psi[i]));
      error = std::max(error, std::abs(amplitude<T>(lambda, i, lane_bits, s) - new_lambda[i]));
      for (int c = 0; c < dim; c++) {
        const size_t j = with_bits(i, at, c);
        expected_G[size_t(bits_of(i, at)) * dim + c] += std::conj(y[s][i]) * new_psi[j];
      }
    }
  }
  for (size_t k = 0; k < G.size(); k++) {
    if (shape == Shape::diagonal && k % (dim + 1)) continue;
    for (const complexd difference : {G[k] - expected_G[k], gathered_G[k] - expected_G[k]})
      error = std::max(error, std::abs(shape == Shape::real ? complexd(difference.real()) : difference) / 16);
  }
  Kernel<T>::apply(psi, ptrdiff_t(rows), lane_bits, at, matrix);
  for (int s = 0; s < samples; s++) {
    const State twice = times(u, at, times(u, at, x[s]));
    for (size_t i = 0; i < size; i++) error = std::max(error, std::abs(amplitude<T>(psi, i, lane_bits, s) - twice[i]));
  }
  return error;
}

// e, the co-state and M of a readout against their definition.
template <class T> double largest_readout_error(int bits, int lane_bits, const Placement& at) {
  using Row = typename Lanes<T>::Row;
  constexpr int width = Lanes<T>::width;
  const size_t size = size_t(1) << bits, rows = size >> lane_bits;
  std::vector<complexd> h(16);
  for (int a = 0; a < 4; a++)
    for (int b = 0; b <= a; b++) {
      h[a * 4 + b] = complexd(T(uniform()), a == b ? T(0) : T(uniform()));
      h[b * 4 + a] = std::conj(h[a * 4 + b]);
    }
  std::vector<T> re(16), im(16);
  for (int k = 0; k < 16; k++) { re[k] = T(h[k].real()); im[k] = T(h[k].imag()); }
  Buffer a, b;
  Row *psi = a.rows<Row>(rows), *lambda = b.rows<Row>(rows);
  typename Lanes<T>::vec weight{};
  for (int l = 0; l < width; l++) weight[l] = lane_bits && l ? weight[0] : T(uniform());
  for (size_t i = 0; i < rows; i++)
    for (int l = 0; l < width; l++) {
      psi[i].r[l] = T(uniform()); psi[i].i[l] = T(uniform());
      lambda[i].r[l] = T(uniform()); lambda[i].i[l] = T(uniform());
    }
  const int samples = lane_bits ? 1 : width;
  std::vector<State> x(samples, State(size)), y(samples, State(size));
  for (int s = 0; s < samples; s++)
    for (size_t i = 0; i < size; i++) {
      x[s][i] = amplitude<T>(psi, i, lane_bits, s);
      y[s][i] = amplitude<T>(lambda, i, lane_bits, s);
    }
  std::vector<complexd> M(16), expected_M(16);
  std::vector<double> e(width), value_alone(width);
  const Matrix<T> matrix{4, Shape::dense, re.data(), im.data()};
  ReadoutKernel<T>::run(psi, nullptr, ptrdiff_t(rows), lane_bits, at, matrix, weight, value_alone.data(), nullptr);
  ReadoutKernel<T>::run(psi, lambda, ptrdiff_t(rows), lane_bits, at, matrix, weight, e.data(), M.data());
  double error = 0;
  for (int s = 0; s < samples; s++) {
    const State hx = times(h, at, x[s]);
    double expected = 0, found = 0, alone = 0;
    for (size_t i = 0; i < size; i++) {
      expected += (std::conj(x[s][i]) * hx[i]).real();
      error = std::max(error, std::abs(amplitude<T>(lambda, i, lane_bits, s) - (y[s][i] + double(weight[s]) * hx[i])));
      for (int c = 0; c < 4; c++)
        expected_M[size_t(bits_of(i, at)) * 4 + c] += double(weight[s]) * std::conj(x[s][i]) * x[s][with_bits(i, at, c)];
    }
    for (int l = 0; l < (lane_bits ? width : 1); l++) { found += e[s + l]; alone += value_alone[s + l]; }
    error = std::max({error, std::abs(found - expected) / 16, std::abs(alone - expected) / 16});
  }
  for (size_t k = 0; k < 16; k++) error = std::max(error, std::abs(M[k] - expected_M[k]) / 16);
  return error;
}

template <class T> int check(const char* name, double tolerance) {
  const int bits = 7;
  int failures = 0, cases = 0;
  double worst = 0;
  for (int lane_bits : {0, Lanes<T>::qubits})
    for (int a = 0; a < bits; a++)
      for (int b = a; b < bits; b++)
        for (int c = b; c < bits; c++) {
          if ((b == c) != (a == b) && b == c) continue;  // one, two (a < b = c is left out) or three qubits
          Placement at;
          if (a == b && b == c) at = {1, {a}};
          else if (a == b) at = {2, {a, c}};
          else at = {3, {a, b, c}};
          if (at.qubits == 2) {
            const double error = largest_readout_error<T>(bits, lane_bits, at);
            worst = std::max(worst, error);
            cases++;
            if (!(error < tolerance)) {
              std::printf("%s lane_bits %d readout of (%d %d): error %g\n", name, lane_bits, a, c, error);
              failures++;
            }
          }
          for (Shape shape : {Shape::dense, Shape::real, Shape::diagonal}) {
            if (at.qubits != 2 && shape != Shape::dense) continue;
            const double error = largest_error<T>(bits, lane_bits, at, shape);
            worst = std::max(worst, error);
            cases++;
            if (!(error < tolerance)) {
              std::printf("%s lane_bits %d qubits %d (%d %d %d) shape %d: error %g\n", name, lane_bits, at.qubits, a, b, c,
                          int(shape), error);
              failures++;
            }
          }
        }
  std::printf("%s: %d cases, largest error %.2e, %d failures\n", name, cases, worst, failures);
  return failures;
}

}  // namespace

int main() { return check<float>("complex64", 3e-5) + check<double>("complex128", 1e-13) ? 1 : 0; }
