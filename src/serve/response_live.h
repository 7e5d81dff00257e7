// One response while it is made: who watches it, and how it ends.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serve/chat.h"
#include "serve/openai.h"
#include "serve/response_events.h"

namespace sluice {

/// Safe to use from any thread.
class LiveResponse : public std::enable_shared_from_this<LiveResponse> {
 public:
  /// Called one at a time; neither may call back into the response.
  struct Listener {
    std::function<void(const ResponseEvent&)> event;       // in order; may be empty
    std::function<void(const OrderedJson& resource)> end;  // after the last event
  };
  /// Keeps what the response has become, then calls `kept` once, from any thread: only then the
  /// listeners hear of the end.
  using Settle = std::function<void(const OrderedJson& resource, const std::vector<ResponseEvent>&,
                                    std::function<void()> kept)>;

  /// `held` is let go after the end.
  LiveResponse(const ResponseRequest& request, const ServedModel& model, std::shared_ptr<void> held,
               Settle settle);

  /// Starts to answer, or without `generate` only computes the prompt. `accepted` is called, before
  /// any event, when nothing is wrong with the request; otherwise an ApiError is thrown.
  void start(const ServedModel& model, ChatRequest chat, bool generate,
             std::function<void()> accepted);
  /// As start(), but has the model write a summary before: `next` gets it on the engine's thread,
  /// or is never called if the response ends before. It leads to go_on().
  void summarise(const ServedModel& model, ChatRequest chat, std::function<void()> accepted,
                 std::function<void(const std::string&)> next);
  /// Shows `item`, and starts the answer or, without `chat`, ends. Throws ApiError.
  void go_on(const ServedModel& model, OrderedJson item, std::optional<ChatRequest> chat);
  void fail(const GenerationError& error) { end(error, {}); }
  /// All events after number `after`, those to come, and the end. Events that have passed are only
  /// known of background responses.
  void listen(Listener listener, int64_t after = -1);
  /// Ends within a step of the engine, as cancelled.
  void cancel();
  /// Tells the listeners that the response is still being made.
  void show_life();
  OrderedJson snapshot();

 private:
  void run(const ServedModel& model, ChatRequest chat, ChatSinks sinks);
  /// For ChatSinks::accepted.
  std::function<void(int64_t)> begin(std::function<void()> accepted);
  ChatSinks answer_sinks(bool generate);
  void end(const GenerationError& error, ChatUsage usage, bool generate = true);
  void publish(ResponseEvent event);
  void settle();
  void deliver();

  std::mutex mutex_;
  ResponseBuilder builder_;
  const bool keeps_log_;
  std::shared_ptr<void> held_;
  Settle settle_;
  std::shared_ptr<Generation> generation_;
  std::vector<Listener> listeners_;
  std::vector<ResponseEvent> log_, last_;  // last_: the event that waits to be kept
  ChatUsage spent_;                        // on a summary
  int n_turns_ = 0;                        // generations begun
  bool ended_ = false, delivered_ = false;
};

}  // namespace sluice
