// The format of gpt-oss: an answer is a row of messages, each with a channel and perhaps a
// recipient:
//   <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...
#pragma once

#include <string>
#include <string_view>

#include "text/chat_delta.h"
#include "text/json_scanner.h"

namespace sluice {

/// The channel "analysis" is thinking; what is addressed to functions.NAME is a call; the rest is
/// text. Text without a header counts as text.
class HarmonyParser {
 public:
  /// `sink` must live on.
  explicit HarmonyParser(DeltaSink& sink) : sink_(sink) {}

  void push(char c);
  void finish();
  bool thinking() const { return state_ == State::kBody && kind_ == Kind::kThinking; }

 private:
  enum class State { kHeader, kBody };
  enum class Kind { kText, kThinking, kCall, kAfterCall };

  void header(char c);
  void begin_body();
  void body(char c);
  void show(char c);
  void end_message();

  DeltaSink& sink_;
  State state_ = State::kHeader;
  Kind kind_ = Kind::kText;
  std::string header_, held_;
  bool is_json_ = false, begun_ = false;  // a call's arguments
  JsonScanner scanner_;
};

}  // namespace sluice
