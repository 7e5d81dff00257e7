// What every command shares: its place in the table, flags with checked values, help, exit codes.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,         // input, files or the machine gave cause for an error
  kWrongUsage = 2,     // flags that make no sense
  kInterrupted = 130,  // Ctrl-C
};

struct Command {
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);  // argv[0] is the command's name; returns an ExitCode
};

/// In the order of the overview.
std::span<const Command> commands();

/// Flags that make no sense; the message names the flag and what was expected.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The entry of `names` that is most like a mistyped `word`; empty if none is close.
std::string closest_name(std::string_view word, const std::vector<std::string>& names);

/// Help in 80 columns: the summary, the usage, `description`, the flags by group, `examples`.
void set_help(CLI::App& app, std::string_view command, std::string_view usage,
              std::string_view description, std::vector<std::string> examples);

/// False if the help was asked for and printed. Throws UsageError.
bool parse_flags(CLI::App& app, int argc, char** argv);

// Flags. `name` as "--threads", or "PROMPT" for a positional; `value` keeps its default.
CLI::Option* add_switch(CLI::App& app, const std::string& name, bool& value, std::string help);
CLI::Option* add_text(CLI::App& app, const std::string& name, const std::string& value_name,
                      std::string& value, std::string help);
/// As add_text(), of files and things that have a name: not empty.
CLI::Option* add_name(CLI::App& app, const std::string& name, const std::string& value_name,
                      std::string& value, std::string help);
CLI::Option* add_integer(CLI::App& app, const std::string& name, int& value, int low, int high,
                         std::string help);
CLI::Option* add_seed(CLI::App& app, const std::string& name, uint64_t& value, std::string help);
CLI::Option* add_number(CLI::App& app, const std::string& name, float& value, float low, float high,
                        std::string help);
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        std::vector<std::string> choices, std::string help);

/// "1,2,3" -> numbers in [0, 2^31). Throws UsageError naming `flag`.
std::vector<int32_t> parse_integers(std::string_view list, std::string_view flag);

}  // namespace sluice
