// A config.json: parsing, and every typed getter on every key.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/json.h"

namespace {

using namespace sluice;

template <typename F>
void allow_error(F f) {
  try {
    f();
  } catch (const Error&) {
  }
}

void read_everything(const Config& config, int depth) {
  for (const auto& item : config.json().items()) {
    const std::string& key = item.key();
    allow_error([&] { config.integer(key); });
    allow_error([&] { config.integer_in(key, 1, 1000); });
    allow_error([&] { config.number(key, 0.0); });
    allow_error([&] { config.boolean(key, false); });
    allow_error([&] { config.text(key); });
    allow_error([&] { config.texts(key); });
    allow_error([&] { config.integers(key); });
    if (depth < 4) allow_error([&] { read_everything(config.object(key), depth + 1); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  allow_error([&] { read_everything(Config(parse_json(text, "fuzz.json"), "fuzz.json"), 0); });
  allow_error([&] { parse_ordered_json(text, "fuzz.json"); });
  return 0;
}
