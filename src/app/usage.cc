// sluice usage: what was used and what it cost, from the books of `sluice serve --db`.
#include "app/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <string>

#include "app/cli.h"
#include "app/report.h"
#include "serve/ledger.h"

namespace sluice {
namespace {

struct UsageOptions {
  std::string db = default_database(), by = "key";
  bool json = false;
};

bool parse(UsageOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "usage", "[flags]",
           "Sums what the requests of `sluice serve --db FILE` have used, also while it runs. A "
           "request counts when it has ended, also if its client has gone. Costs are those of "
           "the prices in --tiers at that time.",
           {"sluice usage --db sluice.db", "sluice usage --db sluice.db --by day --json"});
  add_text(app, "--db", "FILE", o.db, "the file that the server writes (default $SLUICE_DB)");
  add_choice(app, "--by", o.by, {"key", "model", "tier", "day"},
             "a line for each name of an API key (default), model or tier of models, service tier, "
             "or day (UTC)");
  add_switch(app, "--json", o.json, "one object per line");
  if (!parse_flags(app, argc, argv)) return false;
  if (o.db.empty()) throw UsageError("--db: expected the file that `sluice serve --db` writes");
  return true;
}

void print_table(const OrderedJson& rows, const std::string& by) {
  size_t width = std::max<size_t>(by.size(), 10);
  for (const OrderedJson& row : rows) {
    width = std::max(width, row[by].get_ref<const std::string&>().size());
  }
  fmt::print("{:<{}} {:>9} {:>13} {:>13} {:>13} {:>12}\n", by, width, "requests", "prompt tokens",
             "cached", "output tokens", "cost");
  for (const OrderedJson& row : rows) {
    const std::string name = row[by];
    fmt::print("{:<{}} {:>9} {:>13} {:>13} {:>13} {:>12.6f}\n", name.empty() ? "(no key)" : name,
               width, row["requests"].get<int64_t>(), row["prompt_tokens"].get<int64_t>(),
               row["cached_tokens"].get<int64_t>(), row["completion_tokens"].get<int64_t>(),
               row["cost"].get<double>());
  }
}

}  // namespace

std::string default_database() {
  const char* path = std::getenv("SLUICE_DB");
  return path == nullptr ? "" : path;
}

int usage_command(int argc, char** argv) {
  UsageOptions o;
  if (!parse(o, argc, argv)) return kOk;
  const OrderedJson rows = usage_by(o.db, o.by);
  if (!o.json) {
    print_table(rows, o.by);
    return kOk;
  }
  for (const OrderedJson& row : rows) print_json(row);
  return kOk;
}

}  // namespace sluice
