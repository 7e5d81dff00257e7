// What a hop of a frame costs, without the work of a stage: through a ring to another core and
// back, halved, and through a ring on the same core. Prints JSON, microseconds.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "pipeline/frame.h"
#include "pipeline/ring.h"

namespace {

using sluice::Doorbell;
using sluice::Frame;
using sluice::Ring;

constexpr int kHops = 200'000, kRounds = 5;

double us_per_hop(auto&& hop) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kHops; ++i) hop();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
             .count() /
         kHops;
}

void pop_waiting(Ring<Frame*>& ring, Frame*& frame) {
  while (!ring.pop(frame)) {
  }
}

double same_core() {
  Doorbell bell;
  Ring<Frame*> ring(1, bell);
  Frame one;
  Frame* frame = &one;
  return us_per_hop([&] {
    ring.push(frame);
    pop_waiting(ring, frame);
  });
}

double other_core() {
  Doorbell there_bell, back_bell;
  Ring<Frame*> there(1, there_bell), back(1, back_bell);
  std::thread stage([&] {
    for (int i = 0; i < kHops; ++i) {
      Frame* frame = nullptr;
      pop_waiting(there, frame);
      back.push(frame);
    }
  });
  Frame one;
  Frame* frame = &one;
  const double round_trip = us_per_hop([&] {
    there.push(frame);
    pop_waiting(back, frame);
  });
  stage.join();
  return round_trip / 2;
}

double median(double (*measure)()) {
  std::vector<double> rounds;
  for (int i = 0; i < kRounds; ++i) rounds.push_back(measure());
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace

int main() {
  fmt::print("{{\"same_core_us\": {:.3f}, \"other_core_us\": {:.3f}, \"bar_us\": 5}}\n",
             median(same_core), median(other_core));
}
