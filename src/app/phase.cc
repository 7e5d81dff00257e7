// sluice phase: where which machine is enough: context length x model size.
#include "plan/phase.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "app/cli.h"
#include "app/commands.h"
#include "app/plan_input.h"
#include "app/report.h"
#include "base/error.h"
#include "plan/hypothetical.h"

namespace sluice {
namespace {

constexpr int kColumns = 33, kRows = 25;

struct PhaseOptions {
  std::string on = "CS-3", attention = "mla", weights = "4bit", svg, csv;
  int users = 80, layers = 80;
  float active = 0.05F;
  bool json = false;
};

bool parse(PhaseOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(
      app, "phase", "[flags]",
      "The feasibility diagram: for every context length and model size, the devices that hold "
      "weights and caches, tokens/s of one user and USD per million tokens when all users "
      "decode. Models are hypothetical: a share of their parameters is active, attention is of "
      "one kind. The least number of devices is priced, in one pipeline.",
      {"sluice phase --on CS-3 --attention gqa --svg gqa.svg",
       "sluice phase --on B200 --attention compressed --users 16 --csv points.csv"});
  add_name(app, "--on", "HW", o.on, "hardware, by name as for `sluice plan` (default CS-3)");
  add_choice(app, "--attention", o.attention, attention_names(), "kind of attention (default mla)")
      ->group("Model");
  add_integer(app, "--layers", o.layers, 1, 4096, "layers (default 80)")->group("Model");
  add_number(app, "--active", o.active, 0.045F, 1, "share of active parameters (default 0.05)")
      ->group("Model");
  add_choice(app, "--weights", o.weights, {"4bit", "8bit", "bf16"}, "format (default 4bit)")
      ->group("Model");
  add_integer(app, "--users", o.users, 1, 1 << 24, "requests in flight (default 80)");
  add_name(app, "--svg", "FILE", o.svg, "write the diagram")->group("Output");
  add_name(app, "--csv", "FILE", o.csv, "write the points")->group("Output");
  add_switch(app, "--json", o.json, "print one object")->group("Output");
  return parse_flags(app, argc, argv);
}

struct Contour {
  const char* name;
  double PhasePoint::*value;
  std::vector<double> levels;
  const char* colour;
};

/// Where a column of the grid crosses `level` last, as a fraction of the rows; negative: nowhere.
double crossing(const std::vector<PhasePoint>& points, int column, double PhasePoint::*value,
                double level) {
  for (int row = kRows - 2; row >= 0; --row) {
    const double a = std::log(points[size_t(column * kRows + row)].*value / level);
    const double b = std::log(points[size_t(column * kRows + row + 1)].*value / level);
    if ((a <= 0) != (b <= 0)) return (row + a / (a - b)) / (kRows - 1);
  }
  return -1;
}

std::string count_text(double n) {
  return n >= 1e12  ? fmt::format("{:.3g}T", n / 1e12)
         : n >= 1e9 ? fmt::format("{:.3g}B", n / 1e9)
         : n >= 1e6 ? fmt::format("{:.3g}M", n / 1e6)
                    : fmt::format("{:.3g}k", n / 1e3);
}

std::string draw(const PhaseOptions& o, const std::vector<PhasePoint>& points) {
  constexpr double kLeft = 80, kTop = 50, kWidth = 640, kHeight = 420;
  std::string svg =
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 800 560' font-family='sans-serif' "
      "font-size='13'>\n<rect width='800' height='560' fill='white'/>\n";
  svg += fmt::format("<text x='{}' y='28' font-size='16'>{} attention on {}, {} users, {}</text>\n",
                     kLeft, o.attention, o.on, o.users, o.weights);
  svg += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='none' stroke='#888'/>\n",
                     kLeft, kTop, kWidth, kHeight);
  for (int i = 0; i <= 4; ++i) {
    const double x = kLeft + kWidth * i / 4, y = kTop + kHeight * (1 - i / 4.0);
    svg += fmt::format("<text x='{:.0f}' y='{}' text-anchor='middle'>{}</text>\n", x,
                       kTop + kHeight + 20, count_text(phase_contexts(5)[size_t(i)]));
    svg += fmt::format("<text x='{}' y='{:.0f}' text-anchor='end'>{}</text>\n", kLeft - 8, y + 4,
                       count_text(phase_sizes(5)[size_t(i)]));
  }
  svg += fmt::format(
      "<text x='{}' y='{}' text-anchor='middle'>context, tokens; upwards: "
      "parameters</text>\n",
      kLeft + kWidth / 2, kTop + kHeight + 42);
  const Contour contours[] = {
      {"devices", &PhasePoint::devices, {8, 32, 64, 128, 512}, "#1f5fa8"},
      {"tokens/s per user", &PhasePoint::user_tokens_per_s, {30, 100, 300, 1000}, "#2e8540"},
      {"USD per Mtok", &PhasePoint::usd_per_mtok, {1, 10, 100}, "#b3541e"}};
  double legend = kLeft;
  for (const Contour& contour : contours) {
    if (points.front().*contour.value <= 0) continue;
    svg += fmt::format("<text x='{}' y='{}' fill='{}'>{}</text>\n", legend, kTop + kHeight + 68,
                       contour.colour, contour.name);
    legend += 200;
    for (double level : contour.levels) {
      std::string line;
      double last_x = 0, last_y = 0;
      for (int column = 0; column < kColumns; ++column) {
        const double row = crossing(points, column, contour.value, level);
        if (row < 0) continue;
        last_x = kLeft + kWidth * column / (kColumns - 1);
        last_y = kTop + kHeight * (1 - row);
        line += fmt::format("{:.1f},{:.1f} ", last_x, last_y);
      }
      if (line.empty()) continue;
      svg += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='1.5'/>\n",
                         line, contour.colour);
      svg += fmt::format("<text x='{:.0f}' y='{:.0f}' fill='{}' font-size='11'>{:g}</text>\n",
                         last_x + 3, last_y, contour.colour, level);
    }
  }
  return svg + "</svg>\n";
}

void print_table(const std::vector<PhasePoint>& points) {
  fmt::print("{:>10} {:>10} {:>10} {:>14} {:>14}\n", "context", "parameters", "devices",
             "tokens/s user", "USD per Mtok");
  for (int column = 0; column < kColumns; column += 8) {
    for (int row = 0; row < kRows; row += 6) {
      const PhasePoint& p = points[size_t(column * kRows + row)];
      fmt::print("{:>10} {:>10} {:>10.0f} {:>14} {:>14}\n", count_text(p.context),
                 count_text(p.parameters), p.devices, short_number(p.user_tokens_per_s),
                 p.usd_per_mtok > 0 ? short_number(p.usd_per_mtok) : "not known");
    }
  }
  fmt::print("\nEvery 8th of {} contexts and 6th of {} sizes; --csv and --json give all.\n",
             kColumns, kRows);
}

}  // namespace

int phase_command(int argc, char** argv) {
  PhaseOptions o;
  if (!parse(o, argc, argv)) return kOk;
  const Hardware hardware = require_hardware(o.on, "--on");
  const PhaseQuestion question{.attention = o.attention,
                               .layers = double(o.layers),
                               .active = o.active,
                               .users = double(o.users),
                               .weights = weight_format(o.weights)};
  for (const std::string& out : {o.svg, o.csv}) {
    if (!out.empty()) require_writable(out);
  }
  std::vector<PhasePoint> points;
  for (double context : phase_contexts(kColumns)) {
    for (double size : phase_sizes(kRows)) {
      points.push_back(phase_point(question, hardware, context, size));
    }
  }
  if (!o.svg.empty()) write_file(o.svg, draw(o, points));
  std::string csv = "context,parameters,devices,tokens_per_s_per_user,usd_per_mtok\n";
  OrderedJson list = OrderedJson::array();
  for (const PhasePoint& p : points) {
    csv += fmt::format("{:.0f},{:.6g},{:.0f},{:.4f},{}\n", p.context, p.parameters, p.devices,
                       p.user_tokens_per_s,
                       p.usd_per_mtok > 0 ? fmt::format("{:.4f}", p.usd_per_mtok) : "");
    list.push_back({{"context", std::round(p.context)},
                    {"parameters", p.parameters},
                    {"devices", p.devices},
                    {"tokens_per_s_per_user", rounded(p.user_tokens_per_s)},
                    {"usd_per_mtok", p.usd_per_mtok > 0 ? OrderedJson(rounded(p.usd_per_mtok))
                                                        : OrderedJson(nullptr)}});
  }
  if (!o.csv.empty()) write_file(o.csv, csv);
  if (o.json) {
    print_json(OrderedJson{{"hardware", hardware.name},
                           {"attention", o.attention},
                           {"users", o.users},
                           {"layers", o.layers},
                           {"points", list}});
  } else {
    print_table(points);
  }
  return kOk;
}

}  // namespace sluice
