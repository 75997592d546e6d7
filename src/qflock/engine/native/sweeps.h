// Running a schedule over a state, forward and adjoint.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "memory.h"
#include "schedule.h"

namespace qflock {

// Called between sweeps with the share of the work that is done; may throw to stop.
using Progress = std::function<void(double)>;

template <class T> class Sweeper {
 public:
  using Row = typename Lanes<T>::Row;

  // ground: psi is |0...0>.
  static void forward(const Program& program, const Schedule& schedule, const MatrixSet<T>& u, Row* psi, bool ground,
                      int threads, const Progress* progress) {
    for (size_t s = 0; s < schedule.sweeps.size(); s++) {
      const Sweep& sweep = schedule.sweeps[s];
      const auto apply = [&](Row* x, Row*, ptrdiff_t rows, int) {
        for (const auto& b : sweep.blocks)
          Kernel<T>::apply(x, ground ? ptrdiff_t(1) << b.reach : rows, schedule.lane_bits, b.at, u.of(program.templates[b.templ]));
      };
      each_slice(sweep, ground ? sweep.outer_set : sweep.outer, psi, static_cast<Row*>(nullptr), Changes::psi, threads, apply);
      if (progress) (*progress)(double(s + 1) / double(schedule.sweeps.size()));
    }
  }

  // G: `threads` buffers of program.matrix_elements each, added to.
  static void adjoint(const Program& program, const Schedule& schedule, const MatrixSet<T>& inverse, Row* psi,
                      Row* lambda, int threads, std::vector<std::vector<complexd>>& G, const Progress* progress) {
    const int count = int(schedule.sweeps.size());
    for (int s = count - 1; s >= 0; s--) {
      const Sweep& sweep = schedule.sweeps[s];
      if (!sweep.differentiated) continue;
      each_slice(sweep, sweep.outer, psi, lambda, sweep.undone ? Changes::both : Changes::neither, threads, [&](Row* x, Row* y, ptrdiff_t rows, int thread) {
        for (auto b = sweep.blocks.rbegin(); b != sweep.blocks.rend(); ++b) {
          const Template& t = program.templates[b->templ];
          Kernel<T>::adjoint(x, y, rows, schedule.lane_bits, b->at, inverse.of(t),
                             b->trainable ? G[thread].data() + t.offset : nullptr, b->undone);
        }
      });
      if (progress) (*progress)(double(count - s) / double(count));
    }
  }

  // body(readout, psi slice, lambda slice or null, rows, placement, thread) for each readout in a schedule of readouts.
  template <class Body>
  static void readouts(const Schedule& schedule, const Row* psi, Row* lambda, int threads, const Body& body) {
    for (const auto& sweep : schedule.sweeps)
      each_slice(sweep, sweep.outer, const_cast<Row*>(psi), lambda, lambda ? Changes::lambda : Changes::neither, threads,
                 [&](Row* x, Row* y, ptrdiff_t rows, int thread) {
                   for (const auto& b : sweep.blocks) body(b.templ, x, y, rows, b.at, thread);
                 });
  }

  static int thread_number();

 private:
  enum class Changes { neither, psi, lambda, both };

  // Calls body(psi slice, lambda slice, rows, thread) for each slice, one for each value of the row bits `outer`, with slices
  // brought together when they are not contiguous in memory, and put back where the body changes them.
  template <class Body>
  static void each_slice(const Sweep& sweep, const std::vector<int>& outer, Row* psi, Row* lambda, Changes changes,
                         int threads, const Body& body) {
    const int inner = int(sweep.row_bits.size());
    int run_bits = 0;
    while (run_bits < inner && sweep.row_bits[run_bits] == run_bits) run_bits++;
    const ptrdiff_t rows = ptrdiff_t(1) << inner, run = ptrdiff_t(1) << run_bits;
    const ptrdiff_t slices = ptrdiff_t(1) << outer.size();
    if (slices == 1 && run == rows) return body(psi, lambda, rows, 0);
    std::vector<ptrdiff_t> run_at(size_t(rows / run), 0);
    for (ptrdiff_t k = 0; k < rows / run; k++)
      for (int j = run_bits; j < inner; j++)
        if (k >> (j - run_bits) & 1) run_at[k] |= ptrdiff_t(1) << sweep.row_bits[j];
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (ptrdiff_t slice = 0; slice < slices; slice++) {
      ptrdiff_t base = 0;
      for (size_t j = 0; j < outer.size(); j++)
        if (slice >> j & 1) base |= ptrdiff_t(1) << outer[j];
      const int thread = thread_number();
      if (run == rows) {
        body(psi + base, lambda ? lambda + base : nullptr, rows, thread);
        continue;
      }
      Workspace& w = Workspace::of_this_thread();
      Row* x = w.slice_psi.template rows<Row>(size_t(rows));
      Row* y = lambda ? w.slice_lambda.template rows<Row>(size_t(rows)) : nullptr;
      copy_in(psi + base, x, run_at, run);
      if (lambda) copy_in(lambda + base, y, run_at, run);
      body(x, y, rows, thread);
      if (changes == Changes::psi || changes == Changes::both) copy_out(x, psi + base, run_at, run);
      if (changes == Changes::lambda || changes == Changes::both) copy_out(y, lambda + base, run_at, run);
    }
  }
  static void copy_in(const Row* from, Row* to, const std::vector<ptrdiff_t>& run_at, ptrdiff_t run) {
    for (size_t k = 0; k < run_at.size(); k++)
      std::memcpy(to + ptrdiff_t(k) * run, from + run_at[k], size_t(run) * sizeof(Row));
  }
  static void copy_out(const Row* from, Row* to, const std::vector<ptrdiff_t>& run_at, ptrdiff_t run) {
    for (size_t k = 0; k < run_at.size(); k++)
      std::memcpy(to + run_at[k], from + ptrdiff_t(k) * run, size_t(run) * sizeof(Row));
  }
};

}  // namespace qflock
