#include "plan/hardware.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

TEST(Hardware, EveryProfileIsComplete) {
  EXPECT_GE(hardware_names().size(), 20u);
  for (const std::string& name : hardware_names()) {
    const std::optional<Hardware> hardware = find_hardware(name);
    ASSERT_TRUE(hardware.has_value()) << name;
    const bool wired = hardware->find("memory_bytes") == nullptr;  // weights in the wiring
    EXPECT_EQ(wired, name == "Taalas-HC1");
    EXPECT_TRUE(wired || hardware->find("usable_memory") != nullptr) << name;
    // How many megawatts serve whom can be asked of all whose power is known.
    EXPECT_TRUE(wired || hardware->find("power") == nullptr || hardware->find("pue") != nullptr)
        << name;
    for (const auto& [number, quantity] : hardware->numbers) {
      EXPECT_FALSE(quantity.source.empty()) << name << " " << number;
      // Who assumes a number says how far it may be off.
      EXPECT_TRUE(quantity.kind != "assumed" || quantity.low < quantity.high)
          << name << " " << number;
    }
  }
}

TEST(Hardware, NamesAndAliases) {
  EXPECT_EQ(find_hardware("wse-3")->name, "CS-3");
  EXPECT_EQ(find_hardware("b200_sxm")->name, "B200");
  EXPECT_FALSE(find_hardware("H900").has_value());
}

TEST(Hardware, DevicesFromTheUsablePart) {
  const Hardware wafer = *find_hardware("CS-3");  // 44 GB, 0.8 usable (0.6 to 0.95)
  const DeviceCount one = devices_for(wafer, 35e9);
  EXPECT_EQ(one.value, 1);
  EXPECT_EQ(one.worst, 2);
  const DeviceCount many = devices_for(wafer, 1.6e12);
  EXPECT_EQ(many.value, 46);
  EXPECT_EQ(many.best, 39);
  EXPECT_EQ(many.worst, 61);
  EXPECT_THROW(devices_for(*find_hardware("Taalas"), 1e9), Error);
}

std::string fault(const std::string& number) {
  const std::string text =
      R"({"name": "x", "family": "gpu", "devices_per_node": 8, "numbers": {)" + number + "}}";
  try {
    hardware_from_json(Config(parse_json(text, "x.json"), "x.json"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Hardware, WrongNumbersNameTheField) {
  const std::string rest = R"("kind": "official", "source": "s")";
  EXPECT_EQ(fault(R"("power": {"value": 700, "unit": "W", )" + rest + "}"), "");
  EXPECT_EQ(fault(R"("power": {"value": 700, "unit": "kW", )" + rest + "}"),
            "x.json: power: unit: expected W, got kW");
  EXPECT_EQ(fault(R"("powr": {"value": 700, "unit": "W", )" + rest + "}"),
            "x.json: numbers: powr is not known");
  EXPECT_NE(fault(R"("power": {"value": -700, "unit": "W", )" + rest + "}").find("power"),
            std::string::npos);
  EXPECT_NE(fault(R"("power": {"value": NaN, "unit": "W", )" + rest + "}").find("value"),
            std::string::npos);
  EXPECT_NE(fault(R"("power": {"value": 7, "low": 8, "unit": "W", )" + rest + "}").find("low"),
            std::string::npos);
  EXPECT_NE(fault(R"("memory_bytes": {"value": 1e18, "unit": "B", )" + rest + "}").find("<="),
            std::string::npos);
  EXPECT_NE(fault(R"("power": {"value": 7, "unit": "W", "kind": "rumour", "source": "s"})")
                .find("kind: expected one of official"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice
