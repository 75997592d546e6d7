// Nanoseconds per amplitude of one block, forward and adjoint, for every pair of qubit positions, on one core.
// Output: one line per pair: lanes, first bit, second bit, forward, adjoint.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "evaluate.h"

using namespace qflock;
using Clock = std::chrono::steady_clock;
using Row = Lanes<float>::Row;

int main(int argc, char** argv) {
  const int row_bits = argc > 1 ? std::atoi(argv[1]) : 12;
  const Shape shape = Shape(argc > 2 ? std::atoi(argv[2]) : 0);
  const int bits = row_bits + Lanes<float>::qubits;
  const ptrdiff_t rows = ptrdiff_t(1) << row_bits;
  Buffer a, b;
  Row *psi = a.rows<Row>(size_t(rows)), *lambda = b.rows<Row>(size_t(rows));
  for (ptrdiff_t i = 0; i < rows; i++) {
    psi[i].r = psi[i].i = Lanes<float>::vec{} + 0.01f;
    lambda[i].r = lambda[i].i = Lanes<float>::vec{} + 0.02f;
  }
  float re[16], im[16];
  for (int k = 0; k < 16; k++) { re[k] = k % 5 == 0; im[k] = shape == Shape::dense ? 1e-4f * float(k) : 0.0f; }
  const Matrix<float> u{4, shape, re, im};
  std::vector<complexd> G(16);
  const int repeats = int(std::max<ptrdiff_t>(2, (ptrdiff_t(1) << 16) / rows));
  for (int first = 0; first < bits; first++)
    for (int second = first + 1; second < bits; second++) {
      const Placement at{2, {first, second}};
      double best[2] = {1e9, 1e9};
      for (int trial = 0; trial < 5; trial++) {
        auto start = Clock::now();
        for (int r = 0; r < repeats; r++) Kernel<float>::apply(psi, rows, Lanes<float>::qubits, at, u);
        const double forward = std::chrono::duration<double>(Clock::now() - start).count();
        start = Clock::now();
        for (int r = 0; r < repeats; r++) Kernel<float>::adjoint(psi, lambda, rows, Lanes<float>::qubits, at, u, G.data(), true);
        const double adjoint = std::chrono::duration<double>(Clock::now() - start).count();
        best[0] = std::min(best[0], forward);
        best[1] = std::min(best[1], adjoint);
      }
      const double scale = 1e9 / (double(repeats) * double(rows) * Lanes<float>::width);
      std::printf("%d %d %d %.4f %.4f\n", (first < Lanes<float>::qubits) + (second < Lanes<float>::qubits), first, second,
                  best[0] * scale, best[1] * scale);
    }
  return 0;
}
