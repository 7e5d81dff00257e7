// The parts that an answer's text falls into.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chat_format.h"

namespace sluice {

/// The next part of a choice's answer.
struct ChatDelta {
  enum class Kind {
    kReasoning,  // `text`: more of the thinking before the answer
    kText,       // `text`: more of the answer
    kCallBegin,  // `name` and `id` of call number `call`
    kArguments,  // `text`: more of that call's arguments (JSON) or a custom tool's input
    kCallEnd,    // the call is whole
  } kind = Kind::kText;
  std::string text;
  int call = 0;  // 0, 1, ... within the choice
  std::string name, id;
  bool is_custom = false;
};

/// Turns the arguments {"input": "..."} of a custom tool into the text itself. Arguments of any
/// other form stay what they are.
class InputDecoder {
 public:
  std::string push(char c);
  std::string finish();

 private:
  std::string held_;  // the form's beginning, or an escape
  size_t n_matched_ = 0;
  enum class State { kPrefix, kText, kEnded, kRaw } state_ = State::kPrefix;
};

/// Collects what a parser finds; neighbours of one kind become one delta.
class DeltaSink {
 public:
  /// `tools` must live on.
  explicit DeltaSink(const std::vector<ChatTool>& tools) : tools_(tools) {}

  void add(ChatDelta::Kind kind, std::string_view text);
  const ChatTool* find(std::string_view name) const;  // nullptr: no such tool
  void begin_call(const ChatTool& tool);
  void arguments(std::string_view text);
  void end_call();

  bool has_tools() const { return !tools_.empty(); }
  int n_calls() const { return n_calls_; }
  std::vector<ChatDelta> take();

 private:
  const std::vector<ChatTool>& tools_;
  std::vector<ChatDelta> deltas_;
  int n_calls_ = 0;
  bool is_custom_ = false;
  InputDecoder input_;
};

}  // namespace sluice
