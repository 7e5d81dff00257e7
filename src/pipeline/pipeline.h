// The real Executor: the stages of a plan in this process, one driver per pool of cores.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "engine/executor.h"
#include "pipeline/ring.h"
#include "pipeline/stage.h"
#include "plan/plan.h"

namespace sluice {

struct PipelineOptions {
  bool i8 = true;         // 8-bit activations for quantised weights
  bool cache_f16 = true;  // keys and values in 16 bits
  CachePools pools;
  int threads = 1;                 // of the default pool
  std::vector<int> default_cores;  // one per thread, or empty: not pinned
};

/// Stages with the same cores form a group, which computes one hop at a time. The caller of next()
/// drives the first group, so that one user on one group costs no wake-up; other groups have a
/// thread of their own.
class Pipeline : public Executor {
 public:
  /// Loads all stages. Throws what the checkpoint, the plan or the memory give cause for.
  Pipeline(const Checkpoint& checkpoint, std::unique_ptr<Model> model, const Plan& plan,
           const PipelineOptions& options);
  ~Pipeline() override;

  void submit(Batch& batch) override;
  void next(Result& result) override;
  int depth() const override { return int(groups_.size()); }
  CachePools pools() const override { return pools_; }

  const Model& model() const { return *model_; }
  const Plan& plan() const { return plan_; }
  int64_t weight_bytes() const;
  int64_t cache_bytes() const;
  /// Checkpoint types that were widened for want of a kernel.
  std::vector<std::string> widened() const;

 private:
  struct Group {
    std::vector<int> cores;
    int threads = 1;
    std::vector<int> stages;
    std::unique_ptr<ThreadPool> pool;
    std::unique_ptr<Pass> pass;
    std::vector<int> hops;  // served by this group, last first: finishing comes before starting
    Doorbell doorbell;
    int64_t idle_since_ns = 0;
    std::thread driver;  // not for the first group
  };

  void make_groups(const PipelineOptions& options);
  void make_links();
  /// On the thread that will drive the group, which its pool pins.
  void load(Group& group, const Checkpoint& checkpoint, const PipelineOptions& options);
  void stop();
  bool serve(Group& group);  // runs one hop if a frame waits; false otherwise
  void run_hop(Group& group, int hop, Frame& frame);
  void drive(Group& group);

  std::unique_ptr<Model> model_;
  Plan plan_;
  CachePools pools_;
  std::vector<Hop> hops_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::unique_ptr<Ring<Frame*>>> inbox_;  // by hop
  std::unique_ptr<Ring<Frame*>> finished_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Frame*> free_frames_;
  std::atomic<bool> stopping_{false};
};

}  // namespace sluice
