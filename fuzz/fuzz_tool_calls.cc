// An answer of any family, whole and in pieces; the same text as a Lark grammar. The first byte
// says which family and whether the prompt has opened the thinking.
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/error.h"
#include "text/chat_parser.h"
#include "text/constraint.h"
#include "text/lark.h"

namespace {

using namespace sluice;

constexpr std::string_view kTemplates[] = {"tools <tool_call> <think></think>",
                                           "tools <tool_call><function=",
                                           "tools <|python_tag|>",
                                           "tools [TOOL_CALLS]x[ARGS][THINK][/THINK]",
                                           "tools [TOOL_CALLS][",
                                           "tools <｜tool▁calls▁begin｜></think>",
                                           "tools <|tool_call_begin|>",
                                           "tools <|channel|>"};

std::vector<ChatTool> make_tools() {
  std::vector<ChatTool> tools(3);
  tools[0].name = "add";
  tools[0].parameters = {{"type", "object"}, {"properties", {{"place", {{"type", "string"}}}}}};
  tools[1].name = "ping";
  tools[2].name = "patch";
  tools[2].is_custom = true;
  return tools;
}

/// The deltas as one text; traps if they do not follow each other as they must.
class Transcript {
 public:
  void add(const std::vector<ChatDelta>& deltas) {
    for (const ChatDelta& delta : deltas) add(delta);
  }
  const std::string& text() const { return text_; }

 private:
  void add(const ChatDelta& delta) {
    const bool is_text =
        delta.kind == ChatDelta::Kind::kText || delta.kind == ChatDelta::Kind::kReasoning;
    const bool begins = delta.kind == ChatDelta::Kind::kCallBegin;
    if (begins == open_ && !is_text) __builtin_trap();
    if (!is_text) open_ = delta.kind != ChatDelta::Kind::kCallEnd;
    if (begins) ++n_calls_;
    if (!is_text && delta.call != n_calls_ - 1) __builtin_trap();
    if (delta.kind != last_ || begins) text_ += static_cast<char>(delta.kind);
    last_ = delta.kind;
    text_ += delta.name + delta.text;
  }

  std::string text_;
  ChatDelta::Kind last_ = ChatDelta::Kind::kCallEnd;
  bool open_ = false;
  int n_calls_ = 0;
};

std::string parse(const ChatFormat& format, bool thinking, std::string_view text, size_t piece) {
  static const std::vector<ChatTool> tools = make_tools();
  ChatParser parser(format, tools, thinking);
  Transcript transcript;
  for (size_t at = 0; at < text.size(); at += piece) {
    transcript.add(parser.push(text.substr(at, piece)));
  }
  transcript.add(parser.finish());
  return transcript.text();
}

void compile(std::string_view lark) {
  static const auto vocabulary = std::make_shared<VocabularyTrie>(
      std::vector<std::string>{"</s>", "a", "*"}, std::vector<int32_t>{0});
  try {
    GrammarBuilder builder("fuzz");
    const Expr all = lark_grammar(builder, lark, /*json_string=*/true);
    compile_grammar(builder.build(builder.rule("all", all)), vocabulary);
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t family = data[0] % std::size(kTemplates);
  const ChatFormat format = detect_chat_format(kTemplates[family]);
  const bool thinking = data[0] / std::size(kTemplates) % 2 == 1;
  const std::string whole = parse(format, thinking, text, size);
  if (parse(format, thinking, text, 1) != whole) __builtin_trap();
  if (parse(format, thinking, text, 7) != whole) __builtin_trap();
  if (size < 2000) compile(text);
  return 0;
}
