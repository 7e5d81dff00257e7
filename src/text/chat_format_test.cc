#include "text/chat_format.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

ChatTool tool(const std::string& name, const std::string& description, const char* schema) {
  ChatTool result;
  result.name = name;
  result.description = description;
  result.parameters = OrderedJson::parse(schema);
  return result;
}

std::vector<ChatTool> tools() {
  return {tool("look", "Looks at a place. May take long.",
               R"({"type": "object", "required": ["place", "n", "deep", "unit", "more", "other"],
                   "properties": {"place": {"type": "string"}, "n": {"type": ["integer", "null"]},
                                  "deep": {"type": "boolean"}, "unit": {"enum": ["c", "f"]},
                                  "more": {"anyOf": [{"type": "array"}, {"type": "null"}]},
                                  "optional": {"type": "string"}}})"),
          tool("ping", std::string(200, 'x'), "{}")};
}

std::string listed(const OrderedJson& messages) {
  std::string text;
  for (const OrderedJson& message : messages) {
    text +=
        message["role"].get<std::string>() + ": " + message["content"].get<std::string>() + "\n";
  }
  return text;
}

const OrderedJson kHello = {{{"role", "user"}, {"content", "Hello"}}};

TEST(ChatFormat, DemonstratesToolsToModelsThatKnowNone) {
  const OrderedJson shown = shown_messages(kHello, tools(), detect_chat_format("messages"));
  EXPECT_EQ(shown[0]["role"], "system");
  EXPECT_EQ(listed(OrderedJson(shown.begin() + 1, shown.end())),
            "user: Looks at a place, please.\n"
            "assistant: <tool_call>{\"name\": \"look\", \"arguments\": {\"place\": \"...\", "
            "\"n\": 0, \"deep\": true, \"unit\": \"c\", \"more\": [], \"other\": \"...\"}}"
            "</tool_call>\n"
            "user: Use ping.\n"
            "assistant: <tool_call>{\"name\": \"ping\", \"arguments\": {}}</tool_call>\n"
            "user: Hello\n");
}

TEST(ChatFormat, DemonstratesOnlyTheFirstFew) {
  const std::vector<ChatTool> many(30, tools()[1]);
  const OrderedJson shown = shown_messages(kHello, many, detect_chat_format("messages"));
  EXPECT_EQ(shown.size(), 1u + 2 * 4 + 1);
}

TEST(ChatFormat, DemonstrationsFollowTheInstructions) {
  OrderedJson messages = kHello;
  messages.insert(messages.begin(), OrderedJson{{"role", "system"}, {"content", "Be brief."}});
  const OrderedJson shown = shown_messages(messages, tools(), detect_chat_format("messages"));
  ASSERT_EQ(shown.size(), 6u);
  EXPECT_TRUE(shown[0]["content"].get<std::string>().ends_with("\n\nBe brief."));
  EXPECT_EQ(shown[1]["role"], "user");
}

TEST(ChatFormat, LeavesOthersToTheirTemplates) {
  const ChatFormat hermes = detect_chat_format("tools tool_calls <tool_call>");
  EXPECT_EQ(shown_messages(kHello, tools(), hermes), kHello);
  EXPECT_EQ(shown_messages(kHello, {}, detect_chat_format("messages")), kHello);
}

}  // namespace
}  // namespace sluice
