#include "text/chat_harmony.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr size_t kMaxHeader = 512;
constexpr std::string_view kMessage = "<|message|>", kChannel = "<|channel|>";
constexpr std::string_view kHeaders[] = {kChannel,        kMessage, "<|start|>",
                                         "<|constrain|>", " to=",   "to="};
constexpr std::string_view kEnds[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>"};

/// What stands between `key` and the next space or marker.
std::string_view word_after(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == header.npos) return {};
  const std::string_view rest = header.substr(at + key.size());
  return rest.substr(0, rest.find_first_of(" <"));
}

bool may_be_header(std::string_view text) {
  return text.size() <= kMaxHeader &&
         std::any_of(std::begin(kHeaders), std::end(kHeaders), [text](std::string_view start) {
           return start.starts_with(text) || text.starts_with(start);
         });
}

}  // namespace

void HarmonyParser::push(char c) {
  if (state_ == State::kHeader) return header(c);
  held_ += c;
  const auto is_held = [this](std::string_view marker) { return marker == held_; };
  const auto may_be = [this](std::string_view marker) { return marker.starts_with(held_); };
  while (!held_.empty()) {
    if (std::any_of(std::begin(kEnds), std::end(kEnds), is_held)) return end_message();
    if (std::any_of(std::begin(kEnds), std::end(kEnds), may_be)) return;
    show(held_[0]);
    held_.erase(0, 1);
  }
}

void HarmonyParser::header(char c) {
  header_ += c;
  if (header_.ends_with(kMessage)) return begin_body();
  if (may_be_header(header_) || header_ == "assistant") return;
  // Behind <|start|>, the role comes first.
  if (std::string_view("assistant").starts_with(header_) || header_.starts_with("assistant")) {
    if (header_.size() <= kMaxHeader) return;
  }
  state_ = State::kBody;
  kind_ = Kind::kText;
  for (const char each : std::exchange(header_, "")) push(each);
}

void HarmonyParser::begin_body() {
  state_ = State::kBody;
  const std::string header = std::exchange(header_, "");
  std::string_view recipient = word_after(header, "to=");
  if (word_after(header, kChannel) == "analysis" && recipient.empty()) {
    kind_ = Kind::kThinking;
    return;
  }
  kind_ = Kind::kText;
  if (recipient.empty()) return;
  constexpr std::string_view kFunctions = "functions.";
  if (recipient.starts_with(kFunctions)) recipient.remove_prefix(kFunctions.size());
  const ChatTool* tool = sink_.find(recipient);
  if (tool == nullptr) return sink_.add(ChatDelta::Kind::kText, header);
  sink_.begin_call(*tool);
  kind_ = Kind::kCall;
  begun_ = false;
  scanner_ = {};
}

void HarmonyParser::show(char c) {
  if (kind_ == Kind::kText) sink_.add(ChatDelta::Kind::kText, std::string_view(&c, 1));
  if (kind_ == Kind::kThinking) sink_.add(ChatDelta::Kind::kReasoning, std::string_view(&c, 1));
  if (kind_ != Kind::kCall) return;
  if (!std::exchange(begun_, true)) is_json_ = c == '{';
  sink_.arguments(std::string_view(&c, 1));
  if (is_json_ && scanner_.push(c) == JsonScanner::Result::kLast) {
    sink_.end_call();
    kind_ = Kind::kAfterCall;
  }
}

void HarmonyParser::end_message() {
  if (kind_ == Kind::kCall) sink_.end_call();
  held_.clear();
  state_ = State::kHeader;
  kind_ = Kind::kText;
}

void HarmonyParser::finish() {
  for (const char c : std::exchange(held_, "")) show(c);
  if (kind_ == Kind::kCall && begun_ && !is_json_) sink_.end_call();
  if (!header_.starts_with("<|")) sink_.add(ChatDelta::Kind::kText, std::exchange(header_, ""));
}

}  // namespace sluice
