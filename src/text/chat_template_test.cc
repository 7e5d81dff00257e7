#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace sluice {
namespace {

OrderedJson read_cases(const std::string& name) {
  const std::string path = std::string(SLUICE_GOLDEN_DIR) + "/chat-templates/" + name;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return parse_ordered_json(text.str(), path);
}

/// The rendered text, or "error: ..." with the message.
std::string render_or_error(const OrderedJson& request) {
  try {
    return render_template_request(request);
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  }
}

/// Renders every case of a file that Python's jinja2 rendered before.
void expect_recorded(const std::string& name) {
  const OrderedJson file = read_cases(name);
  ASSERT_FALSE(file.at("cases").empty());
  for (const OrderedJson& recorded : file.at("cases")) {
    OrderedJson request = file.value("variables", OrderedJson::object());
    request.update(recorded);
    for (const char* key : {"name", "expected", "error", "error_message", "generation_spans"}) {
      request.erase(key);
    }
    if (!request.contains("messages")) request["messages"] = OrderedJson::array();
    request["now"] = file.at("now");
    const std::string got = render_or_error(request);
    const std::string what = recorded.at("name").get<std::string>() + ": " +
                             recorded.at("template").get<std::string>().substr(0, 200);
    if (recorded.contains("expected")) {
      EXPECT_EQ(got, recorded.at("expected").get<std::string>()) << what;
    } else {
      EXPECT_TRUE(got.starts_with("error: ")) << what << "\nrendered: " << got;
    }
  }
}

std::string render(const std::string& source,
                   const OrderedJson& variables = OrderedJson::object()) {
  TemplateInput input;
  input.variables = variables;
  return ChatTemplate(source).render(input);
}

std::string error_of(const std::string& source) {
  try {
    return "rendered: " + render(source);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ChatTemplate, RendersRecordedConversations) { expect_recorded("cases.json"); }

TEST(ChatTemplate, AgreesWithJinjaOnEveryFeature) { expect_recorded("features.json"); }

TEST(ChatTemplate, ReportsGenerationSpans) {
  const OrderedJson file = read_cases("cases.json");
  int n_checked = 0;
  for (const OrderedJson& recorded : file.at("cases")) {
    if (!recorded.contains("generation_spans")) continue;
    TemplateInput input;
    input.messages = recorded.at("messages");
    std::vector<TextSpan> spans;
    ChatTemplate(recorded.at("template").get<std::string>()).render(input, &spans);
    EXPECT_EQ(OrderedJson(spans), recorded.at("generation_spans")) << recorded.at("name");
    ++n_checked;
  }
  EXPECT_GT(n_checked, 0);
}

TEST(ChatTemplate, CountsSpansInCodePoints) {
  std::vector<TextSpan> spans;
  ChatTemplate("é日{% generation %}öß{% endgeneration %}x").render({}, &spans);
  EXPECT_EQ(spans, (std::vector<TextSpan>{{2, 4}}));
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("a\n\n{{ nothing.more }}"), "chat template: line 3: 'nothing' is undefined");
  EXPECT_EQ(error_of("a\n{{ raise_exception('no ' ~ 1) }}"), "chat template: line 2: no 1");
  EXPECT_EQ(error_of("{% if x %}"),
            "chat template: line 1: unexpected end of template, expected 'endif'");
  EXPECT_EQ(error_of("\n{{ 'x' | nope }}"), "chat template: line 2: No filter named 'nope'.");
  EXPECT_EQ(error_of("{{ 1 + }}"),
            "chat template: line 1: expected an expression, got the end of the tag");
}

TEST(ChatTemplate, ContinuesOnlyWhatItPrinted) {
  TemplateInput input;
  input.messages = OrderedJson::parse(R"([{"role": "assistant", "content": " so far  "}])");
  input.continue_final_message = true;
  EXPECT_EQ(ChatTemplate("<{{ messages[0].content | trim }}>").render(input), "<so far");
  EXPECT_THROW(ChatTemplate("<>").render(input), Error);
  input.messages = OrderedJson::parse(
      R"([{"role": "assistant", "content": [{"type": "text", "text": "part"}, {"type": "image"}]}])");
  EXPECT_EQ(ChatTemplate("<{{ messages[0].content[0].text }}>").render(input), "<part");
  input.messages = OrderedJson::array();
  EXPECT_THROW(ChatTemplate("x").render(input), Error);
}

TEST(ChatTemplate, GivesReasoningBothNames) {
  TemplateInput input;
  input.messages =
      OrderedJson::parse(R"([{"reasoning_content": "a"}, {"thinking": "b"}, {"thinking": null}])");
  EXPECT_EQ(
      ChatTemplate("{% for m in messages %}{{ m.thinking }}{{ m.reasoning_content }} {% endfor %}")
          .render(input),
      "aa bb NoneNone ");
}

/// Templates that grow without end; every one must be refused, and soon.
constexpr const char* kHostile[] = {
    "{{ 'a' * 10**9 }}",
    "{{ [1] * 10**9 }}",
    "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
    "{{ n.x }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
    "{{ n.x | tojson }}",
    "{% set n = namespace(x=1) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}",
    "{% set n = namespace(x=1) %}{% for i in range(9999) %}{% set n.x = cycler(n.x) %}{% endfor %}",
    "{% set n = namespace(x=1) %}{% for i in range(9999) %}{% set n.x = [n.x].index %}{% endfor %}",
    "{% set n = namespace() %}{% set n.x = [n] %}{{ n }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro f(n) %}{{ f(n - 1) ~ f(n - 2) if n > 1 }}{% endmacro %}{{ f(60) }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% for a in range(99999) %}{{ 'x' * 9999 }}{% endfor %}",
    "{{ ('\\n' * 99999) | indent(99999) }}",
    "{{ 'x' | center(10**12) }}",
    "{{ 'x'.zfill(10**12) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ 10 ** 10 ** 10 }}",
    "{{ ('a' * 99999) | replace('', 'b' * 99999) }}",
    "{{ range(10**9) }}",
    "{{ [1] | slice(10**9) | list }}",
    "{{ [1] | batch(10**12, 0) | list }}",
    "{{ ('a' * 1000000).find('a' * 500000 ~ 'b') }}",
    "{% set s = 'a' * 5000000 %}{% for i in range(99999) %}{% set x = s.upper() %}{% endfor %}",
};

TEST(ChatTemplate, BoundsTimeAndMemory) {
  for (const char* source : kHostile) {
    EXPECT_TRUE(error_of(source).starts_with("chat template: line 1: ")) << source;
  }
}

TEST(ChatTemplate, BoundsNesting) {
  const auto repeated = [](const std::string& text, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += text;
    return out;
  };
  for (const char* text : {"(", "[", "-", "not ", "1+", "x.", "x|list|", "x()", "1 if 0 else "}) {
    EXPECT_THROW(ChatTemplate("{{ " + repeated(text, 50000) + "1 }}"), Error) << text;
  }
  EXPECT_THROW(ChatTemplate(repeated("{% if 1 %}", 50000)), Error);
  EXPECT_THROW(ChatTemplate("{% set " + repeated("(", 50000)), Error);
}

/// Namespaces and macros may refer to themselves and form long chains; taking them apart must not
/// recurse.
TEST(ChatTemplate, FreesCyclesAndChains) {
  EXPECT_EQ(render("{% set n = namespace(m=1) %}{% for i in range(50000) %}{% set prev = n.m %}"
                   "{% macro m() %}{{ prev }}{% endmacro %}{% set n.m = m %}{% endfor %}ok"),
            "ok");
  EXPECT_EQ(render("{% set n = namespace(x=1) %}{% for i in range(50000) %}"
                   "{% set n.x = namespace(x=n.x) %}{% endfor %}{% set n.n = n %}ok"),
            "ok");
}

TEST(ChatTemplate, RejectsRequestsOfTheWrongShape) {
  EXPECT_THROW(render_template_request(OrderedJson::array()), Error);
  EXPECT_THROW(render_template_request(OrderedJson::parse(R"({"messages": []})")), Error);
  EXPECT_THROW(render_template_request(OrderedJson::parse(R"({"template": 1})")), Error);
  EXPECT_THROW(render_template_request(
                   OrderedJson::parse(R"({"template": "", "add_generation_prompt": "yes"})")),
               Error);
  EXPECT_THROW(ChatTemplate("\xff"), Error);
  EXPECT_THROW(render("{{ strftime_now('%Y') }}{{ now }}", 1), Error);
}

}  // namespace
}  // namespace sluice
