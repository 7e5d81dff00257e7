// How a model family writes its thinking and its calls of tools, and the tools of a request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sluice {

class Tokenizer;

struct ChatTool {
  std::string name;
  std::string description;
  OrderedJson parameters;  // JSON schema; null: any object
  bool strict = false;     // arguments keep to the schema even if nothing demands a call
  bool is_custom = false;  // takes free text instead of JSON arguments
  std::string grammar;     // of a custom tool's text: a Lark grammar or a regex; empty: any text
  bool grammar_is_regex = false;
};

/// The schema of a tool's arguments. A custom tool's text is the string "input" of an object, so
/// that families know nothing but JSON.
OrderedJson arguments_schema(const ChatTool& tool);

struct ChatFormat {
  enum class Calls {
    kJson,     // open {"name": N, "arguments": A} close
    kArray,    // open [{"name": N, "arguments": A}, ...] close
    kBare,     // {"name": N, "parameters": A}, and nothing else in the answer
    kXml,      // open <function=N><parameter=K>V</parameter>...</function> close
    kMarked,   // open N separator A close
    kHarmony,  // messages with channels; see chat_harmony.h
  } calls = Calls::kJson;
  std::string family = "plain";
  std::string open = "<tool_call>", close = "</tool_call>";
  std::string separator;                // kMarked
  std::string calls_open, calls_close;  // kMarked: around all calls; may be empty
  std::string think_open, think_close;  // empty: the model does not think aloud
  bool fenced = false;  // kMarked as DeepSeek-V3 has it: "function", separator, N, ```json A ```
  // What the template can show by itself; see shown_messages().
  bool shows_tools = false, shows_calls = false;

  /// Names that are single tokens in the family's vocabulary.
  std::vector<std::string> markers() const;
};

/// Known by what the template's text contains. For a template that does not know of tools:
/// "plain", whose calls are <tool_call>{"name": ..., "arguments": {...}}</tool_call>.
ChatFormat detect_chat_format(std::string_view template_text);

/// The special tokens among the markers, ascending.
std::vector<int32_t> marker_tokens(const ChatFormat& format, const Tokenizer& tokenizer);

/// The messages as the template can show them: if it knows no tools, these are described in the
/// system message, and in the plain form calls of the first four follow as a demonstration; if it
/// knows no calls, they are texts of the assistant, and results of the user. Nothing stands between
/// demonstrations and conversation: with instructions there, SmolLM2-135M called the right tool in
/// 0 of 36 answers, with instructions before them in 22.
OrderedJson shown_messages(const OrderedJson& messages, const std::vector<ChatTool>& tools,
                           const ChatFormat& format);

}  // namespace sluice
