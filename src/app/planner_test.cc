#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include "app/cli.h"
#include "app/commands.h"
#include "app/plan_grid.h"
#include "base/error.h"
#include "base/json.h"
#include "plan/catalog.h"
#include "plan/hardware.h"

namespace sluice {
namespace {

using Command = int (*)(int, char**);

std::string run(Command command, std::vector<std::string> words) {
  words.insert(words.begin(), "command");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  try {
    EXPECT_EQ(command(int(words.size()), argv.data()), kOk);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

Json json_of(Command command, std::vector<std::string> words) {
  words.push_back("--json");
  return parse_json(run(command, std::move(words)), "output");
}

std::string fault(Command command, std::vector<std::string> words) {
  try {
    run(command, std::move(words));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t widest_line(const std::string& text) {
  size_t widest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, end - at);
    at = end + 1;
  }
  return widest;
}

TEST(SimulateCommand, VerifiesTheDraftOfAPlan) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "sluice-draft-plan.json";
  const auto simulate = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"--plan", file.string(), "--requests", "20", "--seed", "3"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(simulate_command, words);
  };
  const std::vector<std::string> plan = {"Kimi-K3", "--on", "CS-3", "--weights", "4bit"};
  const auto plan_with = [&](const std::string& draft) {
    std::vector<std::string> words = plan;
    words.insert(words.end(), {"--draft", draft, "-o", file.string()});
    return json_of(plan_command, words);
  };
  plan_with("mtp-3");
  const Json drafted = simulate({}), plain = simulate({"--draft", "none"});
  EXPECT_NEAR(drafted["tokens_per_verification"].get<double>(), 2.49, 0.15);
  EXPECT_EQ(plain["tokens_per_verification"], 1);
  EXPECT_LT(drafted["tpot_ms"]["mean"].get<double>(), 0.7 * plain["tpot_ms"]["mean"].get<double>());
  EXPECT_GT(plan_with("pipe")["best"]["batches_in_pipe"].get<int>(), 1);
  EXPECT_NE(fault(simulate_command, {"--plan", file.string()}).find("draft: expected one of none"),
            std::string::npos);
  std::filesystem::remove(file);
}

TEST(PlanCommand, FillsASite) {
  const std::vector<std::string> words = {"3T/150B/80/mla", "--on", "GB300",  "--weights", "4bit",
                                          "--min-speed",    "30",   "--site", "750MW"};
  const Json json = json_of(plan_command, words);
  const Json& site = json["site"];
  EXPECT_GT(json["users"].get<double>(), 1);
  EXPECT_EQ(site["users"].get<double>(), site["plans"].get<double>() * json["users"].get<double>());
  EXPECT_GE(site["tokens_per_s_per_user"].get<double>(), 30);
  EXPECT_LE(site["mw_drawn"].get<double>(), 750);
  EXPECT_GT(site["racks"].get<double>(), 1000);
  EXPECT_NE(json["notes"].dump().find("PUE of GB300-NVL72"), std::string::npos);
  const std::string text = run(plan_command, words);
  EXPECT_NE(text.find("A site of 750 MW"), std::string::npos);
  EXPECT_NE(text.find("tokens"), std::string::npos);
  EXPECT_TRUE(fault(plan_command, {"Kimi-K3", "--on", "CS-3", "--site", "750"})
                  .starts_with("--site: expected a number and kW, MW or GW"));
  EXPECT_NE(fault(plan_command, {"Kimi-K3", "--on", "TPU7x", "--weights", "8bit", "--site", "1GW"})
                .find("power: missing"),
            std::string::npos);
}

TEST(PlanCommand, PricesAndWritesAPlan) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "sluice-plan.json";
  const Json json = json_of(plan_command, {"Kimi-K3", "--on", "CS-3", "--weights", "4bit",
                                           "--users", "8", "-o", file.string()});
  const Json& best = json["best"];
  EXPECT_TRUE(best["meets_demand"].get<bool>());
  EXPECT_NEAR(best["tokens_per_s"].get<double>(), 8 * best["tokens_per_s_per_user"].get<double>(),
              0.01);
  EXPECT_GT(best["usd_per_mtok"].get<double>(), 0);
  EXPECT_GT(json["estimated_share"].get<double>(), 0);
  EXPECT_EQ(json["error_percent"], 35);
  EXPECT_FALSE(json["sensitivity"].empty());
  EXPECT_FALSE(json["runners_up"][0]["why"].get<std::string>().empty());
  const Json plan = parse_json(read(file), "plan");
  EXPECT_EQ(plan["model"], "Kimi-K3");
  EXPECT_EQ(plan["stages"][0]["hardware"], "CS-3");
  std::filesystem::remove(file);
}

TEST(PlanCommand, PrefillElsewhereSendsTheCache) {
  const Json json = json_of(plan_command, {"DeepSeek-V3", "--on", "CS-3", "--weights", "4bit",
                                           "--prefill-on", "B200", "--context", "96300"});
  EXPECT_EQ(json["prefill"]["cache_bytes"], int64_t{96300} * 70272);
  EXPECT_NEAR(json["prefill"]["transfer_ms"].get<double>(), 45, 1);  // at 150 GB/s
}

TEST(SimulateCommand, ComputesPromptsElsewhere) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "sluice-elsewhere.json";
  const Json plan =
      json_of(plan_command, {"DeepSeek-V3", "--on", "CS-3", "--weights", "8bit", "--prefill-on",
                             "B200", "--context", "8192", "-o", file.string()});
  const std::vector<std::string> load = {
      "--plan", file.string(), "--users", "1",          "--prompt",
      "8192",   "--output",    "64",      "--requests", "2"};
  const Json one = json_of(simulate_command, load);
  const double planned = plan["prefill"]["first_token_ms"];
  EXPECT_NEAR(one["ttft_ms"]["mean"].get<double>(), planned, 0.02 * planned);
  EXPECT_GT(one["prefill"]["busy"].get<double>(), 0.5);
  EXPECT_GT(one["prefill"]["link_busy"].get<double>(), 0);
  Json json = parse_json(read(file), "plan");
  json["prefill"]["stages"][0]["hardware"] = "H101";
  std::ofstream(file) << json.dump();
  EXPECT_TRUE(
      fault(simulate_command, load).starts_with(file.string() + ": prefill: stage 0: hardware"));
  std::filesystem::remove(file);
}

TEST(PlanCommand, SpeaksToPeople) {
  const std::string text = run(plan_command, {"Kimi-K3", "--on", "CS-3", "--weights", "4bit"});
  EXPECT_NE(text.find("of which the slowest stage"), std::string::npos);
  EXPECT_EQ(text.find("_bytes"), std::string::npos);
  const std::string help = run(plan_command, {"--help"});
  for (const std::string& name : hardware_names()) {
    EXPECT_NE(help.find(name), std::string::npos) << name;
  }
}

TEST(PlanCommand, SaysWhatFormatsItDoesNotPrice) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "Qwen3-32B-NVFP4";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << catalog_config("Qwen3-32B")->json();
  const std::string gguf = SLUICE_GOLDEN_DIR "/llama-kquants/model.gguf";
  const auto memory = [](std::vector<std::string> words) {
    return json_of(memory_command, std::move(words))["not_counted"].dump();
  };
  const auto plan = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--on", "H100", "--context", "64", "--output", "64"});
    return json_of(plan_command, std::move(words))["notes"].dump();
  };
  EXPECT_NE(memory({folder}).find("the name says NVFP4"), std::string::npos);
  EXPECT_NE(plan({folder}).find("--weights 4bit prices 4"), std::string::npos);
  EXPECT_NE(plan({gguf}).find("the file has "), std::string::npos);
  EXPECT_EQ(memory({gguf}), "[]");  // counts the file
  EXPECT_EQ(memory({folder, "--weights", "4bit"}), "[]");
  EXPECT_EQ(plan({folder, "--weights", "4bit"}), "[]");
}

TEST(PlanCommand, ImpossibleDemandsSayByHowMuch) {
  const std::string slow =
      fault(plan_command, {"Kimi-K3", "--on", "B200", "--min-speed", "100000"});
  EXPECT_NE(slow.find("no plan of"), std::string::npos);
  EXPECT_NE(slow.find("times too slow"), std::string::npos);
  EXPECT_NE(fault(plan_command, {"Kimi-K3", "--on", "B20O"}).find("did you mean B200?"),
            std::string::npos);
  EXPECT_NE(fault(plan_command, {"Kimi-K4", "--on", "B200"}).find("did you mean Kimi-K3?"),
            std::string::npos);
  EXPECT_NE(fault(plan_command, {"Kimi-K3"}).find("--on"), std::string::npos);
  EXPECT_NE(fault(plan_command, {"Kimi-K3", "--on", "CS-3", "--draft", "magic"}).find("--draft"),
            std::string::npos);
}

bool names(const std::string& message, const char* what) {
  return message.find(what) != std::string::npos;
}

TEST(PlanCommand, LimitsOnWhatIsNotKnownAreRefused) {
  const std::vector<std::string> words = {"gpt-oss-20b", "--on", "H100,Jalapeno"};
  for (const auto& [flag, what] : {std::pair("--max-usd", "--max-usd: the price of Jalapeno"),
                                   {"--max-kw", "--max-kw: the power of Jalapeno"}}) {
    std::vector<std::string> limited = words;
    limited.insert(limited.end(), {flag, "1000000"});
    EXPECT_TRUE(names(fault(plan_command, limited), what));
  }
}

TEST(PlanCommand, EmptyNamesAreNamed) {
  for (const char* list : {",", "CS-3,", ",CS-3", "CS-3,,B200"}) {
    EXPECT_TRUE(names(fault(plan_command, {"Kimi-K3", "--on", list}),
                      "--on: expected names with a comma between"))
        << list;
  }
  EXPECT_TRUE(names(fault(plan_command, {"Kimi-K3", "--on", ""}), "--on: expected a name"));
  EXPECT_TRUE(names(fault(plan_command, {"Kimi-K3", "--on", "CS-3", "--prefill-on", ""}),
                    "--prefill-on: expected a name"));
  EXPECT_TRUE(names(fault(phase_command, {"--svg", ""}), "--svg: expected a name"));
}

TEST(SimulateCommand, RefusesWhatItCannotUse) {
  const std::filesystem::path plan = std::filesystem::path(testing::TempDir()) / "sluice-odd.json";
  run(plan_command, {"Qwen3-8B", "--on", "H100", "-o", plan.string()});
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--plan", plan.string()});
    return fault(simulate_command, std::move(words));
  };
  EXPECT_TRUE(names(refused({"--hop-us", "5"}), "--hop-us"));
  EXPECT_TRUE(names(refused({"--workload", "w.csv", "--turns", "5"}), "--turns"));
  EXPECT_TRUE(names(refused({"--cache-tokens", "1"}), "no request is served: all 1000"));
  EXPECT_TRUE(names(refused({"--turns", "10000", "--turn-prompt", "16777216"}),
                    "expected requests of at most 16777216 tokens"));
  EXPECT_TRUE(names(refused({"--users", "1000", "--prompt", "1000000"}), "served at once"));
  // A draft that only plan prices: what to do instead.
  EXPECT_TRUE(names(refused({"--draft", "pipe"}), "--draft: expected one of none, mtp-1"));
  EXPECT_TRUE(names(refused({"--draft", "pipe"}), "--draft none simulates without it"));
  EXPECT_TRUE(names(refused({"--draft", "magic"}), "eagle3-8, got magic"));
  EXPECT_TRUE(names(fault(simulate_command, {"--host", "h.json", "--draft", "mtp-1"}),
                    "--plan or --stage-us take a draft"));
  for (const auto& [flag, needed] : {std::pair("--guess-us", "requires --draft"),
                                     {"--think-s", "requires --turns"},
                                     {"--turn-prompt", "requires --turns"}}) {
    EXPECT_TRUE(names(fault(simulate_command, {"--stage-us", "5", flag, "1"}), needed)) << flag;
  }
  // What is wrong with a plan is told with its file.
  Json json = parse_json(read(plan), "plan");
  const auto changed = [&](const char* key, Json value) {
    Json wrong = json;
    wrong[key] = std::move(value);
    std::ofstream(plan) << wrong.dump();
    return refused({});
  };
  for (const std::string& message :
       {changed("model", "Qwen9"), changed("draft", "mtp-99"), changed("compute_bits", 7)}) {
    EXPECT_TRUE(message.starts_with(plan.string())) << message;
  }
  std::filesystem::remove(plan);
}

TEST(ClaimsCommand, SaysWhyIn80Columns) {
  const std::string text = run(claims_command, {});
  EXPECT_NE(text.find("150b-active: circular"), std::string::npos);
  EXPECT_LE(widest_line(text), 80u);
  const Json json = json_of(claims_command, {SLUICE_GOLDEN_DIR "/plan/claims.json"});
  EXPECT_EQ(json["claims"].size(), 3u);
  EXPECT_EQ(json["claims"][0]["verdict"], "consistent");
}

TEST(PhaseCommand, DrawsContours) {
  const std::filesystem::path folder = testing::TempDir();
  const Json json =
      json_of(phase_command, {"--attention", "gqa", "--svg", (folder / "sluice.svg").string(),
                              "--csv", (folder / "sluice.csv").string()});
  const Json& points = json["points"];
  EXPECT_GT(points.size(), 500u);
  EXPECT_LT(points[0]["devices"].get<double>(), points[points.size() - 1]["devices"].get<double>());
  const std::string svg = read(folder / "sluice.svg");
  EXPECT_NE(svg.find("gqa attention on CS-3"), std::string::npos);
  EXPECT_NE(svg.find("<polyline"), std::string::npos);
  EXPECT_NE(read(folder / "sluice.csv").find("context,parameters,devices"), std::string::npos);
  std::filesystem::remove(folder / "sluice.svg");
  std::filesystem::remove(folder / "sluice.csv");
}

/// What a page holds between the marks of its data.
Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return parse_json(page.substr(from, page.find("</script>", from) - from), "page");
}

struct PagePoint {
  const char *model, *hardware, *weights, *draft;
  int users, context;
};

size_t index_named(const Json& list, const char* key, const std::string& name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i][key] == name) return i;
  }
  ADD_FAILURE() << name << " is not on the page";
  return 0;
}

/// The numbers of a Column's text.
std::vector<double> column_of(const Json& json) {
  const std::string text = json.get<std::string>();
  std::vector<double> values;
  for (size_t at = 0; at < text.size();) {
    if (text[at] >= 'A' && text[at] <= 'Z') {
      values.insert(values.end(), size_t(text[at++] - '@'), values.back());
      continue;
    }
    const int exponent = std::stoi(text.substr(at + 4, 1), nullptr, 36) - kExponentBias;
    values.push_back(std::stoi(text.substr(at, 4), nullptr, 36) * std::pow(10, exponent));
    at += 5;
  }
  return values;
}

TEST(PlanPage, ColumnsKeepSixDigits) {
  Column column;
  const double values[] = {0, 0, 1.234567, 999999.6, 1e-9, 12, 12, 12, 7.5e17};
  for (double value : values) column.add(value);
  for (int i = 0; i < 60; ++i) column.add(7.5e17);
  const std::vector<double> got = column_of(column.text());
  ASSERT_EQ(got.size(), std::size(values) + 60);
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = values[std::min(i, std::size(values) - 1)];
    EXPECT_NEAR(got[i], want, 5e-6 * want) << i;
  }
  EXPECT_EQ(column.text().substr(0, 6), "0000iA");
}

/// Where a point is in the columns of its grid, on the axes of users and contexts that are named.
size_t place_of(const Json& data, const PagePoint& p, const char* users = "users",
                const char* context = "context") {
  const Json& model = data["models"][index_named(data["models"], "name", p.model)];
  const Json& draft = data["drafts"][index_named(data["drafts"], "name", p.draft)];
  size_t at = index_named(model["weights"], "format", p.weights);
  for (const auto& [axis, value] : {std::pair<const char*, Json>{users, p.users},
                                    {context, p.context},
                                    {"guesses", draft["length"]}}) {
    const Json& values = data["axes"][axis];
    const auto found = std::find(values.begin(), values.end(), value);
    EXPECT_NE(found, values.end()) << axis << " " << value;
    at = at * values.size() + size_t(found - values.begin());
  }
  return at;
}

const Json& grid_with(const Json& data, const PagePoint& p) {
  const size_t model = index_named(data["models"], "name", p.model);
  const size_t hardware = index_named(data["hardware"], "name", p.hardware);
  return data["grids"][model * data["hardware"].size() + hardware];
}

/// The entry of the best plan of a point, and the index of its number of guesses.
std::pair<size_t, size_t> entry_of(const Json& data, const PagePoint& p) {
  const Json& grid = grid_with(data, p);
  const size_t at = place_of(data, p), n_guesses = data["axes"]["guesses"].size();
  const size_t n_loads = data["axes"]["users"].size() * data["axes"]["context"].size();
  const auto way = size_t(std::lround(column_of(grid["best"]).at(at)));
  const size_t load = at / n_guesses % n_loads, format = at / n_guesses / n_loads;
  const size_t wanted = (format * data["most_ways"].get<size_t>() + way) * n_loads + load;
  const std::vector<double> steps = column_of(grid["step"]);
  size_t key = 0;
  for (size_t entry = 0; entry < steps.size(); ++entry) {
    key += size_t(std::lround(steps[entry]));
    if (key == wanted) return {entry, at % n_guesses};
  }
  ADD_FAILURE() << "the best way has no entry";
  return {0, 0};
}

std::string filled(std::string form, const Json& counts) {
  for (const Json& n : counts) form.replace(form.find('#'), 1, std::to_string(n.get<int>()));
  return form;
}

/// The columns of a point, by name, with those of its plan.
Json page_point(const Json& data, const PagePoint& p) {
  const Json& model = data["models"][index_named(data["models"], "name", p.model)];
  const Json& draft = data["drafts"][index_named(data["drafts"], "name", p.draft)];
  const Json& grid = grid_with(data, p);
  const auto [entry, guess] = entry_of(data, p);
  Json point = {{"accepted", draft["accepted"]}, {"devices", 0}, {"usd", 0.0}, {"watts", 0.0}};
  const auto take = [&](const Json& names, const Json& columns, size_t at) {
    for (size_t i = 0; i < names.size(); ++i) {
      point[names[i].get<std::string>()] = column_of(columns[i]).at(at);
    }
  };
  take(data["shared"], grid["shared"], entry);
  take(data["columns"], grid["points"][guess], entry);
  const Json& plan = grid["plans"][size_t(std::lround(column_of(grid["plan"]).at(entry)))];
  point["name"] = filled(grid["forms"][plan[0].get<size_t>()][0], plan[1]);
  for (size_t part = 0; part < plan[2].size(); ++part) {
    const int n = plan[2][part];
    const Json& each = grid["parts"][part];
    point["devices"] = point["devices"].get<int>() + n;
    point["usd"] = point["usd"].get<double>() + n * each[1].get<double>();
    point["watts"] = point["watts"].get<double>() + n * each[2].get<double>();
  }
  const auto of = [&](const char* column) { return point[column].get<double>(); };
  const double computing = of("compute_us") + of("memory_us") + of("joins_us") + of("launch_us");
  point["draft_us"] = draft["length"].get<double>() * computing * 2 / model["blocks"].get<double>();
  point["round_us"] = computing + of("hops_us") + of("draft_us") + of("waiting_us");
  return point;
}

std::vector<std::string> words_of(const PagePoint& p, const std::string& on) {
  std::vector<std::string> words = {p.model,
                                    "--on",
                                    on,
                                    "--draft",
                                    p.draft,
                                    "--users",
                                    std::to_string(p.users),
                                    "--context",
                                    std::to_string(p.context)};
  if (std::string(p.weights) != "published") words.insert(words.end(), {"--weights", p.weights});
  return words;
}

TEST(PlanPage, HoldsWhatPlanPrints) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "sluice.html";
  run(plan_command, {"Qwen3-8B", "--on", "H100,CS-3", "--html", file.string(), "--users", "7"});
  const std::string page = read(file);
  const Json data = data_of(page);
  EXPECT_EQ(data["first"]["model"], "Qwen3-8B");
  EXPECT_EQ(data["first"]["users"], 7);
  EXPECT_GT(data["claims"].size(), 10u);
  EXPECT_EQ(data["hardware"].size(), 3u);
  for (const PagePoint& p : {PagePoint{"Qwen3-8B", "H100", "published", "none", 1, 1024},
                             PagePoint{"Kimi-K3", "H100 + CS-3", "4bit", "none", 8, 16384},
                             PagePoint{"Qwen3-8B", "H100", "4bit", "mtp-4", 64, 16384},
                             PagePoint{"Kimi-K3", "CS-3", "published", "dspark-7", 4, 65536},
                             PagePoint{"Meta-Llama-3.1-70B", "H100", "8bit", "none", 16, 4096},
                             PagePoint{"3T/150B/80/mla", "CS-3", "4bit", "eagle3-4", 16, 262144}}) {
    const bool is_pair = std::string(p.hardware).find('+') != std::string::npos;
    const Json best =
        json_of(plan_command, words_of(p, is_pair ? "H100,CS-3" : p.hardware))["best"];
    const Json point = page_point(data, p);
    const auto near = [&](double want, double got) {
      EXPECT_NEAR(got, want, 1e-4 + 1e-5 * want) << p.model << " on " << p.hardware;
    };
    const auto of = [&](const char* column) { return point[column].get<double>(); };
    EXPECT_EQ(point["name"], best["plan"]);
    EXPECT_EQ(point["devices"], best["devices"]);
    near(best["tokens_per_s_per_user"].get<double>(), 1e6 * of("accepted") / of("round_us"));
    near(best["first_token_ms"].get<double>(), of("first_ms"));
    near(best["usd_per_hour"].get<double>(), of("usd"));
    near(best["kw"].get<double>(), of("watts") / 1e3);
    near(best["memory"]["weights_bytes"].get<double>(), of("weights_gb") * 1e9);
    near(best["memory"]["cache_bytes"].get<double>(), of("cache_gb") * 1e9);
    for (const char* part : {"compute", "memory", "joins", "launch", "hops", "draft"}) {
      near(best["time_us"][part].get<double>(), of((std::string(part) + "_us").c_str()));
    }
  }
  std::filesystem::remove(file);
}

TEST(PlanPage, HoldsSensitivitiesAndPrefillElsewhere) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "sluice.html";
  run(plan_command, {"kimi-k3", "--on", "H100,CS-3", "--html", file.string()});
  const Json data = data_of(read(file));
  EXPECT_EQ(data["models"][0]["name"], "Kimi-K3");
  for (size_t m = 1; m < data["models"].size(); ++m)
    EXPECT_NE(data["models"][m]["name"], "Kimi-K3");
  const PagePoint p{"Kimi-K3", "CS-3", "published", "dspark-7", 16, 262144};
  std::vector<std::string> words = words_of(p, p.hardware);
  words.insert(words.end(), {"--prefill-on", "H100"});
  const Json plan = json_of(plan_command, words);
  const Json& rests = grid_with(data, p)["rests"];
  const size_t at = place_of(data, p, "rest_users", "rest_context");
  const double speed = plan["best"]["tokens_per_s_per_user"].get<double>();
  ASSERT_FALSE(plan["sensitivity"].empty());
  for (const Json& want : plan["sensitivity"]) {
    const auto found = std::find(rests["numbers"].begin(), rests["numbers"].end(),
                                 Json({0, want["number"].get<std::string>()}));
    ASSERT_NE(found, rests["numbers"].end()) << want["number"];
    const auto i = size_t(found - rests["numbers"].begin());
    const auto near = [&](const char* column, double value) {
      EXPECT_NEAR(column_of(rests[column][i]).at(at), value, 6e-4 + 0.006 * value) << want;
    };
    near("weight", want["elasticity"].get<double>());
    near("low", want["at_low"].get<double>() / speed);
    near("high", want["at_high"].get<double>() / speed);
  }
  const Json& prefill = data["prefills"][index_named(data["hardware"], "name", "H100")];
  const size_t row = 4;  // 262,144 tokens, weights as published
  EXPECT_EQ(prefill["plans"][size_t(std::lround(column_of(prefill["plan"]).at(row)))],
            plan["prefill"]["plan"]);
  const double ms = plan["prefill"]["compute_ms"].get<double>();
  EXPECT_NEAR(column_of(prefill["ms"]).at(row), ms, 1e-5 * ms);
  EXPECT_EQ(data["models"][0]["prompt_bytes"][row], plan["prefill"]["cache_bytes"]);
  std::filesystem::remove(file);
}

TEST(PlanPage, WritesWhereItCanOrSaysSoAtOnce) {
  EXPECT_EQ(fault(plan_command, {"--html", "/nowhere/plans.html"}),
            "/nowhere/plans.html: cannot be written");
}

TEST(PlanPage, NeedsNothingElse) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "sluice.html";
  run(plan_command, {"--on", "H100", "--html", file.string()});
  const std::string page = read(file);
  EXPECT_LT(page.size(), 3'000'000u);
  EXPECT_NE(page.find("content=\"default-src 'none';"), std::string::npos);
  const std::regex loads(R"((src|href)\s*=(?!"data:)|url\(|@import|^import |fetch\()",
                         std::regex::multiline);
  const std::string before = page.substr(0, page.find("id=\"data\"")),
                    after = page.substr(page.find("</script>"));
  EXPECT_FALSE(std::regex_search(before, loads));
  EXPECT_FALSE(std::regex_search(after, loads));
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_NE(fault(plan_command, {"--html", file.string(), "--min-speed", "5"}).find("--min-speed"),
            std::string::npos);
  EXPECT_NE(fault(plan_command, {"--html", file.string(), "--users", "257"})
                .find("--users: expected 1 to 256 with --html, got 257"),
            std::string::npos);
  EXPECT_NE(fault(plan_command, {"--html", file.string(), "--on", "Taalas-HC1"})
                .find("expected hardware that can be priced: Taalas-HC1: expected memory"),
            std::string::npos);
  std::filesystem::remove(file);
}

TEST(ValidateCommand, JudgesRowsAndWritesThem) {
  const std::filesystem::path out = std::filesystem::path(testing::TempDir()) / "sluice-rows.csv";
  const Json json = json_of(validate_command, {"--silicon", SLUICE_GOLDEN_DIR "/plan/rows.csv",
                                               "--rows-out", out.string()});
  EXPECT_EQ(json["silicon"]["rows"], 3);
  EXPECT_EQ(json["silicon"]["points_judged"], 2);
  EXPECT_EQ(json["silicon"]["not_predicted"]["model is not in the catalogue"], 1);
  EXPECT_LE(json["wafers"]["leave_one_model_out"]["mean_absolute_percent"].get<double>(), 35);
  for (const Json& row : json["memory"]) {
    EXPECT_LE(std::abs(row["error_percent"].get<double>()), 1);
  }
  const std::string rows = read(out);
  EXPECT_TRUE(
      rows.starts_with("id,concurrency,tpot_measured_ms,tpot_predicted_ms,"
                       "ttft_measured_ms,ttft_predicted_ms\nmade_up_tp8_ep1_1,16,12.0000,"));
  EXPECT_NE(rows.find("made_up_3,,12.0000,,120.0000,\n"), std::string::npos);
  // The same file as input, or nothing to fit.
  EXPECT_TRUE(
      names(fault(validate_command, {"--silicon", out.string(), "--rows-out", out.string()}),
            "the file that is read"));
  std::ofstream(out) << "id,model_path,system,backend,mode,isl,osl\n";
  EXPECT_TRUE(names(fault(validate_command, {"--silicon", out.string(), "--leave-out"}),
                    "expected rows to fit"));
  std::filesystem::remove(out);
}

}  // namespace
}  // namespace sluice
