#include "text/chat_parser.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

ChatParser::ChatParser(const ChatFormat& format, const std::vector<ChatTool>& tools, bool thinking)
    : format_(format),
      sink_(tools),
      reader_(format_, sink_),
      harmony_(sink_),
      state_(thinking ? State::kThinking : State::kText) {
  if (!sink_.has_tools()) return;
  if (!format.open.empty()) openings_.push_back(format.open);
  if (format.calls == ChatFormat::Calls::kXml) openings_.push_back("<function=");
}

bool ChatParser::thinking() const {
  return format_.calls == ChatFormat::Calls::kHarmony ? harmony_.thinking()
                                                      : state_ == State::kThinking;
}

std::vector<ChatDelta> ChatParser::push(std::string_view text) {
  for (const char c : text) {
    if (format_.calls == ChatFormat::Calls::kHarmony) {
      harmony_.push(c);
    } else {
      step(c);
    }
  }
  return sink_.take();
}

std::vector<ChatDelta> ChatParser::finish(bool cut) {
  if (format_.calls == ChatFormat::Calls::kHarmony) {
    harmony_.finish();
    return sink_.take();
  }
  if (state_ == State::kCall) {
    reader_.finish();
    state_ = State::kText;
    const std::string text = reader_.take_text();
    if (!cut) show(text);
  }
  const bool may_open =
      state_ == State::kText &&
      std::ranges::any_of(openings_, [this](std::string_view o) { return o.starts_with(held_); });
  if (cut && may_open) held_.clear();
  show(std::exchange(held_, ""));
  if (state_ == State::kText && n_calls() == 0) sink_.add(ChatDelta::Kind::kText, spaces_);
  return sink_.take();
}

void ChatParser::step(char c) {
  if (state_ == State::kCall) return read_call(c);
  const bool is_bare = format_.calls == ChatFormat::Calls::kBare && sink_.has_tools();
  if (state_ == State::kText && is_bare && at_start_ && held_.empty() && c == '{') {
    reader_.start(spaces_);
    spaces_.clear();
    state_ = State::kCall;
    return read_call(c);
  }
  held_ += c;
  resolve();
}

/// Shows what cannot be a marker any more.
void ChatParser::resolve() {
  const auto may_be = [this](std::string_view marker) { return marker.starts_with(held_); };
  while (!held_.empty() && !take_marker()) {
    const bool waits = state_ == State::kThinking
                           ? may_be(format_.think_close)
                           : std::any_of(openings_.begin(), openings_.end(), may_be) ||
                                 (at_start_ && !was_thinking_ && may_be(format_.think_open)) ||
                                 (n_calls() > 0 && may_be(format_.calls_close)) ||
                                 (sink_.has_tools() && may_be(format_.calls_open));
    if (waits) return;
    show(held_[0]);
    held_.erase(0, 1);
  }
}

bool ChatParser::take_marker() {
  if (state_ == State::kThinking) {
    if (held_ != format_.think_close) return false;
    state_ = State::kText;
    was_thinking_ = true;
  } else if (at_start_ && !was_thinking_ && held_ == format_.think_open) {
    state_ = State::kThinking;
  } else if (std::find(openings_.begin(), openings_.end(), held_) != openings_.end()) {
    state_ = State::kCall;
    // Without the marker around it, a call's own tag opens it.
    const bool is_tag = held_ != format_.open;
    reader_.start(is_tag ? "" : held_);
    for (const char c : std::exchange(held_, "")) {
      if (is_tag) reader_.push(c);
    }
    return true;
  } else if ((sink_.has_tools() && held_ == format_.calls_open) ||
             (n_calls() > 0 && held_ == format_.calls_close)) {
    held_.clear();
    return true;
  } else {
    return false;
  }
  held_.clear();
  spaces_.clear();
  at_start_ = true;
  return true;
}

void ChatParser::show(char c) {
  const bool is_thinking = state_ == State::kThinking;
  const auto kind = is_thinking ? ChatDelta::Kind::kReasoning : ChatDelta::Kind::kText;
  // Without calls and thinking nothing else can follow.
  const bool may_hold = is_thinking || was_thinking_ || sink_.has_tools() ||
                        (at_start_ && !format_.think_open.empty());
  if (is_space(c) && may_hold) {
    const bool dropped = at_start_ && (is_thinking || was_thinking_);
    if (!dropped) spaces_ += c;
    return;
  }
  at_start_ = false;
  sink_.add(kind, std::exchange(spaces_, ""));
  sink_.add(kind, std::string_view(&c, 1));
}

void ChatParser::read_call(char c) {
  const CallReader::Result result = reader_.push(c);
  if (result == CallReader::Result::kMore) return;
  state_ = State::kText;
  if (n_calls() > 0) spaces_.clear();
  show(reader_.take_text());
  at_start_ = false;
  if (result == CallReader::Result::kBehind) step(c);
}

}  // namespace sluice
