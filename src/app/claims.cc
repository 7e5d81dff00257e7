// sluice claims: whether what is said about a machine can be true.
#include "plan/claims.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/cli.h"
#include "app/commands.h"
#include "app/options.h"
#include "app/report.h"

namespace sluice {
namespace {

struct ClaimsOptions {
  std::string file;
  bool json = false;
};

bool parse(ClaimsOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "claims", "[FILE] [flags]",
           "Checks claims: consistent (some set of the numbers that nobody published satisfies it; "
           "that confirms nothing), inconsistent (none does), circular (another claim gives the "
           "value by a published fit, so it supports nothing) or undetermined (the unpublished "
           "numbers decide). Without FILE: the claims about GPT-5.6 Sol that are shipped.",
           {"sluice claims", "sluice claims my-claims.json --json"});
  add_text(app, "FILE", "", o.file, "claims in JSON; docs/planner-model.md has the format");
  add_switch(app, "--json", o.json, "print one object")->group("Output");
  return parse_flags(app, argc, argv);
}

/// Lines of at most `width` characters.
void print_wrapped(const std::string& text, size_t indent, size_t width) {
  std::string line(indent, ' ');
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (line.size() + end - at > width && line.size() > indent) {
      line.pop_back();  // the space
      fmt::print("{}\n", line);
      line.assign(indent, ' ');
    }
    line += text.substr(at, end - at) + ' ';
    at = end + 1;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  fmt::print("{}\n", line);
}

}  // namespace

int claims_command(int argc, char** argv) {
  ClaimsOptions o;
  if (!parse(o, argc, argv)) return kOk;
  const std::vector<Verdict> verdicts =
      o.file.empty() ? check_claims(shipped_claims(), "claims")
                     : check_claims(parse_json(read_text(o.file), o.file), o.file);
  if (o.json) {
    print_json(OrderedJson{{"claims", to_json(verdicts)}});
    return kOk;
  }
  for (const Verdict& v : verdicts) {
    fmt::print("{}: {}\n", v.id, v.verdict);
    print_wrapped(v.claim + " (" + v.kind + ": " + v.source + ")", 2, 80);
    print_wrapped(v.why, 4, 80);
    for (const std::string& set : v.sets) print_wrapped("- " + set, 4, 80);
    fmt::print("\n");
  }
  return kOk;
}

}  // namespace sluice
