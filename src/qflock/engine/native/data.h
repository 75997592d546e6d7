// The data circuits of a batch, and the states they prepare: what no parameter touches is computed once and kept.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "memory.h"
#include "program.h"

namespace qflock {

// Bytes that kept states may still take, shared by several tables.
struct StateBudget {
  explicit StateBudget(int64_t bytes) : left(bytes) {}
  std::atomic<int64_t> left;
  bool take(int64_t bytes) {
    if (left.fetch_sub(bytes) >= bytes) return true;
    left.fetch_add(bytes);
    return false;
  }
};

// A table is used with one model, one precision and one row layout, so that a kept state fits all its calls.
class DataTable {
 public:
  struct Entry {
    std::shared_ptr<const Program> program;
    Buffer state;  // in amplitude lanes
    std::atomic<bool> kept{false};
  };

  explicit DataTable(std::shared_ptr<StateBudget> budget) : budget_(std::move(budget)) {}
  ~DataTable() { budget_->left += taken_; }

  int64_t add(std::shared_ptr<const Program> program) {
    std::lock_guard<std::mutex> lock(guard_);
    entries_.emplace_back().program = std::move(program);
    return int64_t(entries_.size()) - 1;
  }

  // The entries of a batch. Those whose states can be kept and are not yet are prepared by `prepare`.
  template <class Row, class Prepare>
  std::vector<const Entry*> take(const int64_t* which, ptrdiff_t size, ptrdiff_t rows, const Prepare& prepare) {
    std::lock_guard<std::mutex> lock(guard_);
    std::vector<const Entry*> batch;
    std::vector<Entry*> fresh;
    const int64_t bytes = rows * int64_t(sizeof(Row));
    for (ptrdiff_t s = 0; s < size; s++) {
      Entry& entry = entries_.at(size_t(which[s]));
      batch.push_back(&entry);
      if (entry.kept || entry.state.template get<Row>() != nullptr || !budget_->take(bytes)) continue;
      taken_ += bytes;
      entry.state.template rows<Row>(size_t(rows));
      fresh.push_back(&entry);
    }
    prepare(fresh);
    for (auto* entry : fresh) entry->kept = true;
    return batch;
  }

 private:
  std::deque<Entry> entries_;  // entries must stay where they are while the table grows
  std::mutex guard_;
  std::shared_ptr<StateBudget> budget_;
  int64_t taken_ = 0;
};

}  // namespace qflock
