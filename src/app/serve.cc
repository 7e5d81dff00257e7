// sluice serve: answers OpenAI's API over HTTP.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "app/codex_config.h"
#include "app/commands.h"
#include "app/own_sampling.h"
#include "app/report.h"
#include "app/runtime.h"
#include "app/usage.h"
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
  std::vector<std::string> models;  // PATH or PATH,NAME
  std::string host = "127.0.0.1", key_file, tiers, db = default_database(), codex_folder;
  bool codex = false;
  int port = 8080, max_waiting = 256, max_tokens = 0, drain_s = 30;
};

void add_server_flags(CLI::App& app, ServeOptions& o) {
  app.option_defaults()->group("Server");
  add_text(app, "--host", "ADDRESS", o.host, "the address to listen at (default 127.0.0.1)");
  add_integer(app, "--port", o.port, 0, 65535, "default 8080; 0: a free one");
  add_text(app, "--tiers", "FILE", o.tiers,
           "further names of the models, with defaults, limits and prices (JSON; docs/serve.md)");
  add_text(app, "--api-key-file", "FILE", o.key_file,
           "a line for each key: KEY [name=NAME] [seats=N]; clients must send one as "
           "\"Authorization: Bearer KEY\". With seats, N requests of the key are taken although "
           "the queue is full, and N at once can have priority");
  add_text(app, "--db", "FILE", o.db,
           "an SQLite file for the usage of every request (see sluice usage), and for stored "
           "responses: 30 days, across restarts (default $SLUICE_DB, else usage is not counted "
           "and the newest 256 MiB of responses are kept in memory)");
  app.add_option("--codex-config", o.codex_folder,
                 "prints a config.toml and a model catalogue for Codex CLI to use this server, or "
                 "writes both into FOLDER (to be its $CODEX_HOME), and ends")
      ->type_name("[FOLDER]")
      ->expected(0, 1);
  add_integer(app, "--max-waiting", o.max_waiting, 0, 1 << 20,
              "requests that may wait for one of --max-users to end (default 256)");
  add_integer(app, "--max-tokens", o.max_tokens, 0, kMaxInt,
              "most tokens of a chat answer whose request names no limit (default 0: up to the "
              "model's context)");
  add_integer(app, "--drain-seconds", o.drain_s, 0, 86400,
              "how long SIGTERM and Ctrl-C wait for the answers under way; what is still not done "
              "then ends with an error, 503 where nothing was sent (default 30)");
}

bool parse(ServeOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(
      app, "serve", "[flags]",
      "Answers OpenAI's API (POST /v1/responses, /v1/chat/completions, /v1/completions) and "
      "Anthropic's (/v1/messages, /v1/messages/count_tokens), plain and as streams; GET "
      "/v1/models, /v1/plan, "
      "/health, /metrics, /openapi.json; a page to chat and to watch the pipeline at /.\n"
      "Up to --max-users answers are made at once, in one batch; --max-waiting more wait, then "
      "clients get 429. A client that goes is cancelled at once. SIGTERM and Ctrl-C let the "
      "answers under way finish. A model without a chat template gets a plain one: a line "
      "\"role: content\" per message. Several models take turns on the same threads. What a "
      "request "
      "leaves open of temperature, top_p and top_k is the model's own (docs/serve.md).",
      {"sluice serve", "sluice serve --model folder,my-model --model other.gguf --port 9000",
       "curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d "
       "'{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}'"});
  add_server_flags(app, o);
  add_model_flags(app, o.model);
  app.remove_option(app.get_option("--model"));  // here it may be repeated
  app.add_option(
         "-m,--model", o.models,
         "a .gguf file or a folder, and what clients call it (default: the name of the file "
         "or folder); may be repeated, the first one answers requests that name none "
         "(default: $SLUICE_MODEL, else the model of `make model`)")
      ->type_name("PATH[,NAME]")
      ->allow_extra_args(false)
      ->group("Model");
  const bool go_on = parse_flags(app, argc, argv);
  o.codex = app.count("--codex-config") > 0;
  return go_on;
}

/// A path, and a name if there is a comma after it.
std::pair<std::string, std::string> split_name(const std::string& model) {
  const size_t comma = model.rfind(',');
  if (comma == model.npos || std::filesystem::exists(model)) return {model, ""};
  return {model.substr(0, comma), model.substr(comma + 1)};
}

/// A running model and the thread of its engine.
class Backend {
 public:
  Backend(const ServeOptions& o, const std::string& path, const std::string& name, Turns* turns)
      : runtime_(with_path(o.model, path)) {
    if (runtime_.chat_template() == nullptr && !o.model.quiet) {
      print_notice("the model has no chat template; messages become lines of \"role: content\"");
    }
    runtime_.start(0, o.model.max_users);
    describe(o, name);
    engine_ = std::make_unique<EngineThread>(runtime_.engine(), turns);
    model_.engine = engine_.get();
  }

  const ServedModel& model() const { return model_; }

 private:
  static ModelOptions with_path(ModelOptions options, const std::string& path) {
    options.model = path;
    return options;
  }

  void describe(const ServeOptions& o, const std::string& name) {
    const std::filesystem::path& path = runtime_.checkpoint().path();
    const auto file = path.has_filename() ? path.filename() : path.parent_path().filename();
    model_.name = name;
    if (name.empty()) model_.name = file.extension() == ".gguf" ? file.stem() : file;
    model_.created = unix_seconds();
    // Guesses need room before they are verified.
    const int64_t room =
        int64_t(runtime_.engine().stats().n_pages) * kPageTokens - EngineOptions().max_draft - 1;
    const int64_t trained = runtime_.model().max_context;
    model_.context = trained > 0 ? std::min(trained, room) : room;
    model_.max_tokens = o.max_tokens;
    model_.sampling = own_sampling(runtime_.checkpoint());
    model_.tokenizer = &runtime_.tokenizer();
    model_.chat = runtime_.chat_template() ? runtime_.chat_template() : &plain_;
    model_.template_variables = template_variables(runtime_.tokenizer());
    model_.end_tokens = runtime_.end_tokens();
    model_.vocab = runtime_.model().vocab;
    model_.dim = runtime_.model().dim;
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

/// The models of a server on the same cores.
class Backends {
 public:
  explicit Backends(const ServeOptions& o) {
    std::vector<std::string> models = o.models;
    if (models.empty()) models.emplace_back();
    for (const std::string& model : models) {
      const auto [path, name] = split_name(model);
      all_.push_back(
          std::make_unique<Backend>(o, path, name, models.size() > 1 ? &turns_ : nullptr));
    }
  }

  /// `tiers`: what the file of that name says, or null.
  Models models(const Json& tiers, const std::string& file) const {
    Models models;
    for (const auto& backend : all_) models.add(backend->model());
    if (!tiers.is_null()) models.add_tiers(tiers, file);
    return models;
  }

 private:
  Turns turns_;
  std::vector<std::unique_ptr<Backend>> all_;
};

std::string url_of(const ServeOptions& o, int port) {
  const std::string host = o.host.find(':') == o.host.npos ? o.host : "[" + o.host + "]";
  return fmt::format("http://{}:{}", host, port);
}

/// Codex resolves the catalogue's name in the folder of its config.toml.
void give_codex_config(const ServedModel& model, const ServeOptions& o) {
  const CodexServer server = {.model = model.name,
                              .url = url_of(o, o.port) + "/v1",
                              .context = model.context,
                              .needs_key = !o.key_file.empty(),
                              .catalogue = "sluice-models.json"};
  const std::string config = codex_config(server), catalogue = codex_catalogue(server).dump();
  if (o.codex_folder.empty()) {
    fmt::print("{}\n# {}, to be put beside this file:\n# {}\n", config, server.catalogue,
               catalogue);
    return;
  }
  const std::filesystem::path folder = o.codex_folder;
  std::filesystem::create_directories(folder);
  if (std::filesystem::exists(folder / "config.toml")) {
    throw Error(ErrorCode::kIo, "{}: exists already", (folder / "config.toml").string());
  }
  write_file(folder / "config.toml", config);
  write_file(folder / server.catalogue, catalogue + '\n');
}

std::string start_text(const Models& models, const ServeOptions& o, int port) {
  std::string text = fmt::format("sluice: serving {} at {} ({} at once, {} waiting, {})\n",
                                 models.find("").name, url_of(o, port), o.model.max_users,
                                 o.max_waiting, o.key_file.empty() ? "no key" : "with key");
  for (const ServedModel* model : models.entries()) {
    text += fmt::format("sluice: {}: {}context {}", model->name,
                        model->name == model->root ? "" : "tier of " + model->root + ", ",
                        model->context);
    if (!model->effort.empty()) text += ", effort " + model->effort;
    if (const auto& price = model->price) {
      text += fmt::format(", price {} / {} cached / {} out", price->input, price->cached,
                          price->output);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

int serve_command(int argc, char** argv) {
  ServeOptions o;
  if (!parse(o, argc, argv)) return kOk;
  const Json tiers = o.tiers.empty() ? Json() : parse_json(read_text(o.tiers), o.tiers);
  if (o.codex) {
    give_codex_config(Backends(o).models(tiers, o.tiers).find(""), o);
    return kOk;
  }
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // what a large body took goes back to the system
  ApiOptions options;
  options.max_open = o.model.max_users + o.max_waiting;
  if (!o.key_file.empty()) options.keys = ApiKeys(read_text(o.key_file), o.key_file);
  std::unique_ptr<Ledger> ledger;
  if (!o.db.empty()) ledger = std::make_unique<Ledger>(o.db);
  options.ledger = ledger.get();
  options.db = o.db;
  Api api(std::move(options));
  HttpOptions http;
  http.host = o.host;
  http.port = uint16_t(o.port);
  http.admit = [&api](const HttpRequest& request) { return api.admit(request); };
  http.handle = [&api](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
    api.handle(std::move(request), std::move(exchange));
  };
  http.upgrade = [&api](const HttpRequest& request, std::shared_ptr<WebSocket> socket) {
    return api.upgrade(request, std::move(socket));
  };
  http.on_status = [&api](int status) { api.count_status(status); };
  http.drain_s = o.drain_s;
  http.on_drain = [&api] { api.drain(); };
  http.on_overtime = [&api] { api.give_up(); };
  http.busy = [&api] { return api.busy(); };
  HttpServer server(std::move(http));
  std::unique_ptr<Backends> backends;
  std::exception_ptr failure;
  std::atomic<bool> loaded = false;
  // Clients may ask from now on, and learn that the model is being loaded.
  std::thread loader([&] {
    try {
      backends = std::make_unique<Backends>(o);
      Models models = backends->models(tiers, o.tiers);
      const std::string text = start_text(models, o, server.port());
      api.open(std::move(models));
      fmt::print("{}", text);
      std::fflush(stdout);
      loaded = true;
    } catch (...) {
      failure = std::current_exception();
      loaded = true;
      server.stop();
    }
  });
  server.run();
  if (!loaded) std::_Exit(kOk);  // stopped while it reads gigabytes: nobody has anything to lose
  loader.join();
  api.close();
  if (failure) std::rethrow_exception(failure);
  return kOk;
}

}  // namespace sluice
