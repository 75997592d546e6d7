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
  return schedule;
}

inline const Schedule& Program::schedule(int lane_bits, int slice_bits) const {
  return schedules_.get({lane_bits, slice_bits}, [&] { return make_schedule(*this, lane_bits, slice_bits); });
}

}  // namespace qflock
