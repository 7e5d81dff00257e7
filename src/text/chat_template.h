// Chat templates: renders a conversation to the prompt text with the Jinja template of a
// checkpoint.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace sluice {

namespace jinja {
class Template;
}

/// What a template sees. The names are those that published templates use.
struct TemplateInput {
  OrderedJson messages = OrderedJson::array();
  OrderedJson tools;                              // null when absent
  OrderedJson documents;                          // null when absent
  OrderedJson variables = OrderedJson::object();  // bos_token, eos_token, enable_thinking, ...
  bool add_generation_prompt = false;
  /// Ends the text with the content of the last message, so that the model continues it.
  bool continue_final_message = false;
  /// Local time for strftime_now, "YYYY-MM-DDTHH:MM:SS"; empty: the clock.
  std::string now;
};

/// Range of code points [first, second) of a rendered text.
using TextSpan = std::pair<size_t, size_t>;

/// A parsed template. Renders as Python's jinja2 does with the settings of Hugging Face
/// transformers (trim_blocks, lstrip_blocks, loop controls, {% generation %}, immutable sandbox).
///
/// Errors are kInvalidInput, "NAME: line N: ...", for faults of syntax and of rendering, including
/// raise_exception(). Nesting, steps, memory and output are bounded; beyond them kResource is
/// thrown. Rendering is const and may run on several threads at once.
class ChatTemplate {
 public:
  explicit ChatTemplate(std::string source, std::string name = "chat template");

  std::string render(const TemplateInput& input) const;
  /// As above; `generation` receives what {% generation %} blocks produced (the assistant's
  /// tokens).
  std::string render(const TemplateInput& input, std::vector<TextSpan>* generation) const;

 private:
  std::string name_;
  std::shared_ptr<const jinja::Template> template_;
};

/// Renders one JSON object {template, messages, tools?, documents?, add_generation_prompt?,
/// continue_final_message?, now?, <further variables>}. Throws as ChatTemplate does.
std::string render_template_request(const OrderedJson& request);

}  // namespace sluice
