// A lock-free ring for one producer and one consumer: the in-process link between two stages.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace sluice {

/// Wakes the thread that serves a set of rings.
class Doorbell {
 public:
  void ring() {
    rings_.fetch_add(1, std::memory_order_release);
    rings_.notify_one();
  }
  uint32_t count() const { return rings_.load(std::memory_order_acquire); }
  /// Sleeps until the count differs from `seen`.
  void wait(uint32_t seen) const { rings_.wait(seen, std::memory_order_acquire); }

 private:
  alignas(64) std::atomic<uint32_t> rings_{0};
};

template <typename T>
class Ring {
 public:
  /// `capacity`: how many items may be inside at once.
  explicit Ring(size_t capacity, Doorbell& consumer) : items_(capacity + 1), consumer_(consumer) {}

  /// False if full.
  bool push(T item) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    const size_t next = tail + 1 == items_.size() ? 0 : tail + 1;
    if (next == head_.load(std::memory_order_acquire)) return false;
    items_[tail] = item;
    tail_.store(next, std::memory_order_release);
    consumer_.ring();
    return true;
  }

  /// False if empty.
  bool pop(T& item) {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    item = items_[head];
    head_.store(head + 1 == items_.size() ? 0 : head + 1, std::memory_order_release);
    return true;
  }

 private:
  std::vector<T> items_;
  Doorbell& consumer_;
  alignas(64) std::atomic<size_t> head_{0};
  alignas(64) std::atomic<size_t> tail_{0};
};

}  // namespace sluice
