// What a constraint costs per token: masks MODEL [FILE.jsonl], where MODEL is anything a tokenizer
// is read from and every line of FILE is {"name", "schema", "answer"}. Prints milliseconds of CPU
// time to compile and microseconds per token of the first answer and of the second, which finds the
// masks that the first has left.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <numeric>

#include "base/error.h"
#include "text/constraint.h"
#include "text/tokenizer.h"

namespace {

using namespace sluice;
/// Of this thread's CPU time, in which other processes have no part.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

struct Case {
  std::string name, schema, answer;
};

const std::vector<Case> kCases{
    {"strings", R"({"type": "object", "properties": {"name": {"type": "string"},
       "note": {"type": "string"}}, "required": ["name", "note"], "additionalProperties": false})",
     R"({"name": "Ada Lovelace", "note": "Wrote the first program, for a machine that was never built."})"},
    {"shell call", R"({"type": "object", "properties": {"command": {"type": "array", "items":
       {"type": "string"}}, "workdir": {"type": "string"}, "timeout_ms": {"type": "integer"}},
       "required": ["command"], "additionalProperties": false})",
     R"({"command": ["bash", "-lc", "grep -rn 'parse_flags' src | head -20"], "timeout_ms": 10000})"},
    {"free object", R"({"type": "object"})",
     R"({"a": [1, 2.5, {"deep": null, "list": ["x", "y"]}], "text": "some text, \"quoted\""})"},
    {"enum, numbers", R"({"type": "object", "properties": {"unit": {"enum": ["celsius",
       "fahrenheit"]}, "low": {"type": "integer", "minimum": -90, "maximum": 60}, "p":
       {"type": "number", "minimum": 0, "maximum": 1}}, "required": ["unit", "low", "p"]})",
     R"({"unit": "celsius", "low": -12, "p": 0.25})"},
    {"maxLength 500", R"({"type": "object", "properties": {"note": {"type": "string",
       "maxLength": 500}}, "required": ["note"]})",
     R"({"note": "The answer is a note of some length, and goes on for a line or two at least."})"},
    {"maxLength 80", R"({"type": "object", "properties": {"title": {"type": "string",
       "minLength": 3, "maxLength": 80}}, "required": ["title"]})",
     R"({"title": "A title of a page, short enough for a line of a terminal"})"},
    {"pattern", R"({"type": "object", "properties": {"id": {"type": "string",
       "pattern": "^[A-Z]{2}-[0-9]{4,10}$"}, "slug": {"type": "string", "pattern":
       "^[a-z0-9]+(-[a-z0-9]+)*$"}}, "required": ["id", "slug"]})",
     R"({"id": "AB-20261130", "slug": "how-the-pipeline-fills"})"},
    {"lengths, patterns", R"({"type": "object", "properties": {"name": {"type": "string",
       "maxLength": 40}, "phone": {"type": "string", "pattern": "^\\+[0-9]{6,15}$"}, "bio":
       {"type": "string", "maxLength": 200}, "code": {"type": "string", "pattern":
       "^[A-Za-z0-9_]{1,32}$"}}, "required": ["name", "phone", "bio", "code"]})",
     R"({"name": "Grace Hopper", "phone": "+12025550123", "bio": "Found a bug in a relay, and kept it in the log book.", "code": "mark_2_relay_70"})"},
    {"dates, formats", R"({"type": "object", "properties": {"when": {"type": "string", "format":
       "date-time"}, "id": {"type": "string", "format": "uuid"}, "mail": {"type": "string",
       "format": "email"}}, "required": ["when", "id", "mail"]})",
     R"({"when": "2026-11-30T18:00:00Z", "id": "123e4567-e89b-12d3-a456-426614174000", "mail": "ada@example.org"})"}};

struct Times {
  double mean = 0, median = 0, p99 = 0;
};

Times answer_us(const ConstraintPtr& compiled, const std::vector<int32_t>& tokens) {
  const auto constraint = start_constraint(compiled);
  std::vector<uint32_t> bits;
  std::vector<double> times;
  for (const int32_t token : tokens) {
    const double start = cpu_us();
    constraint->allowed(bits);
    const bool accepted = constraint->accept(token);
    times.push_back(cpu_us() - start);
    const auto id = static_cast<size_t>(token);
    if (!accepted || (bits[id / 32] >> (id % 32) & 1) == 0) {
      throw Error(ErrorCode::kInvalidInput, "masks: the answer does not fit its schema");
    }
  }
  std::sort(times.begin(), times.end());
  const auto n = static_cast<double>(times.size());
  return {std::accumulate(times.begin(), times.end(), 0.0) / n, times[times.size() / 2],
          times[times.size() * 99 / 100]};
}

void measure(const Case& one, const Tokenizer& tokenizer, const VocabularyPtr& vocabulary) {
  const OrderedJson schema = parse_ordered_json(one.schema, one.name);
  const double start = cpu_us();
  const ConstraintPtr compiled = compile_json_schema(schema, vocabulary);
  const double compile_ms = (cpu_us() - start) / 1e3;
  const std::vector<int32_t> tokens = tokenizer.encode(one.answer, false, false);
  const Times first = answer_us(compiled, tokens), second = answer_us(compiled, tokens);
  fmt::print("{:<18} {:>6} {:>8.1f} {:>8.1f} {:>7.1f} {:>8.1f} {:>8.1f} {:>7.1f}\n", one.name,
             tokens.size(), compile_ms, first.mean, first.median, first.p99, second.mean,
             second.median);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: masks MODEL [FILE.jsonl]\n");
    return 2;
  }
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::open(argv[1]);
  const auto vocabulary = std::make_shared<const VocabularyTrie>(*tokenizer);
  std::vector<Case> cases = kCases;
  if (argc == 3) {
    cases.clear();
    std::ifstream file(argv[2]);
    for (std::string line; std::getline(file, line);) {
      const OrderedJson one = parse_ordered_json(line, argv[2]);
      cases.push_back({one.at("name"), one.at("schema").dump(), one.at("answer")});
    }
  }
  fmt::print(
      "                            compile  first answer, us         second answer\n"
      "schema             tokens       ms     mean  median      p99     mean  median\n");
  for (const Case& one : cases) measure(one, *tokenizer, vocabulary);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
