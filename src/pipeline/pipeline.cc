#include "pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "base/error.h"
#include "kernels/kernels.h"

namespace sluice {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// How long a driver looks for work before it sleeps.
constexpr int64_t kSpinNs = 100'000;

}  // namespace

Pipeline::Pipeline(const Checkpoint& checkpoint, std::unique_ptr<Model> model, const Plan& plan,
                   const PipelineOptions& options)
    : model_(std::move(model)), plan_(plan), pools_(options.pools) {
  if (plan.n_blocks != int(model_->blocks.size())) {
    throw Error(ErrorCode::kInvalidInput, "plan: n_blocks: expected {} for this model, got {}",
                model_->blocks.size(), plan.n_blocks);
  }
  hops_ = route(plan);
  make_groups(options);
  stages_.resize(plan.stages.size());
  make_links();
  std::vector<std::future<void>> loaded;
  for (size_t g = 1; g < groups_.size(); ++g) {
    std::promise<void> promise;
    loaded.push_back(promise.get_future());
    groups_[g]->driver = std::thread([&, g, promise = std::move(promise)]() mutable {
      try {
        load(*groups_[g], checkpoint, options);
        promise.set_value();
      } catch (...) {
        promise.set_exception(std::current_exception());
        return;
      }
      drive(*groups_[g]);
    });
  }
  try {
    load(*groups_.front(), checkpoint, options);
    for (std::future<void>& future : loaded) future.get();
  } catch (...) {
    stop();
    throw;
  }
}

void Pipeline::make_groups(const PipelineOptions& options) {
  for (int s = 0; s < int(plan_.stages.size()); ++s) {
    const StagePlan& stage = plan_.stages[size_t(s)];
    const std::vector<int>& cores = stage.cores.empty() ? options.default_cores : stage.cores;
    auto found = std::find_if(groups_.begin(), groups_.end(),
                              [&](const auto& group) { return group->cores == cores; });
    if (found == groups_.end()) {
      found = groups_.insert(found, std::make_unique<Group>());
      (*found)->cores = cores;
      (*found)->threads = stage.cores.empty() ? options.threads : int(cores.size());
    }
    (*found)->stages.push_back(s);
    for (int h = 0; h < int(hops_.size()); ++h) {
      if (hops_[size_t(h)].stage == s) (*found)->hops.push_back(h);
    }
  }
  for (auto& group : groups_) std::sort(group->hops.rbegin(), group->hops.rend());
}

void Pipeline::make_links() {
  const size_t n_frames = groups_.size() + 1;
  for (const Hop& hop : hops_) {
    const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) {
      return std::find(g->stages.begin(), g->stages.end(), hop.stage) != g->stages.end();
    });
    inbox_.push_back(std::make_unique<Ring<Frame*>>(n_frames, (*group)->doorbell));
  }
  finished_ = std::make_unique<Ring<Frame*>>(n_frames, groups_.front()->doorbell);
  for (size_t i = 0; i < n_frames; ++i) {
    frames_.push_back(std::make_unique<Frame>());
    frames_.back()->stride = (model_->frame_width() + 15) / 16 * 16;
    free_frames_.push_back(frames_.back().get());
  }
}

void Pipeline::load(Group& group, const Checkpoint& checkpoint, const PipelineOptions& options) {
  group.pool = std::make_unique<ThreadPool>(group.threads, group.cores);
  group.pass = std::make_unique<Pass>(kernels(), *group.pool, options.i8);
  for (int s : group.stages) {
    stages_[size_t(s)] = std::make_unique<Stage>(
        *model_, checkpoint, plan_.stages[size_t(s)], hops_.front().stage == s,
        StageOptions{.cache_f16 = options.cache_f16, .pools = pools_}, *group.pass);
  }
  group.idle_since_ns = now_ns();
}

Pipeline::~Pipeline() { stop(); }

void Pipeline::stop() {
  stopping_ = true;
  for (auto& group : groups_) group->doorbell.ring();
  for (auto& group : groups_) {
    if (group->driver.joinable()) group->driver.join();
  }
}

void Pipeline::submit(Batch& batch) {
  CHECK(!free_frames_.empty());
  Frame& frame = *free_frames_.back();
  free_frames_.pop_back();
  std::swap(frame.batch, batch);
  frame.reserve(int64_t(frame.batch.rows.size()));
  frame.result.batch = frame.batch.id;
  frame.result.rows.clear();
  frame.result.logits.clear();
  frame.result.hidden.clear();
  frame.result.error.clear();
  frame.result.stages.assign(stages_.size(), {});
  frame.sent_ns = now_ns();
  CHECK(inbox_.front()->push(&frame));
}

void Pipeline::next(Result& result) {
  CHECK(free_frames_.size() < frames_.size());
  Group& group = *groups_.front();
  int64_t idle_from = now_ns();
  for (;;) {
    const uint32_t seen = group.doorbell.count();
    Frame* frame = nullptr;
    if (finished_->pop(frame)) {
      free_frames_.push_back(frame);
      std::swap(frame->result, result);
      return;
    }
    if (serve(group)) {
      idle_from = now_ns();
    } else if (now_ns() - idle_from > kSpinNs) {
      group.doorbell.wait(seen);
    }
  }
}

bool Pipeline::serve(Group& group) {
  for (int hop : group.hops) {
    Frame* frame = nullptr;
    if (inbox_[size_t(hop)]->pop(frame)) {
      run_hop(group, hop, *frame);
      return true;
    }
  }
  return false;
}

void Pipeline::run_hop(Group& group, int hop, Frame& frame) {
  const Hop& what = hops_[size_t(hop)];
  StageTiming& timing = frame.result.stages[size_t(what.stage)];
  const int64_t start = now_ns();
  const int64_t joins = group.pool->joins(), sync = group.pool->sync_ns();
  // A driver that was free before the frame was sent has waited for it; the rest is the wire.
  timing.wire_us += double(start - std::max(frame.sent_ns, group.idle_since_ns)) / 1e3;
  timing.idle_us += double(std::max<int64_t>(0, frame.sent_ns - group.idle_since_ns)) / 1e3;
  if (frame.result.error.empty()) {
    try {
      stages_[size_t(what.stage)]->run(frame, what);
    } catch (const std::exception& e) {
      frame.result.error =
          fmt::format("stage {}: {}", plan_.stages[size_t(what.stage)].name, e.what());
      frame.result.rows.clear();
    }
  }
  const int64_t end = now_ns();
  const double sync_us = double(group.pool->sync_ns() - sync) / 1e3;
  timing.sync_us += sync_us;
  timing.compute_us += double(end - start) / 1e3 - sync_us;
  timing.joins += int32_t(group.pool->joins() - joins);
  group.idle_since_ns = end;
  frame.sent_ns = end;
  const bool last = size_t(hop) + 1 == hops_.size();
  CHECK((last ? *finished_ : *inbox_[size_t(hop) + 1]).push(&frame));
}

void Pipeline::drive(Group& group) {
  int64_t idle_from = now_ns();
  while (!stopping_.load(std::memory_order_acquire)) {
    const uint32_t seen = group.doorbell.count();
    if (serve(group)) {
      idle_from = now_ns();
    } else if (now_ns() - idle_from > kSpinNs) {
      if (!stopping_.load(std::memory_order_acquire)) group.doorbell.wait(seen);
    }
  }
}

int64_t Pipeline::weight_bytes() const {
  int64_t bytes = 0;
  for (const auto& stage : stages_) bytes += stage->weight_bytes();
  return bytes;
}

int64_t Pipeline::cache_bytes() const {
  int64_t bytes = 0;
  for (const auto& stage : stages_) bytes += stage->cache_bytes();
  return bytes;
}

std::vector<std::string> Pipeline::widened() const {
  std::vector<std::string> names;
  for (const auto& stage : stages_) {
    for (const std::string& name : stage->widened()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace sluice
