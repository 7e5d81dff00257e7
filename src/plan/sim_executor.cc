#include "plan/sim_executor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

void read_load(const Batch& batch, BatchLoad& load) {
  load.id = batch.id;
  load.n_rows = int(batch.rows.size());
  load.n_sampled = 0;
  load.segments.clear();
  for (const BatchSequence& s : batch.sequences) {
    const int first = batch.rows[size_t(s.first_row)].position;
    const bool samples = batch.rows[size_t(s.first_row + s.n_rows - 1)].sample;
    load.segments.push_back({s.n_rows, first, first >= s.n_prompt, samples});
  }
}

}  // namespace

int BatchLoad::decode_rows() const {
  int n = 0;
  for (const LoadSegment& segment : segments) n += segment.decodes ? segment.n_rows : 0;
  return n;
}

int BatchLoad::guesses() const {
  int most = 0;
  for (const LoadSegment& s : segments) most = std::max(most, s.decodes ? s.n_rows - 1 : 0);
  return most;
}

SimRoute SimRoute::of(const Plan& plan, const std::vector<int>& default_cores) {
  SimRoute out;
  std::vector<const std::vector<int>*> pools;
  std::vector<int> server_of;
  for (const StagePlan& stage : plan.stages) {
    const std::vector<int>& cores = stage.cores.empty() ? default_cores : stage.cores;
    const auto found =
        std::find_if(pools.begin(), pools.end(), [&](const auto* pool) { return *pool == cores; });
    server_of.push_back(int(found - pools.begin()));
    if (found == pools.end()) pools.push_back(&cores);
    out.stages.push_back(stage.name);
  }
  out.n_servers = int(pools.size());
  for (const Hop& hop : route(plan)) out.hops.push_back({hop.stage, server_of[size_t(hop.stage)]});
  return out;
}

SimRoute SimRoute::devices(const Plan& plan) {
  SimRoute out;
  for (const StagePlan& stage : plan.stages) out.stages.push_back(stage.name);
  out.n_servers = int(plan.stages.size());
  for (const Hop& hop : route(plan)) out.hops.push_back({hop.stage, hop.stage});
  return out;
}

SimRoute SimRoute::row(std::vector<std::string> stages) {
  SimRoute out;
  out.n_servers = int(stages.size());
  for (int s = 0; s < out.n_servers; ++s) out.hops.push_back({s, s});
  out.stages = std::move(stages);
  return out;
}

SimExecutor::SimExecutor(const SimRoute& route, const BatchCost& cost, CachePools pools,
                         TokenSource token)
    : route_(route),
      cost_(cost),
      pools_(pools),
      token_(std::move(token)),
      servers_(size_t(route.n_servers)),
      arrived_us_(route.hops.size(), 0),
      inbox_(route.hops.size()) {
  CHECK(route.n_servers > 0 && !route.hops.empty());
  for (int h = int(route.hops.size()) - 1; h >= 0; --h) {
    servers_[size_t(route.hops[size_t(h)].server)].hops.push_back(h);
  }
  for (size_t s = 1; s < servers_.size(); ++s) servers_[s].in_row = servers_[s].hops.size() == 1;
  for (size_t h = 0; h < route_.hops.size(); ++h) {
    const int to_server = h + 1 == route_.hops.size() ? 0 : route_.hops[h + 1].server;
    has_link_.push_back(to_server != route_.hops[h].server);
  }
}

void SimExecutor::submit(Batch& batch) {
  if (free_jobs_.empty()) free_jobs_.push_back(&jobs_.emplace_back());
  Job* const job = free_jobs_.back();
  free_jobs_.pop_back();
  read_load(batch, job->load);
  job->result.batch = batch.id;
  job->result.rows.clear();
  for (size_t r = 0; r < batch.rows.size(); ++r) {
    const BatchRow& row = batch.rows[r];
    if (!row.sample) continue;
    const RequestId request = batch.sequences[size_t(row.sequence)].id;
    RowResult& out = job->result.rows.emplace_back();
    out.row = int32_t(r);
    out.token = token_(request, row.position + 1);
  }
  job->load.n_sampled = int(job->result.rows.size());
  BatchPrice& price = job->price;
  price.hop_us.resize(route_.hops.size());
  price.link_us.resize(route_.hops.size());
  cost_.price(job->load, price);
  clock_us_ += price.scheduler_us;
  job->result.stages.assign(route_.stages.size(), {});
  for (size_t h = 0; h < price.hop_us.size(); ++h) {
    job->result.stages[size_t(route_.hops[h].stage)].compute_us += price.hop_us[h];
  }
  const double link_us = route_.hops.front().server == 0 ? 0 : price.link_us.back();
  arrive(job, 0, clock_us_ + price.draft_us + link_us, clock_us_);
}

void SimExecutor::next(Result& result) {
  for (;;) {
    while (!events_.empty() && events_.top().time_us <= clock_us_) {
      const Event event = events_.top();
      events_.pop();
      handle(event);
    }
    if (!finished_.empty() && finished_.front().time_us <= clock_us_) {
      Job* const job = finished_.front().job;
      finished_.pop_front();
      free_jobs_.push_back(job);
      std::swap(job->result, result);
      return;
    }
    Job* job = nullptr;
    int hop = 0;
    if (pick(servers_.front(), job, hop)) {
      clock_us_ = run(job, hop, clock_us_);
      send(job, hop, clock_us_);
      continue;
    }
    double next_us = std::numeric_limits<double>::infinity();
    if (!finished_.empty()) next_us = finished_.front().time_us;
    if (!events_.empty()) next_us = std::min(next_us, events_.top().time_us);
    CHECK(next_us < std::numeric_limits<double>::infinity());
    clock_us_ = next_us;
  }
}

/// Computes; returns the end.
double SimExecutor::run(Job* job, int hop, double start_us) {
  const SimRoute::HopPlace& place = route_.hops[size_t(hop)];
  const double end_us = start_us + job->price.hop_us[size_t(hop)];
  if (on_span) on_span({place.stage, start_us, end_us, &job->load});
  return end_us;
}

void SimExecutor::send(Job* job, int from_hop, double now_us) {
  arrive(job, from_hop + 1, now_us + link_us(*job, from_hop), now_us);
}

/// `time_us`: when the frame gets there, now or later. Frames keep their order at every hop, so a
/// server in a row can say at once when it will be done.
void SimExecutor::arrive(Job* job, int hop, double time_us, double now_us) {
  for (; size_t(hop) < route_.hops.size(); ++hop) {
    const int s = route_.hops[size_t(hop)].server;
    Server& server = servers_[size_t(s)];
    if (!server.in_row) {
      // A frame whose guesses or bytes take less time does not overtake the one before it.
      time_us = arrived_us_[size_t(hop)] = std::max(arrived_us_[size_t(hop)], time_us);
      if (time_us > now_us) return push_event(time_us, hop, /*is_end=*/false, job);
      inbox_[size_t(hop)].push_back(job);
      return start_next(s, now_us);
    }
    server.free_us = run(job, hop, std::max(time_us, server.free_us));
    time_us = server.free_us + link_us(*job, hop);
  }
  finished_.push_back({time_us, job});
}

void SimExecutor::push_event(double time_us, int hop, bool is_end, Job* job) {
  events_.push({time_us, n_events_++, hop, is_end, job});
}

void SimExecutor::handle(const Event& event) {
  const int s = route_.hops[size_t(event.hop)].server;
  if (event.is_end) {
    servers_[size_t(s)].busy = false;
    send(event.job, event.hop, event.time_us);
  } else {
    inbox_[size_t(event.hop)].push_back(event.job);
  }
  start_next(s, event.time_us);
}

bool SimExecutor::pick(const Server& server, Job*& job, int& hop) {
  for (int h : server.hops) {
    if (inbox_[size_t(h)].empty()) continue;
    job = inbox_[size_t(h)].front();
    inbox_[size_t(h)].pop_front();
    hop = h;
    return true;
  }
  return false;
}

/// If the server is free and a frame waits. Server 0 works within next().
void SimExecutor::start_next(int server, double now_us) {
  Job* job = nullptr;
  int hop = 0;
  if (server == 0 || servers_[size_t(server)].busy) return;
  if (!pick(servers_[size_t(server)], job, hop)) return;
  servers_[size_t(server)].busy = true;
  push_event(run(job, hop, now_us), hop, /*is_end=*/true, job);
}

}  // namespace sluice
