// sluice serve: answers OpenAI's API over HTTP.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <sstream>
#include <thread>

#include "app/commands.h"
#include "app/runtime.h"
#include "base/error.h"
#include "serve/api.h"
#include "serve/chat.h"

namespace sluice {
namespace {

constexpr int kMaxInt = 2147483647;

/// For models that come without a template.
constexpr const char* kPlainTemplate =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

struct ServeOptions {
  ModelOptions model;
  std::string name, host = "127.0.0.1", key_file;
  int port = 8080, max_waiting = 256, max_tokens = 0;
};

bool parse(ServeOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(
      app, "serve", "[flags]",
      "Answers OpenAI's API: POST /v1/chat/completions and /v1/completions, plain and as "
      "streams; GET /v1/models, /v1/plan, /health, /metrics, /openapi.json; a page to chat and to "
      "watch the pipeline at /.\n"
      "Up to --max-users answers are made at once, in one batch; --max-waiting more wait, then "
      "clients get 429. A client that goes is cancelled at once. SIGTERM and Ctrl-C let the "
      "answers under way finish. A model without a chat template gets a plain one: a line "
      "\"role: content\" per message.",
      {"sluice serve", "sluice serve --model folder --name my-model --port 9000",
       "curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d "
       "'{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}'"});
  app.option_defaults()->group("Server");
  add_text(app, "--host", "ADDRESS", o.host, "the address to listen at (default 127.0.0.1)");
  add_integer(app, "--port", o.port, 0, 65535, "default 8080; 0: a free one");
  add_text(app, "--name", "NAME", o.name,
           "what clients call the model (default: the name of its file or folder)");
  add_text(app, "--api-key-file", "FILE", o.key_file,
           "one key per line; clients must send one as \"Authorization: Bearer KEY\"");
  add_integer(app, "--max-waiting", o.max_waiting, 0, 1 << 20,
              "requests that may wait for one of --max-users to end (default 256)");
  add_integer(app, "--max-tokens", o.max_tokens, 0, kMaxInt,
              "most tokens of a chat answer whose request names no limit (default 0: up to the "
              "model's context)");
  add_model_flags(app, o.model);
  return parse_flags(app, argc, argv);
}

std::vector<std::string> read_keys(const std::string& path) {
  std::vector<std::string> keys;
  if (path.empty()) return keys;
  std::istringstream lines(read_text(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) keys.push_back(line);
  }
  if (keys.empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected at least one key", path);
  }
  return keys;
}

/// A running model and the thread of its engine.
class Backend {
 public:
  explicit Backend(const ServeOptions& o) : runtime_(o.model) {
    if (runtime_.chat_template() == nullptr && !o.model.quiet) {
      print_notice("the model has no chat template; messages become lines of \"role: content\"");
    }
    runtime_.start(0, o.model.max_users);
    describe(o);
    engine_ = std::make_unique<EngineThread>(runtime_.engine());
    model_.engine = engine_.get();
  }

  const ServedModel& model() const { return model_; }

 private:
  void describe(const ServeOptions& o) {
    const std::filesystem::path& path = runtime_.checkpoint().path();
    const auto file = path.has_filename() ? path.filename() : path.parent_path().filename();
    model_.name = o.name;
    if (o.name.empty()) model_.name = file.extension() == ".gguf" ? file.stem() : file;
    model_.created = unix_seconds();
    // Guesses need room before they are verified.
    const int64_t room =
        int64_t(runtime_.engine().stats().n_pages) * kPageTokens - EngineOptions().max_draft - 1;
    const int64_t trained = runtime_.model().max_context;
    model_.context = trained > 0 ? std::min(trained, room) : room;
    model_.max_tokens = o.max_tokens;
    model_.tokenizer = &runtime_.tokenizer();
    model_.chat = runtime_.chat_template() ? runtime_.chat_template() : &plain_;
    model_.template_variables = template_variables(runtime_.tokenizer());
    model_.end_tokens = runtime_.end_tokens();
    model_.vocab = runtime_.model().vocab;
    model_.metrics = &metrics_;
    const std::string source = chat_template_source(runtime_.checkpoint());
    prepare_chat(model_, source.empty() ? kPlainTemplate : source);
    model_.plan = plan_to_json(runtime_.plan());
  }

  Runtime runtime_;
  const ChatTemplate plain_{kPlainTemplate, "the plain template"};
  Metrics metrics_;
  ServedModel model_;
  std::unique_ptr<EngineThread> engine_;
};

void print_start(const ServedModel& model, const ServeOptions& o, int port) {
  const std::string host = o.host.find(':') == o.host.npos ? o.host : "[" + o.host + "]";
  fmt::print("sluice: serving {} at http://{}:{} (context {}, {} at once, {} waiting, {})\n",
             model.name, host, port, model.context, o.model.max_users, o.max_waiting,
             o.key_file.empty() ? "no key" : "with key");
  std::fflush(stdout);
}

}  // namespace

int serve_command(int argc, char** argv) {
  ServeOptions o;
  if (!parse(o, argc, argv)) return kOk;
  Api api({.keys = read_keys(o.key_file), .max_open = o.model.max_users + o.max_waiting});
  HttpOptions http;
  http.host = o.host;
  http.port = uint16_t(o.port);
  http.admit = [&api](const HttpRequest& request) { return api.admit(request); };
  http.handle = [&api](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
    api.handle(std::move(request), std::move(exchange));
  };
  http.on_drain = [&api] { api.drain(); };
  HttpServer server(std::move(http));
  std::unique_ptr<Backend> backend;
  std::exception_ptr failure;
  // Clients may ask from now on, and learn that the model is being loaded.
  std::thread loader([&] {
    try {
      backend = std::make_unique<Backend>(o);
      api.open(backend->model());
      print_start(backend->model(), o, server.port());
    } catch (...) {
      failure = std::current_exception();
      server.stop();
    }
  });
  server.run();
  loader.join();
  api.close();
  if (failure) std::rethrow_exception(failure);
  return kOk;
}

}  // namespace sluice
