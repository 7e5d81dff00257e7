#include "text/chat_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>

#include "text/chat_template.h"

namespace sluice {
namespace {

std::vector<ChatTool> tools() {
  std::vector<ChatTool> result(4);
  result[0].name = "get_weather";
  result[0].parameters = OrderedJson::parse(
      R"({"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "array"},
          "n": {"type": "integer"}}})");
  result[1].name = "add";
  result[2].name = "ping";
  result[3].name = "patch";
  result[3].is_custom = true;
  return result;
}

/// Enough of a template to be known by.
const std::map<std::string, std::string> kTemplates = {
    {"plain", "{{ messages }}"},
    {"hermes", "{{ tools }}<tool_call>{{ tool_calls }}"},
    {"qwen3", "{{ tools }}<tool_call>{{ tool_calls }}<think></think>"},
    {"coder", "{{ tools }}<tool_call><function="},
    {"llama3", "{{ tools }}{\"name\": \"x\", \"parameters\": "},
    {"mistral", "{{ tools }}[TOOL_CALLS]x[ARGS][THINK][/THINK]"},
    {"mistral-array", "{{ tools }}[TOOL_CALLS]["},
    {"deepseek", "{{ tools }}<think></think><｜tool▁calls▁begin｜>"},
    {"kimi", "{{ tools }}<|tool_call_begin|>"},
    {"granite-array", "{{ tools }}<|tool_call|>"},
    {"harmony", "{{ tools }}<|channel|>"},
};

/// "[thinking]", "text", "NAME(arguments)" and "NAME(arguments..." for a call without an end.
class Shown {
 public:
  void add(const std::vector<ChatDelta>& deltas) {
    for (const ChatDelta& delta : deltas) add(delta);
  }
  std::string text() {
    enter(Kind::kText);
    return text_;
  }

 private:
  using Kind = ChatDelta::Kind;
  void enter(Kind kind) {
    if (kind == last_) return;
    if (last_ == Kind::kReasoning) text_ += "]";
    if (last_ == Kind::kArguments) text_ += "...";
    if (kind == Kind::kReasoning) text_ += "[";
    last_ = kind;
  }
  void add(const ChatDelta& delta) {
    if (delta.kind == Kind::kCallEnd) {
      text_ += ")";
      last_ = delta.kind;
      EXPECT_EQ(delta.call, n_calls_ - 1);
      return;
    }
    enter(delta.kind);
    EXPECT_FALSE(delta.kind != Kind::kCallBegin && delta.text.empty());
    if (delta.kind == Kind::kCallBegin) {
      EXPECT_EQ(delta.call, n_calls_++);
      text_ += delta.name + "(";
      last_ = Kind::kArguments;
    }
    text_ += delta.text;
  }

  std::string text_;
  Kind last_ = Kind::kCallEnd;
  int n_calls_ = 0;
};

std::string parse(const std::string& family, const std::string& answer, bool thinking = false,
                  size_t piece = 100000) {
  const ChatFormat format = detect_chat_format(kTemplates.at(family));
  const std::vector<ChatTool> known = tools();
  ChatParser parser(format, known, thinking);
  Shown shown;
  for (size_t at = 0; at < answer.size(); at += piece) {
    shown.add(parser.push(answer.substr(at, piece)));
  }
  shown.add(parser.finish());
  return shown.text();
}

TEST(ChatParser, ACutCallLeavesNoMarkup) {
  const std::vector<ChatTool> known = tools();
  const std::string answer = "a < b <tool_call>{\"name\": \"add\", \"arg";
  const ChatFormat format = detect_chat_format(kTemplates.at("hermes"));
  for (size_t n = answer.find("<t") + 1; n <= answer.size(); ++n) {
    ChatParser parser(format, known, /*thinking=*/false);
    Shown shown;
    shown.add(parser.push(answer.substr(0, n)));
    shown.add(parser.finish(/*cut=*/true));
    EXPECT_EQ(shown.text(), "a < b ") << n;
  }
}

struct Case {
  std::string family, answer, shown;
  bool thinking = false;
};

const Case kCases[] = {
    // Hermes, Qwen 2.5 and 3, Granite 4
    {"hermes", "Hello\nthere \n", "Hello\nthere \n"},
    {"hermes",
     "On it.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": [2]}}\n"
     "</tool_call>\n<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>",
     "On it.add({\"a\": 1, \"b\": [2]})ping({})"},
    {"hermes",
     "<tool_call>{\"arguments\": {\"a\": \"}\\\"\"}, \"name\": \"add\"}</tool_call> and on",
     "add({\"a\": \"}\\\"\"}) and on"},
    {"hermes", "<tool_call>{\"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
     "add({\"a\": 1})"},
    {"hermes", "<tool_call>{\"name\": \"ping\"}</tool_call>", "ping({})"},
    {"hermes", "<tool_call>{\"name\": \"ping\", \"arguments\": null}</tool_call>", "ping({})"},
    {"hermes",
     "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"add\", \"arguments\": "
     "{\"a\": 2}}}</tool_call>",
     "add({\"a\": 2})"},
    {"hermes", "<tool_call>{\"name\": \"nothing\", \"arguments\": {}}</tool_call>",
     "<tool_call>{\"name\": \"nothing\", \"arguments\": {}}</tool_call>"},
    {"hermes", "a <tool_call>no <tool_call>{\"name\": \"ping\"}", "a <tool_call>noping({})"},
    {"hermes", "a < b <tool", "a < b <tool"},
    {"hermes", "<tool_call>{\"name\": \"add\", \"argum", "<tool_call>{\"name\": \"add\", \"argum"},
    {"hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1", "add({\"a\": 1..."},
    {"hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}", "add({\"a\": 1})"},
    {"hermes",
     "<tool_call>{\"name\": \"patch\", \"arguments\": {\"input\": \"a\\n\\\"b\\u00e9\"}}"
     "</tool_call>",
     "patch(a\n\"bé)"},
    {"hermes", "<tool_call>{\"name\": \"patch\", \"arguments\": {\"text\": \"a\"}}</tool_call>",
     "patch({\"text\": \"a\"})"},
    {"plain", "<tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call>", "ping({})"},
    // Thinking
    {"qwen3",
     "<think>\nneed two\n</think>\n\nOn it.\n<tool_call>\n{\"name\": \"ping\", "
     "\"arguments\": {}}\n</tool_call>",
     "[need two]On it.ping({})"},
    {"qwen3", "need </thin two\n</think>\n\nHi", "[need </thin two]Hi", true},
    {"qwen3", "<think>cut", "[cut]"},
    {"qwen3", "Say <think> twice", "Say <think> twice"},
    {"qwen3", "<think>\n\n</think>\n\nHi", "Hi"},
    // Qwen3-Coder
    {"coder",
     "I call.\n<tool_call>\n<function=get_weather>\n<parameter=place>\nOslo \"N\"\n\nx\n"
     "</parameter>\n<parameter=days>\n[1, 2]\n</parameter>\n<parameter=n>\n3\n</parameter>"
     "\n</function>\n</tool_call>",
     "I call.get_weather({\"place\": \"Oslo \\\"N\\\"\\n\\nx\", \"days\": [1, 2], \"n\": 3})"},
    {"coder", "<function=ping>\n</function>\n</tool_call>", "ping({})"},
    {"coder",
     "<tool_call>\n<function=patch>\n<parameter=input>\n*** a\n\tb\n</parameter>\n</function>"
     "\n</tool_call>",
     "patch(*** a\n\tb)"},
    {"coder", "<tool_call>\n<function=nothing>\n</function>",
     "<tool_call>\n<function=nothing>\n"
     "</function>"},
    // Llama 3
    {"llama3", "{\"name\": \"add\", \"parameters\": {\"a\": \"1\"}}", "add({\"a\": \"1\"})"},
    {"llama3",
     "<|python_tag|>{\"type\": \"function\", \"name\": \"add\", \"parameters\": {}}; "
     "{\"name\": \"ping\", \"parameters\": {}}",
     "add({})ping({})"},
    {"llama3", "{\"city\": \"Oslo\"}", "{\"city\": \"Oslo\"}"},
    {"llama3", "Not {\"name\": \"add\", \"parameters\": {}}",
     "Not {\"name\": \"add\", \"parameters\": {}}"},
    // Mistral
    {"mistral-array",
     "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 1}, \"id\": \"x\"}, "
     "{\"name\": \"ping\", \"arguments\": {}}]",
     "add({\"a\": 1})ping({})"},
    {"mistral-array", "[TOOL_CALLS] []", "[TOOL_CALLS] []"},
    {"mistral", "[THINK]hm[/THINK]Ok[TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]ping[ARGS]{}",
     "[hm]Okadd({\"a\": 1})ping({})"},
    {"mistral", "[TOOL_CALLS]add[CALL_ID]abcdefgh1[ARGS]{\"a\": 1}", "add({\"a\": 1})"},
    {"mistral", "[TOOL_CALLS][{\"name\": \"ping\", \"arguments\": {}}]", "ping({})"},
    {"mistral", "[TOOL_CALLS]none[ARGS]{}", "[TOOL_CALLS]none[ARGS]{}"},
    // DeepSeek V3.1, and V3 and R1
    {"deepseek",
     "hm</think>Ok<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": 1}"
     "<｜tool▁call▁end｜><｜tool▁call▁begin｜>ping<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>",
     "[hm]Okadd({\"a\": 1})ping({})", true},
    {"deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n"
     "{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁calls▁end｜>",
     "add({\"a\": 1})"},
    // Kimi K2
    {"kimi",
     "Ok<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0"
     "<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|><|tool_calls_section_end|>",
     "Okadd({\"a\": 1})"},
    // Granite 3
    {"granite-array", "<|tool_call|>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}]",
     "add({\"a\": 1})"},
    // gpt-oss
    {"harmony",
     "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>"
     "Hi <b>",
     "[hm]Hi <b>"},
    {"harmony",
     "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary"
     "<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.add "
     "<|constrain|>json<|message|>{\"a\": 1}",
     "[hm]I look.add({\"a\": 1})"},
    {"harmony", " to=functions.add<|channel|>commentary json<|message|>{\"a\": {}}<|call|>",
     "add({\"a\": {}})"},
    {"harmony", "<|channel|>commentary to=functions.patch<|message|>*** raw", "patch(*** raw)"},
    {"harmony", "<|channel|>commentary to=functions.add<|message|>{\"a\": ", "add({\"a\": ..."},
    {"harmony", "No header at all", "No header at all"},
};

TEST(ChatParser, ReadsEveryFamily) {
  for (const Case& c : kCases) {
    EXPECT_EQ(parse(c.family, c.answer, c.thinking), c.shown) << c.family << ": " << c.answer;
  }
}

TEST(ChatParser, TheSameForAnyPieces) {
  for (const Case& c : kCases) {
    for (const size_t piece : {1U, 2U, 3U, 5U, 11U}) {
      EXPECT_EQ(parse(c.family, c.answer, c.thinking, piece), c.shown) << c.family << ": " << piece;
    }
  }
}

TEST(ChatParser, TheSameForAnyPiecesOfMixedUpAnswers) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    const Case& first = kCases[random() % std::size(kCases)];
    const Case& second = kCases[random() % std::size(kCases)];
    std::string answer = first.answer.substr(0, random() % (first.answer.size() + 1)) +
                         second.answer.substr(random() % second.answer.size());
    const bool thinking = random() % 2 == 0;
    const std::string whole = parse(first.family, answer, thinking);
    EXPECT_EQ(parse(first.family, answer, thinking, 1), whole) << first.family << ": " << answer;
    EXPECT_EQ(parse(first.family, answer, thinking, 1 + random() % 9), whole) << answer;
  }
}

TEST(ChatParser, HoldsBackNoMoreThanAMarkersStart) {
  const ChatFormat format = detect_chat_format(kTemplates.at("hermes"));
  const std::vector<ChatTool> known = tools();
  ChatParser parser(format, known, false);
  EXPECT_EQ(parser.push("Hi")[0].text, "Hi");
  EXPECT_TRUE(parser.push(" <tool_").empty());
  EXPECT_EQ(parser.push("x")[0].text, " <tool_x");
  EXPECT_TRUE(parser.push("<tool_call>{\"name\": \"add\", \"arguments\": ").empty());
  EXPECT_EQ(parser.push("{\"a\"").back().text, "{\"a\"");  // arguments come as they are made
  EXPECT_EQ(parser.push(": 1").back().text, ": 1");
}

TEST(ChatParser, WithoutToolsEverythingIsText) {
  const ChatFormat format = detect_chat_format(kTemplates.at("hermes"));
  const std::vector<ChatTool> none;
  ChatParser parser(format, none, false);
  const std::string text = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call> \n";
  const std::vector<ChatDelta> deltas = parser.push(text);
  ASSERT_EQ(deltas.size(), 1U);
  EXPECT_EQ(deltas[0].text, text);
}

/// What a family's template writes for an assistant's calls is read as these calls again.
TEST(ChatParser, ReadsWhatTemplatesWrite) {
  std::ifstream file(SLUICE_GOLDEN_DIR "/chat-templates/cases.json");
  const OrderedJson golden = OrderedJson::parse(file);
  int n_read = 0;
  for (const OrderedJson& golden_case : golden["cases"]) {
    const std::string name = golden_case["name"];
    const bool has_calls = name.ends_with("/tools") || name.ends_with("/two_calls");
    const bool knows = name.starts_with("qwen3") || name.starts_with("llama3") ||
                       name.starts_with("mistral") || name.starts_with("harmony");
    if (!has_calls || !knows || !golden_case.contains("expected")) continue;
    const std::string source = golden_case["template"];
    const ChatFormat format = detect_chat_format(source);
    TemplateInput input;
    input.variables = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    input.now = "2026-03-09T08:07:05";
    std::string expected, before;
    for (const OrderedJson& message : golden_case["messages"]) {
      input.add_generation_prompt = true;
      const bool calls = message.contains("tool_calls");
      if (calls) before = ChatTemplate(source).render(input);
      input.add_generation_prompt = false;
      input.messages.push_back(message);
      if (!calls) continue;
      for (const OrderedJson& call : message["tool_calls"]) {
        expected += call["function"]["name"].get<std::string>() + "(" +
                    call["function"]["arguments"].dump() + ")";
      }
      break;
    }
    const std::string all = ChatTemplate(source).render(input);
    // Mistral's puts the system message elsewhere in a longer conversation.
    const auto begin = std::mismatch(before.begin(), before.end(), all.begin(), all.end()).second;
    const std::vector<ChatTool> known = tools();
    ChatParser parser(format, known, false);
    std::string got;
    for (const ChatDelta& delta : parser.push(std::string(begin, all.end()))) {
      if (delta.kind == ChatDelta::Kind::kCallBegin) got += delta.name + "(";
      if (delta.kind == ChatDelta::Kind::kArguments) got += OrderedJson::parse(delta.text).dump();
      if (delta.kind == ChatDelta::Kind::kCallEnd) got += ")";
    }
    EXPECT_EQ(got, expected) << name;
    ++n_read;
  }
  EXPECT_GE(n_read, 6);
}

}  // namespace
}  // namespace sluice
