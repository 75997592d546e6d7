// Cache blocking: the order in which a program walks over a state that does not fit into the cache.
//
// A sweep picks a few row bits; the state falls apart into slices, one for each value of the other row bits, and every
// block of the sweep acts inside a slice. A slice is copied into the cache once, all blocks of the sweep are applied
// to it, and it is copied back: one trip through memory per sweep instead of one per block, and the slices are
// independent, so that threads share a sweep without waiting for each other.
#pragma once

#include <algorithm>
#include <vector>

#include "program.h"

namespace qflock {

struct Sweep {
  std::vector<int> row_bits;    // ascending
  std::vector<Block> blocks;    // placed inside the slice
  std::vector<int> outer;       // the other row bits, ascending
  std::vector<int> outer_set;   // those of them that can be set by now in a state that began at |0...0>
  bool differentiated = false;  // the adjoint pass has work in it
  bool undone = false;          // and changes the states
};

struct Schedule {
  int lane_bits = 0;
  int row_bits = 0;
  std::vector<Sweep> sweeps;
};

inline int row_bits_of(const Placement& at, int lane_bits, int* out) {
  int count = 0;
  for (int j = 0; j < at.qubits; j++)
    if (at.bits[j] >= lane_bits) out[count++] = at.bits[j] - lane_bits;
  return count;
}

inline Placement inside(const Placement& at, int lane_bits, const std::vector<int>& row_bits) {
  Placement local = at;
  for (int j = 0; j < at.qubits; j++) {
    if (at.bits[j] < lane_bits) continue;
    const auto where = std::lower_bound(row_bits.begin(), row_bits.end(), at.bits[j] - lane_bits);
    local.bits[j] = lane_bits + int(where - row_bits.begin());
  }
  return local;
}

// Takes the blocks that can be brought forward into one sweep: those whose qubits fit into `room` row bits and are
// not held back by an earlier block that was left behind.
inline Sweep take_sweep(std::vector<Block>& left, int lane_bits, int row_bits, int room) {
  std::vector<char> chosen(row_bits, 0), held(lane_bits + row_bits, 0);
  int used = 0;
  // The lowest row bits always belong to the slice, so that it is copied in runs of some length.
  for (int b = 0; b < std::min({2, row_bits, room - 2}); b++) { chosen[b] = 1; used++; }
  std::vector<Block> taken, behind;
  for (const auto& block : left) {
    int rows[max_block_qubits];
    const int count = row_bits_of(block.at, lane_bits, rows);
    int extra = 0;
    for (int k = 0; k < count; k++) extra += !chosen[rows[k]];
    bool free = true;
    for (int j = 0; j < block.at.qubits; j++) free = free && !held[block.at.bits[j]];
    if (free && (used + extra <= room || (taken.empty() && extra == count))) {
      for (int k = 0; k < count; k++) chosen[rows[k]] = 1;
      used += extra;
      taken.push_back(block);
    } else {
      for (int j = 0; j < block.at.qubits; j++) held[block.at.bits[j]] = 1;
      behind.push_back(block);
    }
  }
  for (int b = 0; b < row_bits && used < room; b++)  // fill up from below: longer runs
    if (!chosen[b]) { chosen[b] = 1; used++; }
  Sweep sweep;
  for (int b = 0; b < row_bits; b++) if (chosen[b]) sweep.row_bits.push_back(b);
  for (auto& block : taken) {
    block.at = inside(block.at, lane_bits, sweep.row_bits);
    sweep.blocks.push_back(block);
  }
  left.swap(behind);
  return sweep;
}

// A state that begins at |0...0> is zero wherever a bit is set that no block has touched yet. Its first sweeps leave those
// amplitudes alone, so that a chain of blocks, as of a cluster state, costs about two of them instead of one for each qubit.
inline void mark_reach(Schedule& schedule) {
  std::vector<char> touched(size_t(schedule.row_bits), 0);
  for (auto& sweep : schedule.sweeps) {
    for (int b = 0; b < schedule.row_bits; b++) {
      if (std::binary_search(sweep.row_bits.begin(), sweep.row_bits.end(), b)) continue;
      sweep.outer.push_back(b);
      if (touched[b]) sweep.outer_set.push_back(b);
    }
    int reach = 0;
    for (size_t j = 0; j < sweep.row_bits.size(); j++)
      if (touched[sweep.row_bits[j]]) reach = int(j) + 1;
    for (auto& block : sweep.blocks) {
      int rows[max_block_qubits];
      const int count = row_bits_of(block.at, schedule.lane_bits, rows);
      for (int k = 0; k < count; k++) {
        touched[sweep.row_bits[rows[k]]] = 1;
        reach = std::max(reach, rows[k] + 1);
      }
      block.reach = reach;
    }
  }
}

inline Schedule make_schedule(const Program& program, int lane_bits, int slice_bits) {
  Schedule schedule;
  schedule.lane_bits = lane_bits;
  schedule.row_bits = program.bits - lane_bits;
  std::vector<Block> left = program.blocks;
  const int room = std::min(schedule.row_bits, slice_bits);
  while (!left.empty()) schedule.sweeps.push_back(take_sweep(left, lane_bits, schedule.row_bits, room));
  for (auto& sweep : schedule.sweeps)
    for (const auto& b : sweep.blocks) {
      sweep.undone = sweep.undone || b.undone;
      sweep.differentiated = sweep.differentiated || b.undone || b.trainable;
    }
  mark_reach(schedule);
  return schedule;
}

inline const Schedule& Program::schedule(int lane_bits, int slice_bits) const {
  return schedules_.get({lane_bits, slice_bits}, [&] { return make_schedule(*this, lane_bits, slice_bits); });
}

}  // namespace qflock
