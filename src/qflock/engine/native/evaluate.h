// Expectation values of a batch, and the vector-Jacobian product by block adjoint differentiation.
#pragma once

#include <exception>
#include <mutex>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "data.h"
#include "observables.h"
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
  static void run(const Program& model, const Observables& obs, const Batch& batch, const Options& options,
                  double* values, double* gradient, const Progress* progress) {
    Evaluator e(model, obs, batch, options, values, gradient, progress);
    e.prepare();
    if (options.batch_lanes) e.over_samples((batch.size + width - 1) / width, [&](ptrdiff_t g, int t) { e.group(g, t); });
    else if (!options.share_state) e.over_samples(batch.size, [&](ptrdiff_t s, int t) { e.sample(s, t, 1); });
    else for (ptrdiff_t s = 0; s < batch.size; s++) e.sample(s, 0, options.threads);
    e.finish();
  }

 private:
  const Program& model;
  const Observables& obs;
  const Batch& batch;
  const Options& options;
  double* values;
  double* gradient;
  const Progress* progress;
  const Schedule& schedule;
  std::vector<const DataTable::Entry*> data;      // of each sample
  MatrixSet<T> forward, inverse;                  // of the shared angles
  std::vector<std::vector<complexd>> transition;  // G per thread

  Evaluator(const Program& m, const Observables& o, const Batch& b, const Options& p, double* v, double* g,
            const Progress* report)
      : model(m), obs(o), batch(b), options(p), values(v), gradient(g), progress(report),
        schedule(m.schedule(p.batch_lanes ? 0 : L::qubits, p.slice_bits)) {}

  void prepare() {
    if (batch.data) take_data();
    transition.assign(size_t(options.threads), std::vector<complexd>(gradient ? model.matrix_elements : 0));
    if (!batch.angles_per_sample) load(batch.angles, forward, inverse);
  }
  void load(const double* angles, MatrixSet<T>& u, MatrixSet<T>& v) const {
    std::vector<complexd> matrices(model.matrix_elements);
    model.matrices(angles, matrices.data());
    u.load(model.templates, matrices, false);
    if (gradient) v.load(model.templates, matrices, true);
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
    data = batch.data->take<Row>(batch.entries, batch.size, ptrdiff_t(1) << (model.bits - L::qubits), prepare);
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
    ground_state(psi, ptrdiff_t(1) << (model.bits - L::qubits), false, threads);
    Sweeper<T>::forward(circuit, circuit.schedule(L::qubits, options.slice_bits), circuit.template constant<T>(), psi, threads,
                        nullptr);
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
    MatrixSet<T> own, own_inverse;
    const double* angles = batch.angles + (batch.angles_per_sample ? s * model.expressions : 0);
    if (batch.angles_per_sample) load(angles, own, own_inverse);
    const Progress share = [&](double part) { if (progress && threads > 1) stage(s, 0.0, 0.3, part); };
    Sweeper<T>::forward(model, schedule, batch.angles_per_sample ? own : forward, psi, threads, &share);

    std::vector<double> lanes(size_t(obs.count) * width * threads, 0.0);
    each_part(rows, threads, [&](ptrdiff_t begin, ptrdiff_t end, int part) {
      Measure<T>::expectations(obs, psi, begin, end, L::qubits, lanes.data() + size_t(part) * obs.count * width);
    });
    for (int o = 0; o < obs.count; o++) {
      double sum = 0;
      for (int p = 0; p < threads; p++)
        for (int l = 0; l < width; l++) sum += lanes[(size_t(p) * obs.count + o) * width + l];
      values[s * obs.count + o] = sum;
    }
    if (gradient == nullptr) return;

    std::vector<double> weights(size_t(obs.count) * width);
    for (int o = 0; o < obs.count; o++)
      std::fill_n(weights.begin() + ptrdiff_t(o) * width, width, batch.upstream[s * obs.count + o]);
    Row* lambda = w.lambda.template rows<Row>(size_t(rows));
    each_part(rows, threads, [&](ptrdiff_t begin, ptrdiff_t end, int) {
      Measure<T>::costate(obs, psi, lambda, begin, end, L::qubits, weights.data());
    });
    const Progress rest = [&](double part) { if (progress && threads > 1) stage(s, 0.3, 1.0, part); };
    if (!batch.angles_per_sample) {
      std::vector<std::vector<complexd>>& G = transition;
      if (threads > 1) return Sweeper<T>::adjoint(model, schedule, inverse, psi, lambda, threads, G, &rest);
      // each_slice numbers the threads of its own team, which is one here: hand it this thread's buffer.
      std::vector<std::vector<complexd>> own_G(1);
      own_G[0].swap(G[thread]);
      Sweeper<T>::adjoint(model, schedule, inverse, psi, lambda, 1, own_G, &rest);
      own_G[0].swap(G[thread]);
      return;
    }
    std::vector<std::vector<complexd>> G(size_t(threads), std::vector<complexd>(model.matrix_elements));
    Sweeper<T>::adjoint(model, schedule, own_inverse, psi, lambda, threads, G, &rest);
    add_up(G);
    model.contract(angles, G[0].data(), gradient + s * model.expressions);
  }
  void stage(ptrdiff_t s, double from, double to, double part) const {
    (*progress)((double(s) + from + (to - from) * part) / double(batch.size));
  }

  // `width` samples in batch lanes.
  void group(ptrdiff_t g, int thread) {
    Workspace& w = Workspace::of_this_thread();
    ReleaseLarge guard{w};
    const ptrdiff_t rows = ptrdiff_t(1) << model.bits, first = g * width;
    const int filled = int(std::min<ptrdiff_t>(width, batch.size - first));
    Row* psi = w.psi.template rows<Row>(size_t(rows));
    if (batch.data == nullptr) ground_state(psi, rows, true, 1);
    else fill_lanes(psi, first, filled);
    Sweeper<T>::forward(model, schedule, forward, psi, 1, nullptr);

    std::vector<double> lanes(size_t(obs.count) * width, 0.0);
    Measure<T>::expectations(obs, psi, 0, rows, 0, lanes.data());
    for (int l = 0; l < filled; l++)
      for (int o = 0; o < obs.count; o++)
        values[(first + l) * obs.count + o] = lanes[size_t(o) * width + l];
    if (gradient == nullptr) return;

    std::vector<double> weights(size_t(obs.count) * width, 0.0);
    for (int l = 0; l < filled; l++)
      for (int o = 0; o < obs.count; o++) weights[size_t(o) * width + l] = batch.upstream[(first + l) * obs.count + o];
    Row* lambda = w.lambda.template rows<Row>(size_t(rows));
    Measure<T>::costate(obs, psi, lambda, 0, rows, 0, weights.data());
    std::vector<std::vector<complexd>> G(1);
    G[0].swap(transition[thread]);
    Sweeper<T>::adjoint(model, schedule, inverse, psi, lambda, 1, G, nullptr);
    G[0].swap(transition[thread]);
  }

  void fill_lanes(Row* psi, ptrdiff_t first, int filled) const {
    const ptrdiff_t rows = ptrdiff_t(1) << (model.bits - L::qubits);
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
    model.contract(batch.angles, transition[0].data(), gradient);
  }
};

}  // namespace qflock
