// The modelled Executor: batches pass through stages as they pass through the pipeline, on a clock
// that only computing and waiting move.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "plan/plan.h"

namespace sluice {

/// Consecutive rows of one sequence.
struct LoadSegment {
  int n_rows = 0;
  int first_position = 0;
  bool decodes = false;  // its rows continue an answer; otherwise they are a prompt's
  bool samples = false;  // its last row gives a token
};

/// What of a batch decides how long it takes.
struct BatchLoad {
  uint64_t id = 0;
  int n_rows = 0;
  int n_sampled = 0;  // rows that need the head
  std::vector<LoadSegment> segments;

  int decode_rows() const;
  /// Of the sequence with most of them: rows that verify a guess.
  int guesses() const;
};

/// Microseconds of a batch, all of them by hop.
struct BatchPrice {
  std::vector<double> hop_us;   // computing
  std::vector<double> link_us;  // from there to the next hop, from the last one to the scheduler;
                                // of no effect between two hops of the same server
  double scheduler_us = 0;      // of deciding and accounting
  double draft_us = 0;          // of guessing, before the first hop; batches guess side by side
};

/// How long the parts of the way take. Pure: the same load costs the same.
class BatchCost {
 public:
  virtual ~BatchCost() = default;
  /// Fills `price`, whose lists have an entry per hop.
  virtual void price(const BatchLoad& load, BatchPrice& price) const = 0;
};

/// Every hop takes the same time: so much, and more for each row.
struct FlatCost : BatchCost {
  double us = 0, us_per_row = 0, link_us = 0, guess_us = 0;

  void price(const BatchLoad& load, BatchPrice& price) const override {
    for (double& hop : price.hop_us) hop = us + us_per_row * load.n_rows;
    for (double& link : price.link_us) link = link_us;
    price.scheduler_us = 0;
    price.draft_us = guess_us * load.guesses();
  }
};

/// A frame's way. A server computes one hop at a time, of several waiting ones the last; server 0
/// is the scheduler's own thread. There are as many batches under way as servers.
struct SimRoute {
  struct HopPlace {
    int stage = 0, server = 0;
  };
  std::vector<std::string> stages;
  std::vector<HopPlace> hops;
  int n_servers = 0;

  /// Stages with the same cores share a server, as in the pipeline; stages without cores have
  /// `default_cores`.
  static SimRoute of(const Plan& plan, const std::vector<int>& default_cores);
  /// Each stage its own server, whatever its cores.
  static SimRoute devices(const Plan& plan);
  static SimRoute row(std::vector<std::string> stages);
};

/// A stage was busy with a batch.
struct SimSpan {
  int stage = 0;
  double start_us = 0, end_us = 0;
  const BatchLoad* load = nullptr;
};

/// The time, microseconds, as those who serve a load know it.
class LoadClock {
 public:
  virtual ~LoadClock() = default;
  virtual double now_us() const = 0;
  /// Nothing happens until then.
  virtual void wait_until(double us) = 0;
};

class SimExecutor : public Executor, public LoadClock {
 public:
  /// `token(request, position)`: what the model draws. `route` and `cost` outlive the executor.
  using TokenSource = std::function<Token(RequestId, int)>;
  SimExecutor(const SimRoute& route, const BatchCost& cost, CachePools pools, TokenSource token);

  void submit(Batch& batch) override;
  void next(Result& result) override;
  int depth() const override { return route_.n_servers; }
  CachePools pools() const override { return pools_; }

  double now_us() const override { return clock_us_; }
  void wait_until(double us) override { clock_us_ = std::max(clock_us_, us); }
  /// Hears of all work.
  std::function<void(const SimSpan&)> on_span;

 private:
  struct Job {
    BatchLoad load;
    Result result;
    BatchPrice price;
  };
  struct Server {
    bool in_row = false;    // one hop alone, not the scheduler's: needs no events
    double free_us = 0;     // in_row: when it is done with what it has got
    std::vector<int> hops;  // last first
    bool busy = false;      // not in_row, not the scheduler's
  };
  struct Event {
    double time_us = 0;
    uint64_t order = 0;
    int hop = 0;          // where `job` arrives, or was computed
    bool is_end = false;  // of computing
    Job* job = nullptr;
    bool operator>(const Event& e) const {
      return time_us != e.time_us ? time_us > e.time_us : order > e.order;
    }
  };
  struct Finished {
    double time_us = 0;
    Job* job = nullptr;
  };

  void send(Job* job, int from_hop, double now_us);
  void arrive(Job* job, int hop, double time_us, double now_us);
  void handle(const Event& event);
  bool pick(const Server& server, Job*& job, int& hop);
  void start_next(int server, double now_us);
  double run(Job* job, int hop, double start_us);
  double link_us(const Job& job, int from_hop) const {
    return has_link_[size_t(from_hop)] ? job.price.link_us[size_t(from_hop)] : 0;
  }
  void push_event(double time_us, int hop, bool is_end, Job* job);

  const SimRoute& route_;
  const BatchCost& cost_;
  CachePools pools_;
  TokenSource token_;
  double clock_us_ = 0;
  uint64_t n_events_ = 0;
  std::vector<Server> servers_;
  std::vector<char> has_link_;           // by hop: another server comes after it
  std::vector<double> arrived_us_;       // by hop: when the last frame got or gets there
  std::vector<std::deque<Job*>> inbox_;  // by hop
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::deque<Finished> finished_;
  std::deque<Job> jobs_;
  std::vector<Job*> free_jobs_;
};

}  // namespace sluice
