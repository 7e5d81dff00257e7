#include "plan/sim_trace.h"

#include <algorithm>

#include "base/json.h"

namespace sluice {
namespace {

constexpr int kStages = 1, kRequests = 2;  // processes of the trace

class EventList {
 public:
  explicit EventList(std::ostream& out) : out_(out) { out_ << "{\"traceEvents\":["; }
  ~EventList() { out_ << "\n]}\n"; }

  void add(const OrderedJson& event) {
    out_ << (is_first_ ? "\n" : ",\n")
         << event.dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace);
    is_first_ = false;
  }
  void name(const char* what, int process, int thread, const std::string& name) {
    add({{"ph", "M"},
         {"name", what},
         {"pid", process},
         {"tid", thread},
         {"args", {{"name", name}}}});
  }

 private:
  std::ostream& out_;
  bool is_first_ = true;
};

}  // namespace

void SimTrace::add(const SimSpan& span) {
  if (spans_.size() == limit_) {
    is_cut_ = true;
    return;
  }
  const int decode_rows = span.load->decode_rows();
  spans_.push_back({span.load->id, span.stage, span.load->n_rows - decode_rows, decode_rows,
                    span.start_us, span.end_us});
}

void SimTrace::add(const RequestSpan& request) {
  if (requests_.size() == limit_) {
    is_cut_ = true;
    return;
  }
  requests_.push_back(request);
}

void SimTrace::write(std::ostream& out, const SimRoute& route) const {
  EventList events(out);
  events.name("process_name", kStages, 0, "stages");
  for (size_t s = 0; s < route.stages.size(); ++s) {
    events.name("thread_name", kStages, int(s), route.stages[s]);
  }
  std::vector<const StageSpan*> in_order;
  for (const StageSpan& span : spans_) in_order.push_back(&span);
  std::stable_sort(in_order.begin(), in_order.end(), [](const StageSpan* a, const StageSpan* b) {
    return a->batch != b->batch ? a->batch < b->batch : a->start_us < b->start_us;
  });
  for (size_t i = 0; i < in_order.size(); ++i) {
    const StageSpan& s = *in_order[i];
    events.add({{"ph", "X"},
                {"name", "batch " + std::to_string(s.batch)},
                {"pid", kStages},
                {"tid", s.stage},
                {"ts", s.start_us},
                {"dur", s.end_us - s.start_us},
                {"args", {{"decode_rows", s.decode_rows}, {"prompt_rows", s.prompt_rows}}}});
    const bool begins = i == 0 || in_order[i - 1]->batch != s.batch;
    const bool ends = i + 1 == in_order.size() || in_order[i + 1]->batch != s.batch;
    if (begins && ends) continue;
    OrderedJson arrow = {{"ph", begins ? "s"
                                : ends ? "f"
                                       : "t"},
                         {"name", "frame"},
                         {"cat", "frame"},
                         {"id", s.batch},
                         {"pid", kStages},
                         {"tid", s.stage},
                         {"ts", (s.start_us + s.end_us) / 2}};
    if (ends) arrow["bp"] = "e";
    events.add(arrow);
  }
  events.name("process_name", kRequests, 0, "requests");
  for (size_t i = 0; i < requests_.size(); ++i) {
    const RequestSpan& r = requests_[i];
    const auto event = [&](const char* phase, const char* name, double ts) {
      events.add({{"ph", phase},
                  {"cat", "request"},
                  {"name", name},
                  {"id", i},
                  {"pid", kRequests},
                  {"tid", 0},
                  {"ts", ts},
                  {"args", {{"prompt_tokens", r.prompt}, {"output_tokens", r.output}}}});
    };
    event("b", "request", r.arrival_us);
    event("b", "to the first token", r.arrival_us);
    event("e", "to the first token", r.first_us);
    event("b", "decode", r.first_us);
    event("e", "decode", r.last_us);
    event("e", "request", r.last_us);
  }
}

}  // namespace sluice
