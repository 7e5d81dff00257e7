#include "serve/response_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr size_t kMaxTools = 1024;

/// A custom tool's format: any text, or a grammar.
void read_format(const Fields& tool, ChatTool& result) {
  const OrderedJson* format = tool.object("format");
  if (format == nullptr) return;
  const Fields fields(*format, tool.path("format"));
  if (fields.required_choice("type", {"text", "grammar"}) != "grammar") return;
  result.grammar_is_regex = fields.required_choice("syntax", {"lark", "regex"}) == "regex";
  result.grammar = fields.required_text("definition");
}

}  // namespace

std::string ResponseTools::model_name(const std::string& name, const std::string& space) {
  return space.empty() ? name : space + "__" + name;
}

ResponseToolName ResponseTools::client_name(const std::string& model_name) const {
  const auto found = names_.find(model_name);
  return found == names_.end() ? ResponseToolName{model_name, ""} : found->second;
}

void ResponseTools::add(const OrderedJson& tools, const std::string& param) {
  for (size_t i = 0; i < tools.size(); ++i) {
    const Fields tool(tools[i], fmt::format("{}[{}]", param, i));
    const std::string type = tool.required_text("type");
    if (type == "function" || type == "custom") {
      add_one(tool, "");
    } else if (type == "namespace") {
      const std::string space = tool.required_text("name");
      const OrderedJson* nested = tool.array("tools");
      for (size_t j = 0; nested != nullptr && j < nested->size(); ++j) {
        add_one(Fields((*nested)[j], fmt::format("{}[{}]", tool.path("tools"), j)), space);
      }
    }
  }
}

void ResponseTools::add_one(const Fields& tool, const std::string& space) {
  const std::string type = tool.required_text("type");
  if (type != "function" && type != "custom") return;
  ChatTool result;
  const std::string name = tool.required_text("name");
  result.name = model_name(name, space);
  result.description = tool.text("description").value_or("");
  result.is_custom = type == "custom";
  if (result.is_custom) {
    read_format(tool, result);
  } else if (const OrderedJson* parameters = tool.object("parameters")) {
    result.parameters = *parameters;
  }
  result.strict = tool.boolean("strict", false);
  if (callable_.size() >= kMaxTools) tool.fail("name", fmt::format("at most {} tools", kMaxTools));
  // The first of two tools with one name is kept.
  if (names_.emplace(result.name, ResponseToolName{name, space}).second) {
    callable_.push_back(std::move(result));
  }
}

const ChatTool& ResponseTools::named(const Fields& choice) const {
  const std::string name = choice.required_text("name");
  const std::string space = choice.text("namespace").value_or("");
  for (const ChatTool& tool : callable_) {
    const ResponseToolName client = client_name(tool.name);
    if (client.name == name && (space.empty() || client.space == space)) return tool;
  }
  choice.fail("name", "the name of one of the request's tools");
}

std::vector<std::string> ResponseTools::allowed(const Fields& choice) const {
  const OrderedJson* list = choice.array("tools");
  if (list == nullptr) choice.fail("tools", "an array of tools");
  std::vector<std::string> result;
  for (size_t i = 0; i < list->size(); ++i) {
    const Fields entry((*list)[i], fmt::format("{}[{}]", choice.path("tools"), i));
    const std::string type = entry.required_text("type");
    if (type == "function" || type == "custom") result.push_back(named(entry).name);
  }
  return result;
}

void ResponseTools::choose(const Fields& body, ChatRequest& request) const {
  request.parallel_calls = body.boolean("parallel_tool_calls", true);
  request.tools = callable_;
  const OrderedJson* value = body.find("tool_choice");
  if (value == nullptr) return;
  std::string mode;
  if (value->is_object()) {
    const Fields choice(*value, body.path("tool_choice"));
    const std::string type =
        choice.required_choice("type", {"function", "custom", "allowed_tools"});
    if (type == "allowed_tools") {
      request.allowed_tools = allowed(choice);
      mode = choice.choice("mode", {"auto", "required"}).value_or("auto");
      if (request.allowed_tools.empty()) {  // only hosted ones, which the model is not shown
        if (mode == "required") choice.fail("tools", "one that can be called");
        mode = "none";
      }
    } else {
      request.tool_choice = ToolChoice::kNamed;
      request.named_tool = named(choice).name;
      return;
    }
  } else {
    mode = body.required_choice("tool_choice", {"auto", "none", "required"});
  }
  if (mode == "none") request.tool_choice = ToolChoice::kNone;
  if (mode != "required") return;
  if (request.tools.empty()) body.fail("tool_choice", "tools that can be called with it");
  request.tool_choice = ToolChoice::kRequired;
}

OrderedJson ResponseTools::echo(const OrderedJson* tools) {
  OrderedJson result = tools == nullptr ? OrderedJson::array() : *tools;
  for (OrderedJson& tool : result) {
    if (tool["type"] != "function") continue;
    for (const char* key : {"description", "parameters", "strict"}) {
      if (!tool.contains(key)) tool[key] = nullptr;
    }
  }
  return result;
}

}  // namespace sluice
