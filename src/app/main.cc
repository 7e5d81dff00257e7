// The `sluice` command line: picks the command, turns exceptions into messages and exit codes.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "app/cli.h"
#include "base/error.h"

namespace {

using sluice::Command;

void print_overview() {
  fmt::print(
      "sluice {}: runs large language models as a pipeline of stages\n\n"
      "Usage: sluice COMMAND [flags]     sluice COMMAND --help     sluice --version\n\n"
      "Commands:\n",
      SLUICE_VERSION);
  for (const Command& command : sluice::commands()) {
    fmt::print("  {:<12}{}\n", command.name, command.summary);
  }
  fmt::print(
      "\nWithout --model, commands use $SLUICE_MODEL or the default model (make model).\n"
      "Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted.\n\n"
      "Examples:\n"
      "  sluice run \"Why is the sky blue?\"\n"
      "  sluice inspect --model model.gguf\n"
      "  sluice bench --users 1,4 --json\n");
}

const Command& find_command(std::string_view name) {
  std::vector<std::string> names;
  for (const Command& command : sluice::commands()) {
    if (command.name == name) return command;
    names.emplace_back(command.name);
  }
  const std::string closest = sluice::closest_name(name, names);
  throw sluice::UsageError(
      fmt::format("{}: unknown command{}", name,
                  closest.empty() ? "" : fmt::format("; did you mean {}?", closest)));
}

/// "run " if that is the command; empty without a known one.
std::string command_prefix(int argc, char** argv) {
  for (const Command& command : sluice::commands()) {
    if (argc > 1 && std::string_view(command.name) == argv[1]) return argv[1] + std::string(" ");
  }
  return "";
}

int run(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "--help";
  if (word == "--version") {
    fmt::print("sluice {}\n", SLUICE_VERSION);
    return sluice::kOk;
  }
  if (word == "help" && argc > 2) {
    std::string help = "--help";
    char* arguments[] = {argv[2], help.data(), nullptr};
    return find_command(argv[2]).run(2, arguments);
  }
  if (word == "--help" || word == "-h" || word == "help") {
    print_overview();
    return argc > 1 ? sluice::kOk : sluice::kWrongUsage;
  }
  return find_command(word).run(argc - 1, argv + 1);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    fmt::print(stderr, "sluice: error: standard output: cannot be written\n");
    return code == sluice::kOk ? sluice::kFailed : code;
  } catch (const sluice::UsageError& error) {
    fmt::print(stderr, "sluice: error: {}\n", error.what());
    fmt::print(stderr, "Try: sluice {}--help\n", command_prefix(argc, argv));
    return sluice::kWrongUsage;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "sluice: error: {}\n", error.what());
    return sluice::kFailed;
  }
}
