#include "text/chat_grammar.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/byte_vocabulary.h"
#include "text/chat_parser.h"
#include "text/constraint.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

/// A vocabulary without any family's markers: they are text.
const Tokenizer& tokenizer() {
  static const auto shared = Tokenizer::open(SLUICE_GOLDEN_DIR "/tokenizers/gpt2/tokenizer.json");
  return *shared;
}

std::vector<ChatTool> tools() {
  std::vector<ChatTool> result(2);
  result[0].name = "look";
  result[0].parameters = OrderedJson::parse(
      R"({"type": "object", "required": ["place", "n"], "additionalProperties": false,
          "properties": {"place": {"type": "string"}, "n": {"type": "integer"}}})");
  result[1].name = "patch";
  result[1].is_custom = true;
  result[1].grammar = "start: \"*\" /[a-z]+/ LF\n%import common.LF";
  return result;
}

ConstraintPtr compile(const ChatFormat& format, const AnswerGrammar& answer) {
  return compile_grammar(answer_grammar("answer", format, answer, tokenizer()), byte_vocabulary());
}

bool matches(const ConstraintPtr& compiled, std::string_view text) {
  const std::unique_ptr<TokenConstraint> constraint = start_constraint(compiled);
  for (const char byte : text) {
    if (!constraint->accept(1 + static_cast<uint8_t>(byte))) return false;
  }
  return constraint->accept(0);
}

struct Case {
  const char* format_template;
  std::string answer;
};

const std::string kArguments = R"({"place": "a \" b", "n": 3})";

const Case kCases[] = {
    {"messages", R"(<tool_call>{"name": "look", "arguments": )" + kArguments + "}</tool_call>"},
    {"tools <tool_call>",
     "<tool_call>\n{\"name\": \"look\", \"arguments\": " + kArguments + "}\n</tool_call>"},
    {"tools <|python_tag|>", R"({"name": "look", "parameters": )" + kArguments + "}"},
    {"tools [TOOL_CALLS][", R"([TOOL_CALLS][{"name": "look", "arguments": )" + kArguments + "}]"},
    {"tools [TOOL_CALLS][ARGS]", "[TOOL_CALLS]look[ARGS]" + kArguments},
    {"tools <|tool_call|>", R"(<|tool_call|>[{"name": "look", "arguments": )" + kArguments + "}]"},
    {"tools <tool_call><function=",
     "<tool_call>\n<function=look>\n<parameter=place>\na \" b\n</parameter>\n<parameter=n>\n3\n"
     "</parameter>\n</function>\n</tool_call>"},
    {"tools <｜tool▁calls▁begin｜>",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>" + kArguments +
         "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    {"tools <｜tool▁calls▁begin｜>```json",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n" +
         kArguments + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    {"tools <|tool_call_begin|>",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>" +
         kArguments + "<|tool_call_end|><|tool_calls_section_end|>"},
    {"tools <|channel|>",
     "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.look <|constrain|>json<|message|>" +
         kArguments},
};

TEST(ChatGrammar, AllowsWhatTheParserReads) {
  for (const Case& c : kCases) {
    const ChatFormat format = detect_chat_format(c.format_template);
    AnswerGrammar answer;
    answer.tools = tools();
    const ConstraintPtr compiled = compile(format, answer);
    EXPECT_TRUE(matches(compiled, c.answer)) << c.answer;
    EXPECT_FALSE(matches(compiled, "Hello")) << c.answer;
    std::string wrong = c.answer;
    wrong.replace(wrong.rfind('3'), 1, "x");
    EXPECT_FALSE(matches(compiled, wrong)) << wrong;
    const std::vector<ChatTool> known = tools();
    ChatParser parser(format, known, false);
    std::string arguments;
    for (const ChatDelta& delta : parser.push(c.answer)) {
      if (delta.kind == ChatDelta::Kind::kArguments) arguments += delta.text;
      EXPECT_NE(delta.kind, ChatDelta::Kind::kText) << c.answer;
    }
    EXPECT_EQ(OrderedJson::parse(arguments), OrderedJson::parse(kArguments)) << c.answer;
  }
}

TEST(ChatGrammar, KeepsCustomToolsToTheirGrammar) {
  AnswerGrammar answer;
  answer.tools = tools();
  const ConstraintPtr compiled = compile(detect_chat_format("messages"), answer);
  const auto call = [](const std::string& input) {
    return R"(<tool_call>{"name": "patch", "arguments": {"input": ")" + input + "\"}}</tool_call>";
  };
  EXPECT_TRUE(matches(compiled, call("*ab\\n")));
  EXPECT_FALSE(matches(compiled, call("*AB\\n")));
  EXPECT_TRUE(matches(compiled, call("*a\\n") + "\n" + call("*b\\n")));
  answer.parallel = false;
  EXPECT_FALSE(matches(compile(detect_chat_format("messages"), answer),
                       call("*a\\n") + "\n" + call("*b\\n")));
}

TEST(ChatGrammar, MayAlsoBeAText) {
  AnswerGrammar answer;
  answer.tools = tools();
  answer.text = [](GrammarBuilder& builder) { return builder.literal("[1]"); };
  const ConstraintPtr compiled = compile(detect_chat_format("messages"), answer);
  EXPECT_TRUE(matches(compiled, "[1]"));
  EXPECT_TRUE(matches(compiled, kCases[0].answer));
  answer.tools.clear();
  EXPECT_FALSE(matches(compile(detect_chat_format("messages"), answer), kCases[0].answer));
}

TEST(ChatGrammar, HoldsOnlyBehindTheMarkerOfAFreeAnswer) {
  AnswerGrammar answer;
  answer.tools = tools();
  answer.behind_open = true;
  const auto call = [](const std::string& name, const std::string& arguments) {
    return "Let me see: <tool_call>{\"name\": \"" + name + "\", \"arguments\": " + arguments +
           "}</tool_call>";
  };
  const ConstraintPtr plain = compile(detect_chat_format("messages"), answer);
  EXPECT_TRUE(matches(plain, "Let me see: <tool_cal"));
  EXPECT_TRUE(matches(plain, call("look", kArguments)));
  EXPECT_FALSE(matches(plain, call("dig", kArguments)));
  EXPECT_FALSE(matches(plain, call("look", R"({"place": "a"})")));
  EXPECT_FALSE(matches(plain, call("look", kArguments) + "!"));
  // What cannot be a grammar is any object.
  answer.tools[0].parameters["properties"]["n"]["not"] = true;
  const ConstraintPtr any = compile(detect_chat_format("messages"), answer);
  EXPECT_TRUE(matches(any, call("look", R"({"place": "a"})")));
  EXPECT_FALSE(matches(any, call("look", "[]")));
  answer.tools[0].strict = true;
  EXPECT_THROW(compile(detect_chat_format("messages"), answer), Error);
}

TEST(ChatGrammar, ErrorsNameTheTool) {
  AnswerGrammar answer;
  answer.tools = tools();
  answer.tools[1].grammar = "start: x{y}";
  try {
    compile(detect_chat_format("messages"), answer);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "tool patch: line 1: a template is not supported");
  }
}

}  // namespace
}  // namespace sluice
