#include "app/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

namespace sluice {
namespace {

constexpr const char* kHelpGroup = "Help";
constexpr size_t kColumns = 80;
constexpr size_t kHelpColumn = 26;  // where the explanation of a flag starts

/// `text` in lines of at most `width`, broken at spaces; its own line breaks stay.
std::vector<std::string> wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view paragraph = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), paragraph.size() + 1));
    std::string_view rest = paragraph;
    while (rest.size() > width) {
      size_t end = rest.rfind(' ', width);
      if (end == std::string_view::npos || end == 0) end = std::min(rest.find(' '), rest.size());
      lines.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
    lines.emplace_back(rest);
  }
  return lines;
}

/// Edits that turn a into b: insertions, deletions, replacements, neighbours swapped.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter(std::string_view command, std::string_view usage, std::string_view description,
                std::vector<std::string> examples)
      : command_(command),
        usage_(usage),
        description_(description),
        examples_(std::move(examples)) {}

  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    std::string out = fmt::format("Usage: sluice {} {}\n\n", command_, usage_);
    for (const std::string& line : wrap(description_, kColumns)) out += line + "\n";
    std::vector<std::string> groups = app->get_groups();
    std::stable_partition(groups.begin(), groups.end(),
                          [](const std::string& group) { return group != kHelpGroup; });
    for (const std::string& group : groups) {
      const std::vector<const CLI::Option*> options =
          app->get_options([&](const CLI::Option* option) { return option->get_group() == group; });
      if (options.empty()) continue;
      out += fmt::format("\n{}:\n", group);
      for (const CLI::Option* option : options) add_option(*option, out);
    }
    if (!examples_.empty()) out += "\nExamples:\n";
    for (const std::string& example : examples_) out += "  " + example + "\n";
    return out;
  }

 private:
  static void add_option(const CLI::Option& option, std::string& out) {
    std::string left = "  " + option.get_name(true, true);
    if (option.nonpositional() && !option.get_type_name().empty()) {
      left += " " + option.get_type_name();
    }
    if (left.size() + 2 > kHelpColumn) {
      out += left + "\n";
      left.clear();
    }
    for (const std::string& line : wrap(option.get_description(), kColumns - kHelpColumn)) {
      out += fmt::format("{:<{}}{}\n", left, kHelpColumn, line);
      left.clear();
    }
  }

  std::string command_, usage_, description_;
  std::vector<std::string> examples_;
};

[[noreturn]] void fail_unknown(const CLI::App& app, const std::string& word) {
  if (!word.starts_with('-')) {
    throw UsageError(fmt::format("{}: unexpected argument (quote a text of several words)", word));
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string name = closest_name(word.substr(0, word.find('=')), names);
  throw UsageError(fmt::format("{}: unknown flag{}", word,
                               name.empty() ? "" : fmt::format("; did you mean {}?", name)));
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

CLI::Option* add_checked(CLI::App& app, const std::string& name, std::string value_name,
                         std::string help, std::function<void(const std::string&)> take) {
  return app.add_option_function<std::string>(name, std::move(take), std::move(help))
      ->type_name(std::move(value_name))
      ->take_last();
}

}  // namespace

std::string closest_name(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    size_t distance = edit_distance(word, name);
    if (word.size() >= 4 && name.starts_with(word)) distance = std::min<size_t>(distance, 1);
    if (distance >= best_distance || distance >= name.size()) continue;
    best_distance = distance;
    best = name;
  }
  return best;
}

void set_help(CLI::App& app, std::string_view command, std::string_view usage,
              std::string_view description, std::vector<std::string> examples) {
  app.formatter(std::make_shared<HelpFormatter>(command, usage, description, std::move(examples)));
  app.set_help_flag("-h,--help", "this text");
  app.get_help_ptr()->group(kHelpGroup);
}

bool parse_flags(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining();
    const auto flag = std::find_if(unknown.begin(), unknown.end(),
                                   [](const auto& word) { return word.starts_with('-'); });
    if (flag != unknown.end()) fail_unknown(app, *flag);
    if (!unknown.empty()) fail_unknown(app, unknown.front());
    throw UsageError(error.what());
  }
  return true;
}

CLI::Option* add_switch(CLI::App& app, const std::string& name, bool& value, std::string help) {
  return app.add_flag(name, value, std::move(help));
}

CLI::Option* add_text(CLI::App& app, const std::string& name, const std::string& value_name,
                      std::string& value, std::string help) {
  return add_checked(app, name, value_name, std::move(help),
                     [&value](const std::string& text) { value = text; });
}

CLI::Option* add_name(CLI::App& app, const std::string& name, const std::string& value_name,
                      std::string& value, std::string help) {
  return add_checked(app, name, value_name, std::move(help), [&value, name](const auto& text) {
    if (text.empty()) throw CLI::ValidationError(name, "expected a name, got an empty text");
    value = text;
  });
}

CLI::Option* add_integer(CLI::App& app, const std::string& name, int& value, int low, int high,
                         std::string help) {
  return add_checked(app, name, "N", std::move(help), [&value, name, low, high](auto& text) {
    const std::optional<int> number = parse_number<int>(text);
    if (!number || *number < low || *number > high) {
      const std::string range = high == std::numeric_limits<int>::max()
                                    ? fmt::format("of at least {}", low)
                                    : fmt::format("from {} to {}", low, high);
      throw CLI::ValidationError(
          name, fmt::format("expected a whole number {}, got \"{}\"", range, text));
    }
    value = *number;
  });
}

CLI::Option* add_seed(CLI::App& app, const std::string& name, uint64_t& value, std::string help) {
  return add_checked(app, name, "N", std::move(help), [&value, name](const std::string& text) {
    const std::optional<uint64_t> number = parse_number<uint64_t>(text);
    if (!number) {
      throw CLI::ValidationError(
          name, fmt::format("expected a whole number from 0 to 2^64 - 1, got \"{}\"", text));
    }
    value = *number;
  });
}

CLI::Option* add_number(CLI::App& app, const std::string& name, float& value, float low, float high,
                        std::string help) {
  return add_checked(app, name, "X", std::move(help), [&value, name, low, high](auto& text) {
    const std::optional<float> number = parse_number<float>(text);
    if (!number || !std::isfinite(*number) || *number < low || *number > high) {
      throw CLI::ValidationError(
          name, fmt::format("expected a number from {} to {}, got \"{}\"", low, high, text));
    }
    value = *number;
  });
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        std::vector<std::string> choices, std::string help) {
  const std::string value_name = fmt::format("{}", fmt::join(choices, "|"));
  return add_checked(
      app, name, value_name, std::move(help), [&value, name, choices](const std::string& text) {
        if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
          throw CLI::ValidationError(
              name, fmt::format("expected {}, got \"{}\"", fmt::join(choices, " or "), text));
        }
        value = text;
      });
}

std::vector<int32_t> parse_integers(std::string_view list, std::string_view flag) {
  std::vector<int32_t> numbers;
  for (size_t start = 0; start <= list.size();) {
    const size_t comma = std::min(list.find(',', start), list.size());
    std::string_view word = list.substr(start, comma - start);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const std::optional<int32_t> number = parse_number<int32_t>(word);
    if (!number || *number < 0) {
      throw UsageError(
          fmt::format("{}: expected whole numbers like 1,2,3, got \"{}\"", flag, word));
    }
    numbers.push_back(*number);
    start = comma + 1;
  }
  return numbers;
}

}  // namespace sluice
