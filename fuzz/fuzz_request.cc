// The body of an API request: parsing, then what each endpoint reads from it before it needs a
// model.
#include <cstddef>
#include <cstdint>
#include <string>

#include "serve/chat_prompt.h"
#include "serve/fields.h"
#include "serve/messages.h"
#include "serve/messages_request.h"
#include "serve/openai.h"

namespace {

using namespace sluice;

/// An error must have a form that can be sent.
template <typename F>
void read(F decode) {
  try {
    decode();
  } catch (const ApiError& error) {
    const HttpResponse response = messages_error(error.response());
    if (response.status < 400 || response.status >= 500) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ServedModel model;
  model.vocab = 100;
  read([&] {
    const OrderedJson json = parse_body(std::string(reinterpret_cast<const char*>(data), size));
    const Fields body(json);
    read([&] { read_generation(body, model); });
    read([&] {
      Request request;
      read_service_tier(body, request);
    });
    read([&] { read_conversation(body); });
    read([&] {
      ChatRequest request;
      read_tools(body, request);
    });
    read([&] {
      const OrderedJson* messages = body.array("messages");
      if (messages != nullptr) read_messages(*messages);
    });
  });
  return 0;
}
