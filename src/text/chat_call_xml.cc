// The calls of CallReader that are written as XML.
#include <fmt/format.h>

#include <array>

#include "text/chat_call_reader.h"

namespace sluice {
namespace {

constexpr size_t kMaxTag = 1024;
constexpr std::string_view kFunction = "<function=", kParameter = "<parameter=";
constexpr std::string_view kFunctionEnd = "</function>";
constexpr std::string_view kValueEnd = "\n</parameter>";  // the line break belongs to it

bool may_be_tag(std::string_view text) {
  return kFunctionEnd.starts_with(text) || kFunction.starts_with(text) ||
         kParameter.starts_with(text) || text.starts_with(kFunction) ||
         text.starts_with(kParameter);
}

bool may_be_end(std::string_view text) {
  return kValueEnd.starts_with(text) || kValueEnd.substr(1).starts_with(text);
}

std::string escaped(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      return uint8_t(c) < 0x20 ? fmt::format("\\u{:04x}", uint8_t(c)) : std::string(1, c);
  }
}

bool is_string(const ChatTool& tool, const std::string& parameter) {
  const OrderedJson schema = arguments_schema(tool);
  if (!schema.is_object() || !schema.contains("properties")) return false;
  const OrderedJson& properties = schema["properties"];
  if (!properties.is_object() || !properties.contains(parameter)) return false;
  const OrderedJson& property = properties[parameter];
  return property.is_object() && property.contains("type") && property["type"] == "string";
}

}  // namespace

CallReader::Result CallReader::tag(char c) {
  if (state_ == State::kTag) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') return Result::kMore;
    word_.clear();
    state_ = State::kInTag;
  }
  word_ += c;
  if (!may_be_tag(word_) || word_.size() > kMaxTag) return fail();
  if (c != '>') return Result::kMore;
  std::string name = word_.substr(word_.find('=') + 1);
  name.pop_back();
  state_ = State::kTag;
  if (word_ == kFunctionEnd) {
    if (!begun_) return fail();
    end_arguments();
    end_call();
  } else if (word_.starts_with(kFunction)) {
    if (begun_ || !begin_call(name)) return fail();
    is_xml_ = true;
    sink_->arguments("{");
  } else {
    if (!begun_) return fail();
    begin_parameter(name);
  }
  return Result::kMore;
}

void CallReader::begin_parameter(const std::string& name) {
  sink_->arguments(n_parameters_++ > 0 ? ", " : "");
  sink_->arguments(OrderedJson(name).dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  sink_->arguments(": ");
  is_text_ = is_string(*tool_, name);
  if (is_text_) sink_->arguments("\"");
  value_.clear();
  held_.clear();
  at_line_start_ = true;
  state_ = State::kParameter;
}

CallReader::Result CallReader::parameter(char c) {
  if (std::exchange(at_line_start_, false) && c == '\n') return Result::kMore;
  held_ += c;
  while (!held_.empty() && !may_be_end(held_)) {
    if (is_text_) {
      sink_->arguments(escaped(held_[0]));
    } else {
      value_ += held_[0];
    }
    held_.erase(0, 1);
  }
  if (held_ == kValueEnd || held_ == kValueEnd.substr(1)) end_parameter();
  return Result::kMore;
}

void CallReader::end_parameter() {
  if (is_text_) {
    sink_->arguments("\"");
  } else if (OrderedJson::accept(value_)) {
    sink_->arguments(value_);
  } else {
    sink_->arguments(
        OrderedJson(value_).dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  }
  state_ = State::kTag;
}

}  // namespace sluice
