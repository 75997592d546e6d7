// Expectation values of a batch, and the vector-Jacobian product by block adjoint differentiation.
#pragma once

#include <exception>
#include <mutex>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "data.h"
#include "model.h"
#include "readout.h"
#include "sweeps.h"

namespace qflock {

template <class T> int Sweeper<T>::thread_number() {
#if defined(_OPENMP)
  return omp_get_thread_num();
#else
  return 0;
#endif
}

struct Batch {
  ptrdiff_t size = 0;
  DataTable* data = nullptr;          // or null: every sample starts at |0...0>
  const int64_t* entries = nullptr;   // (size): the place of each sample's circuit in `data`
  const double* angles = nullptr;     // (expressions) or (size, expressions)
  bool angles_per_sample = false;
  const double* upstream = nullptr;   // (size, observables), or null: values only
};

struct Options {
  bool batch_lanes = false;
  bool share_state = false;  // threads work on one state together, instead of on a sample each
  int threads = 1;
  int slice_bits = 11;       // row bits of a slice that two of fit into the second-level cache
};

template <class T> class Evaluator {
 public:
  using L = Lanes<T>;
  using Row = typename L::Row;
  static constexpr int width = L::width;

  // values: (size, observables); gradient: (expressions) or (size, expressions), added to; null without upstream.
  static void run(const Model& model, const Batch& batch, const Options& options, double* values, double* gradient,
                  const Progress* progress) {
    Evaluator e(model, batch, options, values, gradient, progress);
    e.prepare();
    if (options.batch_lanes) e.over_samples((batch.size + width - 1) / width, [&](ptrdiff_t g, int t) { e.group(g, t); });
    else if (!options.share_state) e.over_samples(batch.size, [&](ptrdiff_t s, int t) { e.sample(s, t, 1); });
    else for (ptrdiff_t s = 0; s < batch.size; s++) e.sample(s, 0, options.threads);
    e.finish();
  }

 private:
  // The matrices that angles determine.
  struct Matrices {
    std::vector<complexd> unitary;
    MatrixSet<T> forward, inverse;
    std::vector<T> readout_re, readout_im;  // H = U^+ P U of each readout
    std::vector<complexd> readout_after;    // P U

    Matrix<T> readout(size_t k) const { return {4, Shape::dense, readout_re.data() + 16 * k, readout_im.data() + 16 * k}; }
  };

  const Model& model;
  const Program& program;
  const Observables& obs;
  const Batch& batch;
  const Options& options;
  double* values;
  double* gradient;
  const Progress* progress;
  const Schedule &schedule, &readout_schedule;
  std::vector<const DataTable::Entry*> data;      // of each sample
  Matrices shared;                                // of the shared angles
  std::vector<std::vector<complexd>> transition;  // G per thread
  std::vector<std::vector<complexd>> read;        // M of the readouts per thread

  Evaluator(const Model& m, const Batch& b, const Options& p, double* v, double* g, const Progress* report)
      : model(m), program(m.program), obs(m.observables), batch(b), options(p), values(v), gradient(g), progress(report),
        schedule(m.program.schedule(lane_bits(), p.slice_bits)),
        readout_schedule(m.readout_schedule(lane_bits(), p.slice_bits)) {}

  int lane_bits() const { return options.batch_lanes ? 0 : L::qubits; }

  void prepare() {
    if (batch.data) take_data();
    transition = per_thread(program.matrix_elements, options.threads);
    read = per_thread(16 * model.readouts.size(), options.threads);
    if (!batch.angles_per_sample) load(batch.angles, shared);
  }
  std::vector<std::vector<complexd>> per_thread(size_t size, int threads) const {
    return std::vector<std::vector<complexd>>(size_t(threads), std::vector<complexd>(gradient ? size : 0));
  }
  void load(const double* angles, Matrices& to) const {
    to.unitary.resize(program.matrix_elements);
    program.matrices(angles, to.unitary.data());
    to.forward.load(program.templates, to.unitary, false);
    if (gradient) to.inverse.load(program.templates, to.unitary, true);
    const size_t size = 16 * model.readouts.size();
    to.readout_re.resize(size);
    to.readout_im.resize(size);
    to.readout_after.resize(size);
    for (size_t k = 0; k < model.readouts.size(); k++) {
      const complexd* u = to.unitary.data() + program.templates[model.readouts[k].block.templ].offset;
      complexd* after = to.readout_after.data() + 16 * k;
      model.readouts[k].after(4, u, after);
      for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
          complexd h = 0;
          for (int c = 0; c < 4; c++) h += std::conj(u[c * 4 + a]) * after[c * 4 + b];
          to.readout_re[16 * k + a * 4 + b] = T(h.real());
          to.readout_im[16 * k + a * 4 + b] = T(h.imag());
        }
    }
  }

  // The batch's data circuits, with their states where these may be kept.
  void take_data() {
    const auto prepare = [&](const std::vector<DataTable::Entry*>& fresh) {
      const auto one = [&](ptrdiff_t k, int threads) {
        prepare_data(*fresh[size_t(k)]->program, fresh[size_t(k)]->state.template get<Row>(), threads);
      };
      if (options.share_state) for (size_t k = 0; k < fresh.size(); k++) one(ptrdiff_t(k), options.threads);
      else over_samples(ptrdiff_t(fresh.size()), [&](ptrdiff_t k, int) { one(k, 1); }, false);
    };
    data = batch.data->take<Row>(batch.entries, batch.size, ptrdiff_t(1) << (program.bits - L::qubits), prepare);
  }

  template <class Body> void over_samples(ptrdiff_t count, const Body& body, bool report = true) {
    std::exception_ptr failure;
    std::mutex guard;
    ptrdiff_t done = 0;
#pragma omp parallel for num_threads(options.threads) schedule(static) if (options.threads > 1)
    for (ptrdiff_t s = 0; s < count; s++) {
      try {
        body(s, Sweeper<T>::thread_number());
        if (report && progress && count > 1) {
          std::lock_guard<std::mutex> lock(guard);
          if (!failure) (*progress)(double(++done) / double(count));
        }
      } catch (...) {
        std::lock_guard<std::mutex> lock(guard);
        failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  static void ground_state(Row* psi, ptrdiff_t rows, bool every_lane, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (ptrdiff_t i = 0; i < rows; i++) psi[i] = Row{};
    for (int l = 0; l < (every_lane ? width : 1); l++) psi[0].r[l] = T(1);
  }

  // The state that a data circuit prepares, in amplitude lanes.
  void prepare_data(const Program& circuit, Row* psi, int threads) const {
    ground_state(psi, ptrdiff_t(1) << (program.bits - L::qubits), false, threads);
    Sweeper<T>::forward(circuit, circuit.schedule(L::qubits, options.slice_bits), circuit.template constant<T>(), psi, true,
                        threads, nullptr);
  }
  static const Row* kept_state(const DataTable::Entry& entry) { return entry.kept ? entry.state.template get<Row>() : nullptr; }

  void start(ptrdiff_t s, Row* psi, int threads) const {
    const ptrdiff_t rows = ptrdiff_t(1) << schedule.row_bits;
    if (batch.data == nullptr) return ground_state(psi, rows, false, threads);
    const Row* kept = kept_state(*data[s]);
    if (kept == nullptr) return prepare_data(*data[s]->program, psi, threads);
    each_part(rows, threads, [&](ptrdiff_t begin, ptrdiff_t end, int) { std::copy(kept + begin, kept + end, psi + begin); });
  }

  // One sample in amplitude lanes.
  void sample(ptrdiff_t s, int thread, int threads) {
    Workspace& w = Workspace::of_this_thread();
    ReleaseLarge guard{w};
    const ptrdiff_t rows = ptrdiff_t(1) << schedule.row_bits;
    Row* psi = w.psi.template rows<Row>(size_t(rows));
    start(s, psi, threads);
    Matrices own;
    const double* angles = batch.angles + (batch.angles_per_sample ? s * program.expressions : 0);
    if (batch.angles_per_sample) load(angles, own);
    const Matrices& matrices = batch.angles_per_sample ? own : shared;
    const Progress share = [&](double part) { if (progress && threads > 1) stage(s, 0.0, 0.3, part); };
    Sweeper<T>::forward(program, schedule, matrices.forward, psi, batch.data == nullptr, threads, &share);

    std::vector<double> lanes(size_t(obs.count) * width * threads, 0.0);
    each_part(rows, threads, [&](ptrdiff_t begin, ptrdiff_t end, int part) {
      Measure<T>::expectations(obs, psi, begin, end, L::qubits, lanes.data() + size_t(part) * obs.count * width);
    });
    Row* lambda = nullptr;
    std::vector<double> weights(size_t(obs.count) * width);
    if (gradient) {
      for (int o = 0; o < obs.count; o++)
        std::fill_n(weights.begin() + ptrdiff_t(o) * width, width, batch.upstream[s * obs.count + o]);
      lambda = w.lambda.template rows<Row>(size_t(rows));
      each_part(rows, threads, [&](ptrdiff_t begin, ptrdiff_t end, int) {
        Measure<T>::costate(obs, psi, lambda, begin, end, L::qubits, weights.data());
      });
    }
    auto gathered = batch.angles_per_sample ? per_thread(16 * model.readouts.size(), threads) : own_part(read, thread, threads);
    read_out(matrices, psi, lambda, threads, weights.data(), lanes.data(), gathered);
    for (int o = 0; o < obs.count; o++) {
      double sum = 0;
      for (int p = 0; p < threads; p++)
        for (int l = 0; l < width; l++) sum += lanes[(size_t(p) * obs.count + o) * width + l];
      values[s * obs.count + o] = sum;
    }
    if (gradient == nullptr) return;

    const Progress rest = [&](double part) { if (progress && threads > 1) stage(s, 0.3, 1.0, part); };
    auto G = batch.angles_per_sample ? per_thread(program.matrix_elements, threads) : own_part(transition, thread, threads);
    Sweeper<T>::adjoint(program, schedule, matrices.inverse, psi, lambda, threads, G, &rest);
    if (!batch.angles_per_sample) {
      give_back(read, thread, gathered);
      give_back(transition, thread, G);
      return;
    }
    add_up(G);
    add_up(gathered);
    add_readouts(matrices, gathered[0], G[0]);
    program.contract(angles, matrices.unitary.data(), G[0].data(), gradient + s * program.expressions);
  }

  // Sweeps number the threads of their own team: one thread among many that have a sample each is number 0 to them.
  static std::vector<std::vector<complexd>> own_part(std::vector<std::vector<complexd>>& all, int thread, int threads) {
    std::vector<std::vector<complexd>> part(static_cast<size_t>(threads));
    for (int t = 0; t < threads; t++) part[t].swap(all[threads == 1 ? thread : t]);
    return part;
  }
  static void give_back(std::vector<std::vector<complexd>>& all, int thread, std::vector<std::vector<complexd>>& part) {
    for (size_t t = 0; t < part.size(); t++) part[t].swap(all[part.size() == 1 ? size_t(thread) : t]);
  }

  // lanes: (threads, observables, width), added to.
  void read_out(const Matrices& matrices, const Row* psi, Row* lambda, int threads, const double* weights, double* lanes,
                std::vector<std::vector<complexd>>& gathered) const {
    Sweeper<T>::readouts(readout_schedule, psi, lambda, threads,
                         [&](int k, const Row* x, Row* y, ptrdiff_t rows, const Placement& at, int t) {
      const int o = model.readouts[k].observable;
      typename L::vec weight{};
      if (y) for (int l = 0; l < width; l++) weight[l] = T(weights[size_t(o) * width + l]);
      ReadoutKernel<T>::run(x, y, rows, lane_bits(), at, matrices.readout(size_t(k)), weight,
                            lanes + (size_t(t) * obs.count + o) * width, y ? gathered[t].data() + 16 * k : nullptr);
    });
  }

  // G[a,b] += sum_c conj((P U)[a,c]) M[c,b], since the co-state behind the block is w P U psi.
  void add_readouts(const Matrices& matrices, const std::vector<complexd>& M, std::vector<complexd>& G) const {
    for (size_t k = 0; k < model.readouts.size(); k++) {
      complexd* g = G.data() + program.templates[model.readouts[k].block.templ].offset;
      for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
          for (int c = 0; c < 4; c++)
            g[a * 4 + b] += std::conj(matrices.readout_after[16 * k + a * 4 + c]) * M[16 * k + c * 4 + b];
    }
  }

  void stage(ptrdiff_t s, double from, double to, double part) const {
    (*progress)((double(s) + from + (to - from) * part) / double(batch.size));
  }

  // `width` samples in batch lanes.
  void group(ptrdiff_t g, int thread) {
    Workspace& w = Workspace::of_this_thread();
    ReleaseLarge guard{w};
    const ptrdiff_t rows = ptrdiff_t(1) << program.bits, first = g * width;
    const int filled = int(std::min<ptrdiff_t>(width, batch.size - first));
    Row* psi = w.psi.template rows<Row>(size_t(rows));
    if (batch.data == nullptr) ground_state(psi, rows, true, 1);
    else fill_lanes(psi, first, filled);
    Sweeper<T>::forward(program, schedule, shared.forward, psi, batch.data == nullptr, 1, nullptr);

    std::vector<double> lanes(size_t(obs.count) * width, 0.0), weights(size_t(obs.count) * width, 0.0);
    Measure<T>::expectations(obs, psi, 0, rows, 0, lanes.data());
    Row* lambda = nullptr;
    if (gradient) {
      for (int l = 0; l < filled; l++)
        for (int o = 0; o < obs.count; o++) weights[size_t(o) * width + l] = batch.upstream[(first + l) * obs.count + o];
      lambda = w.lambda.template rows<Row>(size_t(rows));
      Measure<T>::costate(obs, psi, lambda, 0, rows, 0, weights.data());
    }
    auto gathered = own_part(read, thread, 1), G = own_part(transition, thread, 1);
    read_out(shared, psi, lambda, 1, weights.data(), lanes.data(), gathered);
    for (int l = 0; l < filled; l++)
      for (int o = 0; o < obs.count; o++)
        values[(first + l) * obs.count + o] = lanes[size_t(o) * width + l];
    if (gradient) Sweeper<T>::adjoint(program, schedule, shared.inverse, psi, lambda, 1, G, nullptr);
    give_back(read, thread, gathered);
    give_back(transition, thread, G);
  }

  void fill_lanes(Row* psi, ptrdiff_t first, int filled) const {
    const ptrdiff_t rows = ptrdiff_t(1) << (program.bits - L::qubits);
    const Row* states[width];
    for (int l = 0; l < filled; l++) {
      states[l] = kept_state(*data[first + l]);
      if (states[l] != nullptr) continue;
      Row* scratch = Workspace::of_this_thread().sample.template rows<Row>(size_t(rows * width));
      prepare_data(*data[first + l]->program, scratch + l * rows, 1);
      states[l] = scratch + l * rows;
    }
    for (ptrdiff_t k = 0; k < rows; k++) {
      typename L::vec re[width]{}, im[width]{};
      for (int l = 0; l < filled; l++) { re[l] = states[l][k].r; im[l] = states[l][k].i; }
      L::transpose(re);
      L::transpose(im);
      for (int j = 0; j < width; j++) psi[k * width + j] = {re[j], im[j]};
    }
  }

  template <class Body> static void each_part(ptrdiff_t rows, int threads, const Body& body) {
    const ptrdiff_t share = (rows + threads - 1) / threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int part = 0; part < threads; part++) {
      const ptrdiff_t begin = std::min(rows, part * share), end = std::min(rows, begin + share);
      body(begin, end, part);
    }
  }

  // In the order of the threads, so that a result depends on their number alone.
  static void add_up(std::vector<std::vector<complexd>>& G) {
    for (size_t t = 1; t < G.size(); t++)
      for (size_t k = 0; k < G[0].size(); k++) G[0][k] += G[t][k];
  }

  void finish() {
    if (gradient == nullptr || batch.angles_per_sample) return;
    add_up(transition);
    add_up(read);
    add_readouts(shared, read[0], transition[0]);
    program.contract(batch.angles, shared.unitary.data(), transition[0].data(), gradient);
  }
};

}  // namespace qflock
