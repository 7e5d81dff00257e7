#include "text/chat_call_reader.h"

#include <utility>

namespace sluice {
namespace {

constexpr size_t kMaxName = 1024;  // bytes of names, keys and tags

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string decoded(const std::string& json_string) {
  const OrderedJson value = OrderedJson::parse(json_string, nullptr, false);
  return value.is_string() ? value.get<std::string>() : "";
}

bool is_arguments(std::string_view key) {
  return key == "arguments" || key == "parameters" || key == "args";
}

/// Families decorate names: "functions.NAME:0", "NAME[CALL_ID]id".
std::string_view plain_name(std::string_view name) {
  const auto trim = [&name] {
    while (!name.empty() && is_space(name.front())) name.remove_prefix(1);
    while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
  };
  name = name.substr(0, name.find("[CALL_ID]"));
  trim();
  if (name.starts_with("functions.")) {
    name.remove_prefix(10);
    const size_t colon = name.rfind(':');
    if (colon != name.npos) name = name.substr(0, colon);
  }
  trim();
  return name;
}

}  // namespace

void CallReader::start(std::string_view opening) {
  *this = CallReader(*format_, *sink_);
  raw_ = opening;
}

CallReader::Result CallReader::push(char c) {
  if (!begun_) raw_ += c;
  const Result result = read(c);
  // Of what is no call, the last character may be the start of something else.
  if (result == Result::kBehind && !raw_.empty()) raw_.pop_back();
  if (result == Result::kBehind || (result == Result::kDone && !called_)) text_ = raw_;
  return result;
}

CallReader::Result CallReader::read(char c) {
  switch (state_) {
    case State::kBegin:
      return begin(c);
    case State::kKey:
    case State::kInKey:
    case State::kColon:
      return key(c);
    case State::kValue:
      return value(c);
    case State::kName:
    case State::kArguments:
    case State::kSkip:
      return scan(c);
    case State::kHead:
      return head(c);
    case State::kHeadJson:
      return head_json(c);
    case State::kTag:
    case State::kInTag:
      return tag(c);
    case State::kParameter:
      return parameter(c);
    case State::kAfter:
      return after(c);
    case State::kClose:
      break;
  }
  return close(c);
}

CallReader::Result CallReader::fail() {
  if (begun_) {
    end_arguments();
    end_call();
  }
  return Result::kBehind;
}

CallReader::Result CallReader::begin(char c) {
  if (is_space(c)) return Result::kMore;
  if (c == '[' && !in_array_) {
    in_array_ = true;
  } else if (c == '{') {
    state_ = State::kKey;
  } else if (c == ']' && in_array_) {
    in_array_ = false;
    state_ = State::kAfter;
  } else if (c == '<' && !format_->open.empty() && format_->calls != ChatFormat::Calls::kMarked) {
    word_ = c;
    state_ = State::kInTag;
  } else if (format_->calls == ChatFormat::Calls::kMarked && !in_array_) {
    word_ = c;
    state_ = State::kHead;
  } else {
    return fail();
  }
  return Result::kMore;
}

CallReader::Result CallReader::key(char c) {
  if (state_ == State::kInKey) {
    word_ += c;
    if (word_.size() > kMaxName) return fail();
    if (scanner_.push(c) == JsonScanner::Result::kLast) state_ = State::kColon;
    return Result::kMore;
  }
  if (is_space(c)) return Result::kMore;
  if (state_ == State::kColon) {
    if (c != ':') return fail();
    state_ = State::kValue;
  } else if (c == '"') {
    scanner_ = {};
    scanner_.push(c);
    word_ = c;
    state_ = State::kInKey;
  } else if (c == '}') {
    return end_object();
  } else if (c != ',') {
    return fail();
  }
  return Result::kMore;
}

CallReader::Result CallReader::value(char c) {
  if (is_space(c)) return Result::kMore;
  const std::string name = decoded(word_);
  if (name == "function" && c == '{' && nesting_ == 0) {
    ++nesting_;
    state_ = State::kKey;
    return Result::kMore;
  }
  word_.clear();
  scanner_ = {};
  if (name == "name" && c == '"' && name_.empty()) {
    state_ = State::kName;
  } else if (is_arguments(name) && !has_arguments_) {
    state_ = State::kArguments;
    has_arguments_ = true;
    quoted_ = c == '"';
  } else {
    state_ = State::kSkip;
  }
  return scan(c);
}

CallReader::Result CallReader::scan(char c) {
  const JsonScanner::Result result = scanner_.push(c);
  if (result != JsonScanner::Result::kBehind) {
    if (state_ == State::kArguments) add_arguments(c);
    if (state_ == State::kName) word_ += c;
    if (word_.size() > kMaxName) return fail();
    if (result == JsonScanner::Result::kInside) return Result::kMore;
  }
  const State ended = std::exchange(state_, State::kKey);
  if (ended == State::kName) return named();
  if (ended == State::kArguments && begun_) end_arguments();
  if (headed_) {
    end_call();
    return Result::kMore;
  }
  return result == JsonScanner::Result::kBehind ? key(c) : Result::kMore;
}

CallReader::Result CallReader::named() {
  name_ = decoded(word_);
  tool_ = sink_->find(name_);
  if (tool_ == nullptr) return fail();
  if (has_arguments_) {
    begin_call(name_);
    end_arguments();
  }
  return Result::kMore;
}

bool CallReader::begin_call(std::string_view name) {
  tool_ = sink_->find(name);
  if (tool_ == nullptr) return false;
  sink_->begin_call(*tool_);
  begun_ = called_ = true;
  raw_.clear();
  return true;
}

/// Once the tool is known, arguments are given out as they come.
void CallReader::add_arguments(char c) {
  if (!begun_ && tool_ != nullptr && !quoted_ && (c == '{' || c == '[')) begin_call(tool_->name);
  if (begun_ && !quoted_) {
    sink_->arguments(std::string_view(&c, 1));
  } else {
    arguments_ += c;
  }
}

void CallReader::end_arguments() {
  if (complete_) return;
  complete_ = true;
  if (is_xml_) sink_->arguments("}");
  if (!arguments_.empty()) {
    if (quoted_) arguments_ = decoded(arguments_);
    sink_->arguments(arguments_.empty() || arguments_ == "null" ? "{}" : arguments_);
    arguments_.clear();
  }
}

/// The object of a call ends, or one within it.
CallReader::Result CallReader::end_object() {
  if (nesting_ > 0) {
    --nesting_;
    return Result::kMore;
  }
  if (!begun_) {
    if (tool_ == nullptr) return fail();
    begin_call(tool_->name);
    if (!has_arguments_) arguments_ = "{}";
  }
  end_arguments();
  end_call();
  return Result::kMore;
}

void CallReader::end_call() {
  sink_->end_call();
  const bool in_array = in_array_;
  start("");
  called_ = true;
  in_array_ = in_array;
  state_ = State::kAfter;
}

CallReader::Result CallReader::head(char c) {
  word_ += c;
  if (word_.size() > kMaxName) return fail();
  if (!word_.ends_with(format_->separator)) return Result::kMore;
  word_.resize(word_.size() - format_->separator.size());
  name_ = plain_name(word_);
  word_.clear();
  state_ = State::kHeadJson;
  return Result::kMore;
}

/// DeepSeek-V3 writes "function", the separator, the name and a fence before the arguments.
CallReader::Result CallReader::head_json(char c) {
  if (c != '{') {
    word_ += c;
    return word_.size() > kMaxName || (c == '<' && word_.size() == 1) ? fail() : Result::kMore;
  }
  if (name_ == "function" && !word_.empty()) {
    name_ = plain_name(std::string_view(word_).substr(0, word_.find('\n')));
  }
  if (!begin_call(name_)) return fail();
  headed_ = true;
  scanner_ = {};
  has_arguments_ = true;
  state_ = State::kArguments;
  return scan(c);
}

CallReader::Result CallReader::after(char c) {
  if (is_space(c) || (in_array_ && c == ',')) return Result::kMore;
  const bool is_bare = format_->calls == ChatFormat::Calls::kBare;
  if (is_bare && (c == ';' || c == ',')) return Result::kMore;
  if (c == '{' && (in_array_ || format_->calls != ChatFormat::Calls::kMarked)) {
    state_ = State::kKey;
    raw_ = c;
    return Result::kMore;
  }
  if (c == ']' && in_array_) {
    in_array_ = false;
    return format_->close.empty() ? Result::kDone : Result::kMore;
  }
  if (c == '`') return Result::kMore;  // DeepSeek's fence
  if (format_->close.empty() || c != format_->close[0]) return fail();
  word_ = c;
  state_ = State::kClose;
  return Result::kMore;
}

CallReader::Result CallReader::close(char c) {
  word_ += c;
  if (!std::string_view(format_->close).starts_with(word_)) return fail();
  return word_ == format_->close ? Result::kDone : Result::kMore;
}

void CallReader::finish() {
  if (begun_ && complete_) end_call();
  if (!begun_) text_ = raw_;
}

}  // namespace sluice
