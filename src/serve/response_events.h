// What becomes of a response: the parts of an answer turned into its output items and its events.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/chat.h"
#include "serve/response_request.h"

namespace sluice {

/// An event as the client sees it.
struct ResponseEvent {
  int64_t number = 0;  // sequence_number
  std::string type;
  std::string json;
  bool is_last = false;
};

/// The "error" of a failed response, and what it tells of.
OrderedJson to_json(const GenerationError& error);
GenerationError to_error(const OrderedJson& json);

class ResponseBuilder {
 public:
  using Emit = std::function<void(ResponseEvent)>;

  /// `request` but for its chat is kept. `emit` is called within the methods below.
  ResponseBuilder(const ResponseRequest& request, const Tokenizer& tokenizer, Emit emit);

  /// The first events: created, then queued or in_progress.
  void begin();
  void take(const ChatPiece& piece);
  /// An item that is whole, before any piece.
  void add_item(OrderedJson item);
  /// The last event: completed or incomplete, or failed if `error` says why.
  void end(const GenerationError& error, const ChatUsage& usage);
  /// The last event of a response that shows nothing.
  void complete(ChatUsage usage);
  /// Ends the response as cancelled, without an event: nobody waits for one.
  void cancel();
  /// in_progress once more, for clients that give up on silence.
  ResponseEvent sign_of_life();

  /// The response object as it is now.
  const OrderedJson& resource() const { return resource_; }

 private:
  enum class Part { kNone, kReasoning, kMessage, kCall };

  void send(const char* type, OrderedJson fields, bool is_last = false);
  void send_state(const char* type, bool is_last = false);
  OrderedJson& item() { return resource_["output"].back(); }
  OrderedJson place() const;
  void leave_queue();
  void open(Part part, OrderedJson item);
  void open_reasoning();
  void open_message();
  void open_call(const ChatDelta& delta);
  void add_text(const std::string& text);
  OrderedJson take_scores();
  void add_arguments(const std::string& text);
  void close(const char* status);
  void close_reasoning();
  void close_message();
  void close_call();
  void finish(const char* status);

  const ResponseTools tools_;
  const bool scored_, seal_reasoning_;
  const Tokenizer& tokenizer_;
  const Emit emit_;
  OrderedJson resource_;
  int64_t next_number_ = 0;
  Part part_ = Part::kNone;
  bool is_custom_ = false;  // the open call
  std::string text_;        // of the open item
  OrderedJson scores_ = OrderedJson::array();
  std::vector<ScoredToken> pending_;  // scores whose text is still to come
  ChatFinish finish_ = ChatFinish::kNone;
};

}  // namespace sluice
