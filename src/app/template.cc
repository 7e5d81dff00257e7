// sluice template: renders a conversation with a chat template.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/commands.h"
#include "app/line_mode.h"
#include "app/report.h"
#include "app/runtime.h"
#include "base/error.h"

namespace sluice {
namespace {

struct TemplateOptions {
  std::string model, file, messages, tools;
  std::vector<std::string> variables;
  bool no_generation_prompt = false, continue_final = false, json = false, jsonl = false;
};

bool parse(TemplateOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(
      app, "template", "[flags] (--messages FILE | --jsonl)",
      "Prints the text that a model sees for a conversation. The messages are a JSON list of "
      "objects like {\"role\": \"user\", \"content\": \"Hi\"}.",
      {"sluice template --messages chat.json",
       "sluice template --template chat_template.jinja --messages chat.json --tools tools.json",
       "sluice template --messages chat.json --var enable_thinking=false"});
  CLI::Option* messages =
      add_text(app, "--messages", "FILE", o.messages, "the conversation (JSON); -: standard input")
          ->group("Conversation");
  add_text(app, "--tools", "FILE", o.tools, "tools that the model may call (JSON list)")
      ->group("Conversation");
  app.add_option("--var", o.variables, "a variable for the template; may be repeated")
      ->type_name("NAME=JSON")
      ->allow_extra_args(false)
      ->group("Conversation");
  add_switch(app, "--no-generation-prompt", o.no_generation_prompt,
             "do not begin the assistant's answer at the end")
      ->group("Conversation");
  add_switch(app, "--continue-final", o.continue_final,
             "end inside the last message, so that the model continues it")
      ->group("Conversation");
  CLI::Option* lines =
      add_switch(app, "--jsonl", o.jsonl,
                 "each line of standard input is an object {\"template\", \"messages\", \"tools\", "
                 "...}; prints a JSON string, or {\"error\": ...}, per line")
          ->group("Conversation")
          ->excludes(messages);
  add_model_flag(app, o.model);
  add_text(app, "--template", "FILE", o.file, "a Jinja template instead of the model's")
      ->group("Model");
  add_switch(app, "--json", o.json, "print one object")->group("Output");
  if (!parse_flags(app, argc, argv)) return false;
  if (messages->count() + lines->count() == 0) {
    throw UsageError("--messages: expected --messages or --jsonl");
  }
  return true;
}

OrderedJson read_json(const std::string& path) { return parse_ordered_json(read_text(path), path); }

/// Adds "enable_thinking=false". A value that is no JSON is a text.
void add_variable(const std::string& text, OrderedJson& variables) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError(fmt::format("--var: expected NAME=JSON, got \"{}\"", text));
  }
  const std::string value = text.substr(equals + 1);
  OrderedJson parsed;
  try {
    parsed = parse_ordered_json(value, "--var");
  } catch (const Error&) {
    parsed = value;
  }
  variables[text.substr(0, equals)] = std::move(parsed);
}

std::string render(const TemplateOptions& o) {
  TemplateInput input;
  input.messages = read_json(o.messages);
  // A file may hold a whole request.
  if (input.messages.is_object() && input.messages.contains("messages")) {
    const OrderedJson request = std::move(input.messages);
    input.messages = request["messages"];
    if (request.contains("tools")) input.tools = request["tools"];
  }
  if (!o.tools.empty()) input.tools = read_json(o.tools);
  input.add_generation_prompt = !o.no_generation_prompt && !o.continue_final;
  input.continue_final_message = o.continue_final;
  std::string source, name = o.file;
  if (o.file.empty() || !o.model.empty()) {
    const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(model_path(o.model));
    name = checkpoint->path().string();
    source = chat_template_source(*checkpoint);
    if (has_tokenizer(*checkpoint))
      input.variables = template_variables(*open_tokenizer(*checkpoint));
  }
  if (!o.file.empty()) source = read_text(name = o.file);
  if (source.empty()) {
    throw Error(ErrorCode::kNotFound, "{}: expected a chat template, found none; see --template",
                name);
  }
  for (const std::string& text : o.variables) add_variable(text, input.variables);
  return ChatTemplate(std::move(source), name).render(input);
}

}  // namespace

int template_command(int argc, char** argv) {
  TemplateOptions o;
  if (!parse(o, argc, argv)) return kOk;
  if (o.jsonl) {
    serve_lines(
        [](const OrderedJson& request) { return OrderedJson(render_template_request(request)); });
    return kOk;
  }
  const std::string text = render(o);
  if (o.json) {
    print_json(Json{{"text", text}});
  } else {
    fmt::print("{}", text);
  }
  return kOk;
}

}  // namespace sluice
