#include "text/chat_delta.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kInputForm = R"({"input":")";
constexpr const char* kReplacement = "\xEF\xBF\xBD";

bool is_high_surrogate(std::string_view escape) {
  return escape.size() >= 4 && (escape[2] == 'd' || escape[2] == 'D') &&
         std::string_view("89abAB").find(escape[3]) != std::string_view::npos;
}

/// Whether "\..." is whole.
bool is_whole(std::string_view escape) {
  if (escape.size() < 2 || escape[1] != 'u') return escape.size() == 2;
  return escape.size() == (is_high_surrogate(escape) ? 12U : 6U);
}

std::string unescape(const std::string& escape) {
  const OrderedJson value = OrderedJson::parse("\"" + escape + "\"", nullptr, false);
  return value.is_string() ? value.get<std::string>() : kReplacement;
}

}  // namespace

std::string InputDecoder::push(char c) {
  switch (state_) {
    case State::kPrefix:
      held_ += c;
      if (std::string_view(" \t\r\n").find(c) != std::string_view::npos) return "";
      if (c != kInputForm[n_matched_]) {
        state_ = State::kRaw;
        return std::exchange(held_, "");
      }
      if (++n_matched_ == kInputForm.size()) {
        held_.clear();
        state_ = State::kText;
      }
      return "";
    case State::kText:
      if (held_.empty() && c == '"') state_ = State::kEnded;
      if (held_.empty() && c != '\\') return c == '"' ? "" : std::string(1, c);
      held_ += c;
      return is_whole(held_) ? unescape(std::exchange(held_, "")) : "";
    case State::kEnded:
      return "";
    case State::kRaw:
      break;
  }
  return std::string(1, c);
}

std::string InputDecoder::finish() {
  return state_ == State::kPrefix ? std::exchange(held_, "") : "";
}

void DeltaSink::add(ChatDelta::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (deltas_.empty() || deltas_.back().kind != kind) {
    ChatDelta& delta = deltas_.emplace_back();
    delta.kind = kind;
    if (kind == ChatDelta::Kind::kArguments) {
      delta.call = n_calls_ - 1;
      delta.is_custom = is_custom_;
    }
  }
  deltas_.back().text += text;
}

const ChatTool* DeltaSink::find(std::string_view name) const {
  const auto found = std::find_if(tools_.begin(), tools_.end(),
                                  [name](const ChatTool& tool) { return tool.name == name; });
  return found == tools_.end() ? nullptr : &*found;
}

void DeltaSink::begin_call(const ChatTool& tool) {
  is_custom_ = tool.is_custom;
  input_ = {};
  ChatDelta& delta = deltas_.emplace_back();
  delta.kind = ChatDelta::Kind::kCallBegin;
  delta.call = n_calls_++;
  delta.name = tool.name;
  delta.is_custom = is_custom_;
}

void DeltaSink::arguments(std::string_view text) {
  if (!is_custom_) return add(ChatDelta::Kind::kArguments, text);
  for (const char c : text) add(ChatDelta::Kind::kArguments, input_.push(c));
}

void DeltaSink::end_call() {
  if (is_custom_) add(ChatDelta::Kind::kArguments, input_.finish());
  ChatDelta& delta = deltas_.emplace_back();
  delta.kind = ChatDelta::Kind::kCallEnd;
  delta.call = n_calls_ - 1;
  delta.is_custom = is_custom_;
}

std::vector<ChatDelta> DeltaSink::take() { return std::exchange(deltas_, {}); }

}  // namespace sluice
