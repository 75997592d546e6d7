// A model: a program and what is measured after it. Where an observable sees nothing beyond the qubits of one last block,
// block and observable become one readout, H = U^+ P U, so that the block is neither applied nor un-applied.
#pragma once

#include <algorithm>
#include <vector>

#include "observables.h"
#include "schedule.h"

namespace qflock {

struct Readout {
  Block block;
  unsigned x = 0, z = 0;  // the Pauli string on the block's own bits
  int y_count = 0;
  int observable = 0;

  // out = P U for the block's unitary u, row-major.
  void after(int dim, const complexd* u, complexd* out) const {
    static const complexd turns[4] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    for (int b = 0; b < dim; b++)
      for (int c = 0; c < dim; c++) {
        const int a = b ^ int(x);
        const double sign = __builtin_parity(unsigned(b) & z) ? -1.0 : 1.0;
        out[a * dim + c] = sign * turns[y_count & 3] * u[b * dim + c];
      }
  }
};

class Model {
 public:
  Program program;          // without the blocks that became readouts
  Observables observables;  // those that did not become readouts; `count` counts all
  std::vector<Readout> readouts;

  Model(const Program& whole, const Observables& all) : program(whole), observables(all) {
    std::vector<char> later(size_t(whole.bits), 0);
    std::vector<char> absorbed(whole.blocks.size(), 0);
    for (int k = int(whole.blocks.size()) - 1; k >= 0; k--) {
      const Placement& at = whole.blocks[k].at;
      bool last = at.qubits == 2;
      for (int j = 0; j < at.qubits; j++) last = last && !later[at.bits[j]];
      if (last) absorbed[k] = absorb(whole.blocks[k]);
      for (int j = 0; j < at.qubits; j++) later[at.bits[j]] = 1;
    }
    program.blocks.clear();
    for (size_t k = 0; k < whole.blocks.size(); k++)
      if (!absorbed[k]) program.blocks.push_back(whole.blocks[k]);
    program.finish();
  }

  // The readouts' blocks in sweeps; the template of each is the number of its readout.
  const Schedule& readout_schedule(int lane_bits, int slice_bits) const {
    return readout_schedules_.get({lane_bits, slice_bits}, [&] {
      Program placed;
      placed.bits = program.bits;
      for (size_t k = 0; k < readouts.size(); k++) placed.blocks.push_back({int(k), readouts[k].block.at});
      return make_schedule(placed, lane_bits, slice_bits);
    });
  }

 private:
  static constexpr int most_readouts_ = 2;  // of one block: each costs as much as to apply it
  Once<std::pair<int, int>, Schedule> readout_schedules_;

  bool absorb(const Block& block) {
    uint64_t inside = 0;
    for (int j = 0; j < block.at.qubits; j++) inside |= uint64_t(1) << block.at.bits[j];
    std::vector<Readout> found;
    for (const auto& [x, terms] : observables.by_flip)
      for (const auto& term : terms) {
        if (!((x | term.z) & inside)) continue;
        if ((x | term.z) & ~inside) return false;
        Readout r{block, 0, 0, term.y_count, term.observable};
        for (int j = 0; j < block.at.qubits; j++) {
          r.x |= unsigned(x >> block.at.bits[j] & 1) << j;
          r.z |= unsigned(term.z >> block.at.bits[j] & 1) << j;
        }
        found.push_back(r);
      }
    if (found.empty() || int(found.size()) > most_readouts_) return false;
    for (auto entry = observables.by_flip.begin(); entry != observables.by_flip.end();) {
      auto& terms = entry->second;
      const uint64_t x = entry->first;
      terms.erase(std::remove_if(terms.begin(), terms.end(),
                                 [&](const PauliTerm& t) { return ((x | t.z) & inside) != 0; }), terms.end());
      entry = terms.empty() ? observables.by_flip.erase(entry) : std::next(entry);
    }
    readouts.insert(readouts.end(), found.begin(), found.end());
    return true;
  }
};

}  // namespace qflock
