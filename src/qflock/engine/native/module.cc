// The Python module: programs and observables as handles, one call that evaluates a batch.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>

#include "evaluate.h"

namespace nb = nanobind;
using namespace qflock;

namespace {

template <class T> using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

// Tables as flat arrays, so that a program of hundreds of blocks crosses the boundary in one piece:
// factors (n, 5) = template, expression or -1, first element in `operators`, first in `half_turns`, count of half turns;
// templates (n, 2) = matrix dimension, shape; blocks (n, 2) = template, first in `bits`.
std::shared_ptr<Program> make_program(int bits, int expressions, Array<int64_t> templates, Array<int64_t> factors,
                                      Array<int64_t> blocks, Array<int64_t> block_bits, Array<double> half_turns,
                                      Array<complexd> operators) {
  auto program = std::make_shared<Program>();
  program->bits = bits;
  program->expressions = expressions;
  for (size_t k = 0; k < templates.shape(0); k++) {
    Template t;
    t.dim = int(templates.data()[k * 2]);
    t.shape = Shape(int(templates.data()[k * 2 + 1]));
    program->templates.push_back(std::move(t));
  }
  for (size_t k = 0; k < factors.shape(0); k++) {
    const int64_t* row = factors.data() + k * 5;
    Template& t = program->templates.at(size_t(row[0]));
    Factor f;
    f.expression = int(row[1]);
    const size_t size = size_t(t.dim) * t.dim, count = f.expression < 0 ? 1 : size_t(row[4]);
    f.operators.assign(operators.data() + row[2], operators.data() + row[2] + size * count);
    if (f.expression >= 0) f.half_turns.assign(half_turns.data() + row[3], half_turns.data() + row[3] + count);
    t.factors.push_back(std::move(f));
  }
  for (size_t k = 0; k < blocks.shape(0); k++) {
    Block b;
    b.templ = int(blocks.data()[k * 2]);
    const int dim = program->templates.at(size_t(b.templ)).dim;
    while ((1 << b.at.qubits) < dim) {
      b.at.bits[b.at.qubits] = int(block_bits.data()[blocks.data()[k * 2 + 1] + b.at.qubits]);
      b.at.qubits++;
    }
    program->blocks.push_back(b);
  }
  program->finish();
  return program;
}

// terms: x, z, y_count, observable per row.
std::shared_ptr<Observables> make_observables(Array<uint64_t> terms) {
  auto obs = std::make_shared<Observables>();
  obs->count = int(terms.shape(0));
  for (size_t k = 0; k < terms.shape(0); k++) {
    const uint64_t* row = terms.data() + k * 4;
    obs->by_flip[row[0]].push_back({row[1], int(row[2]), int(row[3])});
  }
  return obs;
}

// The interpreter lock is held only for the call.
Progress guarded(const std::function<void(double)>& callback) {
  return [&callback](double part) {
    nb::gil_scoped_acquire lock;
    callback(part);
  };
}

void evaluate(const Model& model, DataTable* data, std::optional<Array<int64_t>> entries,
              Array<double> angles, bool angles_per_sample, std::optional<Array<double>> upstream, nb::ndarray<double, nb::c_contig, nb::device::cpu> values,
              std::optional<nb::ndarray<double, nb::c_contig, nb::device::cpu>> gradient, bool double_precision,
              bool batch_lanes, bool share_state, int threads, int slice_bits,
              std::optional<std::function<void(double)>> progress) {
  Batch batch;
  batch.size = ptrdiff_t(values.shape(0));
  if (entries) {
    batch.data = data;
    batch.entries = entries->data();
  }
  batch.angles = angles.data();
  batch.angles_per_sample = angles_per_sample;
  batch.upstream = upstream ? upstream->data() : nullptr;
  const Options options{batch_lanes, share_state, threads, slice_bits};
  double* out = gradient ? gradient->data() : nullptr;
  double* to = values.data();
  Progress report;
  if (progress) report = guarded(*progress);
  nb::gil_scoped_release unlocked;
  const Progress* p = progress ? &report : nullptr;
  if (double_precision) Evaluator<double>::run(model, batch, options, to, out, p);
  else Evaluator<float>::run(model, batch, options, to, out, p);
}

bool supported() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#if QFLOCK_VECTOR_BYTES == 64
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
#elif QFLOCK_VECTOR_BYTES == 32
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
#endif
  return true;
}

}  // namespace

NB_MODULE(QFLOCK_MODULE, m) {
  // A process may end without taking everything apart, which takes a second and is no leak.
  nb::set_leak_warnings(false);
  m.attr("vector_bytes") = QFLOCK_VECTOR_BYTES;
  m.attr("max_block_qubits") = max_block_qubits;
  m.def("supported", &supported);
  nb::class_<Program>(m, "Program")
      .def_ro("bits", &Program::bits)
      .def_ro("expressions", &Program::expressions)
      .def_prop_ro("block_count", [](const Program& p) { return p.blocks.size(); });
  nb::class_<Observables>(m, "Observables").def_ro("count", &Observables::count);
  nb::class_<Model>(m, "Model")
      .def(nb::init<const Program&, const Observables&>())
      .def_prop_ro("bits", [](const Model& model) { return model.program.bits; })
      .def_prop_ro("observable_count", [](const Model& model) { return model.observables.count; })
      .def_prop_ro("block_count", [](const Model& model) { return model.program.blocks.size() + model.readouts.size(); })
      .def_prop_ro("readout_count", [](const Model& model) { return model.readouts.size(); });
  nb::class_<StateBudget>(m, "StateBudget").def(nb::init<int64_t>()).def_prop_ro("left", [](const StateBudget& b) {
    return b.left.load();
  });
  nb::class_<DataTable>(m, "DataTable")
      .def(nb::init<std::shared_ptr<StateBudget>>())
      .def("add", [](DataTable& table, std::shared_ptr<Program> program) { return table.add(std::move(program)); });
  m.def("make_program", &make_program);
  m.def("make_observables", &make_observables);
  m.def("evaluate", &evaluate, nb::arg("model"), nb::arg("data"), nb::arg("entries").none(), nb::arg("angles"), nb::arg("angles_per_sample"), nb::arg("upstream").none(), nb::arg("values"), nb::arg("gradient").none(),
        nb::arg("double_precision"), nb::arg("batch_lanes"), nb::arg("share_state"), nb::arg("threads"),
        nb::arg("slice_bits"), nb::arg("progress").none());
}
