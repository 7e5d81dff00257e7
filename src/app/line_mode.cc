#include "app/line_mode.h"

#include <iostream>
#include <string>

#include "app/report.h"

namespace sluice {

void serve_lines(const std::function<OrderedJson(const OrderedJson&)>& answer) {
  std::string line;
  for (int n = 1; std::getline(std::cin, line); ++n) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    OrderedJson result;
    try {
      result = answer(parse_ordered_json(line, "line " + std::to_string(n)));
    } catch (const std::exception& error) {
      result = {{"error", error.what()}};
    }
    print_json(result);
  }
}

}  // namespace sluice
