// A chat template: parsing, and rendering a short conversation.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::TemplateInput input;
  input.messages = sluice::OrderedJson::parse(
      R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": []}])");
  input.variables["d"] = {{"a", 1}, {"b", {1, 2.5, "x"}}};
  input.now = "2026-03-09T08:07:05";
  try {
    const std::string source(reinterpret_cast<const char*>(data), size);
    sluice::ChatTemplate(source).render(input);
  } catch (const sluice::Error&) {
  }
  return 0;
}
