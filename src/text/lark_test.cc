#include "text/lark.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/byte_vocabulary.h"
#include "text/constraint.h"

namespace sluice {
namespace {

ConstraintPtr compile(std::string_view lark, bool json_string = false) {
  GrammarBuilder builder("grammar");
  const Expr all = lark_grammar(builder, lark, json_string);
  return compile_grammar(builder.build(builder.rule("all", all)), byte_vocabulary());
}

bool matches(const ConstraintPtr& compiled, std::string_view text) {
  const std::unique_ptr<TokenConstraint> constraint = start_constraint(compiled);
  for (const char byte : text) {
    if (!constraint->accept(1 + static_cast<uint8_t>(byte))) return false;
  }
  return constraint->accept(0);
}

std::string error_of(std::string_view lark) {
  try {
    compile(lark);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

/// The shape of grammars for edits in patches.
constexpr const char* kPatch = R"lark(
start: begin hunk+ end
begin: "*** Begin" LF
end: "*** End" LF?
hunk: add_hunk | delete_hunk   // comment
add_hunk: "*** Add: " filename LF add_line+
delete_hunk: "*** Delete: " filename LF
filename: /(.+)/
add_line: "+" /(.*)/ LF -> line
%import common.LF
)lark";

TEST(Lark, ReadsGrammarsOfPatches) {
  const ConstraintPtr compiled = compile(kPatch);
  EXPECT_TRUE(matches(compiled, "*** Begin\n*** Add: a b.txt\n+x\n+\n*** Delete: c\n*** End"));
  EXPECT_TRUE(matches(compiled, "*** Begin\n*** Delete: é\n*** End\n"));
  EXPECT_FALSE(matches(compiled, "*** Begin\n*** End"));
  EXPECT_FALSE(matches(compiled, "*** Begin\n*** Add: a\n*** End"));
  EXPECT_FALSE(matches(compiled, "*** Begin\n*** Delete: \n*** End"));
}

TEST(Lark, EscapesWithinJson) {
  const ConstraintPtr compiled = compile("start: \"a\\n\" /[\"b]+/", true);
  EXPECT_TRUE(matches(compiled, "a\\n\\\"b"));
  EXPECT_FALSE(matches(compiled, "a\n\"b"));
}

TEST(Lark, UnderstandsOperators) {
  const ConstraintPtr compiled = compile(R"lark(
?start: sum
!sum.2: product (("+"|"-") product)*
product: atom
       | atom "*" product
atom: NUMBER | "(" sum ")" | "x"~2 | "y"~1..3 | "if"i ["!"] | "a".."f" | HEX
HEX: "0x" ("0".."9" | /[A-F]/i)+
%import common (NUMBER, WS)
%ignore WS
)lark");
  for (const char* text :
       {"1", "1+2.5", " 1 +\n2 * ( 3 )", "xx", "yyy", "If!", "iF", "c", "0x1aF", "1 "}) {
    EXPECT_TRUE(matches(compiled, text)) << text;
  }
  for (const char* text : {"", "1+", "x", "xxx", "yyyy", "i f", "g", "0x", "0x 1", "(1"}) {
    EXPECT_FALSE(matches(compiled, text)) << text;
  }
}

TEST(Lark, NamesWhatItDoesNotSupport) {
  EXPECT_EQ(error_of("start: a\na: b{c}"), "grammar: line 2: a template is not supported");
  EXPECT_EQ(error_of("%declare A\nstart: A"), "grammar: line 1: %declare is not supported");
  EXPECT_EQ(error_of("%import .x.Y\nstart: Y"), "grammar: line 1: expected a name, got \".\"");
  EXPECT_EQ(error_of("start: A\n%import common.A"),
            "grammar: line 2: %import common.A is not supported");
  EXPECT_EQ(error_of("start: \"x\"\n\ny: nope"),
            "grammar: line 3: expected a definition of nope, got none");
  EXPECT_EQ(error_of("begin: \"x\""), "grammar: line 1: expected a rule named start, got none");
  EXPECT_EQ(error_of("start: /a(?=b)/").substr(0, 15), "grammar: line 1");
  EXPECT_NE(error_of("start: start \"x\" | \"y\"").find("left recursion"), std::string::npos);
  EXPECT_NE(error_of("start: (\"x\""), "none");
  EXPECT_NE(error_of("start: \"x"), "none");
  EXPECT_NE(error_of("start: \"x\"~5..2"), "none");
  EXPECT_NE(error_of("start: \"x\"~99999999999"), "none");
  EXPECT_NE(error_of("start: " + std::string(5000, '(')), "none");
  EXPECT_NE(error_of("A: b\nb: \"x\"\nstart: A"), "none");
}

}  // namespace
}  // namespace sluice
