#include "text/chat_template.h"

#include <algorithm>

#include "text/jinja_objects.h"
#include "text/jinja_text.h"

namespace sluice {
namespace {

/// Templates read reasoning under one of two names; both are given.
OrderedJson with_both_reasoning_names(OrderedJson messages) {
  if (!messages.is_array()) return messages;
  for (OrderedJson& message : messages) {
    if (!message.is_object()) continue;
    const bool has_content = message.contains("reasoning_content");
    const bool has_thinking = message.contains("thinking");
    if (has_content && !has_thinking)
      message["thinking"] = OrderedJson(message["reasoning_content"]);
    if (has_thinking && !has_content)
      message["reasoning_content"] = OrderedJson(message["thinking"]);
  }
  return messages;
}

/// The text of the last message: its content, or the last text among the parts of its content.
std::string final_text(const OrderedJson& messages) {
  const OrderedJson* content = nullptr;
  if (messages.is_array() && !messages.empty() && messages.back().is_object()) {
    const auto found = messages.back().find("content");
    if (found != messages.back().end()) content = &*found;
  }
  if (content && content->is_array()) {
    const auto part = std::find_if(content->rbegin(), content->rend(), [](const OrderedJson& p) {
      return p.is_object() && p.contains("text");
    });
    content = part == content->rend() ? nullptr : &part->at("text");
  }
  if (!content || !content->is_string()) {
    throw Error(ErrorCode::kInvalidInput,
                "continue_final_message: the last message has no text to continue");
  }
  return content->get<std::string>();
}

/// Ends `rendered` after the last occurrence of the final message. Its trailing white space is kept
/// where the template kept it.
void cut_after_final_message(std::string& rendered, const OrderedJson& messages) {
  const std::string final_message = final_text(messages);
  const std::string stripped(jinja::strip(final_message));
  const size_t found = rendered.rfind(stripped);
  if (found == rendered.npos) {
    throw Error(ErrorCode::kInvalidInput,
                "continue_final_message: the template does not print the last message as it is");
  }
  const std::string_view left_stripped = jinja::strip(final_message, nullptr, true, false);
  const bool keeps_space = rendered.compare(found, left_stripped.size(), final_message) == 0;
  rendered.resize(found + (keeps_space ? left_stripped.size() : stripped.size()));
}

std::vector<TextSpan> to_code_points(const std::string& text,
                                     const std::vector<std::pair<size_t, size_t>>& byte_ranges) {
  std::vector<TextSpan> spans;
  size_t bytes = 0, code_points = 0;
  const auto advance = [&](size_t to) {
    code_points += jinja::count_code_points(std::string_view(text).substr(bytes, to - bytes));
    bytes = to;
    return code_points;
  };
  for (const auto& [begin, end] : byte_ranges) {
    const size_t first = advance(begin);
    spans.emplace_back(first, advance(end));
  }
  return spans;
}

/// Messages quote the template; what a hostile one makes long is cut.
std::string_view shortened(const char* message) {
  constexpr size_t kMaxMessage = 2000;
  const std::string_view text(message);
  size_t end = std::min(text.size(), kMaxMessage);
  while (end < text.size() && (text[end] & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

size_t size_of(const OrderedJson& json) {
  size_t bytes = 1;
  if (json.is_string()) bytes += json.get_ref<const std::string&>().size();
  if (json.is_structured()) {
    for (const auto& [key, item] : json.items()) bytes += key.size() + size_of(item);
  }
  return bytes;
}

void define_input(jinja::Runtime& runtime, const TemplateInput& input) {
  using jinja::Value;
  for (const auto& [name, value] : input.variables.items()) {
    runtime.define(name, Value::from_json(value));
  }
  runtime.define("messages", Value::from_json(with_both_reasoning_names(input.messages)));
  runtime.define("tools", Value::from_json(input.tools));
  runtime.define("documents", Value::from_json(input.documents));
  runtime.define("add_generation_prompt", input.add_generation_prompt);
}

}  // namespace

ChatTemplate::ChatTemplate(std::string source, std::string name) : name_(std::move(name)) {
  int line = 1;
  try {
    if (!jinja::is_valid_utf8(source)) jinja::fail("the template is not UTF-8");
    const jinja::Budget budget(source.size());
    template_ = std::make_shared<jinja::Template>(jinja::parse_template(source, line));
  } catch (const jinja::Failure& failure) {
    throw Error(failure.code, "{}: line {}: {}", name_, line, shortened(failure.what()));
  }
}

std::string ChatTemplate::render(const TemplateInput& input) const {
  return render(input, nullptr);
}

std::string ChatTemplate::render(const TemplateInput& input,
                                 std::vector<TextSpan>* generation) const {
  if (!input.variables.is_object()) {
    throw Error(ErrorCode::kInvalidInput, "{}: variables: expected an object, got {}", name_,
                input.variables.type_name());
  }
  jinja::Budget budget(size_of(input.messages) + size_of(input.tools) + size_of(input.documents) +
                       size_of(input.variables));
  jinja::Runtime runtime(template_->symbols, input.now);
  jinja::Output out;
  runtime.outermost = &out;
  try {
    define_input(runtime, input);
    runtime.execute(template_->body, out);
  } catch (const jinja::Failure& failure) {
    throw Error(failure.code, "{}: line {}: {}", name_, runtime.line(), shortened(failure.what()));
  }
  std::string text = out.take();
  if (generation) *generation = to_code_points(text, runtime.generation);
  if (input.continue_final_message) cut_after_final_message(text, input.messages);
  return text;
}

std::string render_template_request(const OrderedJson& request) {
  constexpr const char* kWhat = "template request";
  if (!request.is_object()) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected an object, got {}", kWhat,
                request.type_name());
  }
  const auto text = [&](const char* key) {
    const OrderedJson value = request.value(key, OrderedJson());
    if (!value.is_string()) {
      throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a string, got {}", kWhat, key,
                  value.type_name());
    }
    return value.get<std::string>();
  };
  const auto flag = [&](const char* key) {
    const OrderedJson value = request.value(key, OrderedJson(false));
    if (!value.is_boolean() && !value.is_null()) {
      throw Error(ErrorCode::kInvalidInput, "{}: {}: expected true or false, got {}", kWhat, key,
                  value.type_name());
    }
    return value.is_boolean() && value.get<bool>();
  };
  TemplateInput input;
  input.messages = request.value("messages", OrderedJson::array());
  input.tools = request.value("tools", OrderedJson());
  input.documents = request.value("documents", OrderedJson());
  input.add_generation_prompt = flag("add_generation_prompt");
  input.continue_final_message = flag("continue_final_message");
  if (request.contains("now")) input.now = text("now");
  constexpr std::string_view kOwn[] = {"template",
                                       "messages",
                                       "tools",
                                       "documents",
                                       "add_generation_prompt",
                                       "continue_final_message",
                                       "now"};
  for (const auto& [key, value] : request.items()) {
    if (std::find(std::begin(kOwn), std::end(kOwn), key) == std::end(kOwn)) {
      input.variables[key] = value;
    }
  }
  return ChatTemplate(text("template")).render(input);
}

}  // namespace sluice
