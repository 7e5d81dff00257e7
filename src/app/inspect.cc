// sluice inspect: what is in a model file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "app/commands.h"
#include "app/report.h"
#include "app/runtime.h"
#include "base/error.h"
#include "cache/storage.h"
#include "weights/gguf.h"

namespace sluice {
namespace {

struct InspectOptions {
  std::string model;
  bool tensors = false, metadata = false, json = false;
};

bool parse(InspectOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "inspect", "[flags]",
           "Shows what is in a model without loading it: architecture and sizes, its blocks with "
           "the bytes of each as kept in memory, the types of its tensors, tokenizer and template.",
           {"sluice inspect", "sluice inspect --model model.gguf --tensors",
            "sluice inspect --model folder --json"});
  add_model_flag(app, o.model);
  add_switch(app, "--tensors", o.tensors, "list every tensor")->group("Output");
  add_switch(app, "--metadata", o.metadata, "list the metadata of a GGUF file, or the config")
      ->group("Output");
  add_switch(app, "--json", o.json, "print one object")->group("Output");
  return parse_flags(app, argc, argv);
}

/// Blocks of one kind.
struct BlockKind {
  std::string kind;
  int count = 0;
  int64_t bytes = 0, min_bytes = 0, max_bytes = 0, experts_bytes = 0;
  int64_t cache_per_token = 0;  // bytes of keys and values with an f16 cache, of one block
  int64_t state_bytes = 0;      // of one block and sequence
};

std::vector<BlockKind> block_kinds(const Model& model, const ModelBytes& bytes) {
  std::vector<BlockKind> kinds;
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    const Block& block = *model.blocks[b].block;
    const CacheSpec cache = block.cache();
    auto found = std::find_if(kinds.begin(), kinds.end(),
                              [&](const BlockKind& k) { return k.kind == block.kind(); });
    if (found == kinds.end()) {
      const int64_t per_token = int64_t(cache_bytes_per_token(cache, true));
      found = kinds.insert(kinds.end(), {.kind = block.kind(),
                                         .min_bytes = bytes.blocks[b].total(),
                                         .cache_per_token = per_token,
                                         .state_bytes = cache.state_floats * 4});
    }
    const int64_t n = bytes.blocks[b].total();
    ++found->count;
    found->bytes += n;
    found->min_bytes = std::min(found->min_bytes, n);
    found->max_bytes = std::max(found->max_bytes, n);
    found->experts_bytes += bytes.blocks[b].experts;
  }
  return kinds;
}

Json tensor_types(const Checkpoint& checkpoint) {
  std::map<std::string, std::pair<int64_t, int64_t>> types;  // -> tensors, bytes
  for (const TensorView* tensor : checkpoint.tensors()) {
    auto& [count, bytes] = types[info(tensor->dtype).name];
    ++count;
    bytes += int64_t(tensor->bytes);
  }
  Json json = Json::object();
  for (const auto& [name, totals] : types) {
    json[name] = {{"tensors", totals.first}, {"bytes", totals.second}};
  }
  return json;
}

/// null without a tokenizer, {"error"} for one that cannot be used.
Json describe_tokenizer(const Checkpoint& checkpoint) {
  if (!has_tokenizer(checkpoint)) return nullptr;
  try {
    const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(checkpoint);
    int n_special = 0;
    for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) n_special += tokenizer->is_special(id);
    const auto token = [&](std::optional<int32_t> id) {
      return id ? Json{{"id", *id}, {"text", tokenizer->token_bytes(*id)}} : Json();
    };
    Json ends = Json::array();
    for (const int32_t id : tokenizer->end_ids()) ends.push_back(token(id));
    Json json = {{"size", tokenizer->vocab_size()},
                 {"special", n_special},
                 {"bos", token(tokenizer->bos())},
                 {"eos", token(tokenizer->eos())},
                 {"ends", std::move(ends)}};
    if (const GgufFile* gguf = checkpoint.gguf()) {
      json["model"] = gguf->text("tokenizer.ggml.model", "");
      json["pre"] = gguf->text("tokenizer.ggml.pre", "");
    }
    return json;
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

Json describe_blocks(const std::vector<BlockKind>& kinds) {
  Json json = Json::array();
  for (const BlockKind& k : kinds) {
    json.push_back({{"kind", k.kind},
                    {"count", k.count},
                    {"bytes", k.bytes},
                    {"bytes_per_block", {{"min", k.min_bytes}, {"max", k.max_bytes}}},
                    {"expert_bytes", k.experts_bytes},
                    {"cache_bytes_per_token", k.cache_per_token},
                    {"state_bytes", k.state_bytes}});
  }
  return json;
}

/// What the model file says, or {"error"} for an architecture that is not supported.
Json describe_model(const Checkpoint& checkpoint) {
  try {
    const std::unique_ptr<Model> model = make_model(checkpoint);
    const ModelBytes bytes = count_bytes(*model, checkpoint);
    int n_layers = 0;
    for (const PlacedBlock& placed : model->blocks) n_layers = std::max(n_layers, placed.layer + 1);
    return {{"architecture", model->architecture},
            {"layers", n_layers},
            {"dim", model->dim},
            {"vocab", model->vocab},
            {"context", model->max_context},
            {"tied", model->tied},
            {"blocks", describe_blocks(block_kinds(*model, bytes))},
            {"embedding_bytes", bytes.embedding.total()},
            {"head_bytes", bytes.head.total()},
            {"weight_bytes", bytes.total()},
            {"read_bytes_per_token", int64_t(bytes.read_by(1))}};
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

Json list_tensors(const Checkpoint& checkpoint) {
  Json list = Json::array();
  for (const TensorView* tensor : checkpoint.tensors()) {
    list.push_back({{"name", tensor->name},
                    {"type", info(tensor->dtype).name},
                    {"shape", tensor->shape},
                    {"bytes", tensor->bytes}});
  }
  return list;
}

Json list_metadata(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() == nullptr) return checkpoint.config().json();
  Json metadata = Json::object();
  for (const auto& [key, value] : checkpoint.gguf()->metadata()) {
    metadata[std::string(key)] = gguf_value_text(value);
  }
  return metadata;
}

std::string size_of(const Json& bytes) { return bytes_text(bytes.get<double>()); }

void print_model(const Json& m) {
  if (m.contains("error")) {
    fmt::print("model         {}\n", m["error"].get<std::string>());
    return;
  }
  fmt::print("architecture  {}\n", m["architecture"].get<std::string>());
  fmt::print("sizes         {} layers, dim {}, vocabulary {}, context {}\n", m["layers"].get<int>(),
             m["dim"].get<int64_t>(), m["vocab"].get<int64_t>(), m["context"].get<int64_t>());
  fmt::print("weights       {} in memory, {} read per token{}\n", size_of(m["weight_bytes"]),
             size_of(m["read_bytes_per_token"]),
             m["tied"].get<bool>() ? ", embedding and head share a matrix" : "");
  fmt::print("\n{:<14}{:>6}{:>14}{:>14}{:>16}{:>14}\n", "blocks", "count", "bytes each", "bytes",
             "cache per token", "state");
  for (const Json& k : m["blocks"]) {
    const Json& each = k["bytes_per_block"];
    fmt::print("{:<14}{:>6}{:>14}{:>14}{:>16}{:>14}\n", "  " + k["kind"].get<std::string>(),
               k["count"].get<int>(),
               each["min"] == each["max"] ? size_of(each["max"]) : "<= " + size_of(each["max"]),
               size_of(k["bytes"]), size_of(k["cache_bytes_per_token"]), size_of(k["state_bytes"]));
  }
  fmt::print("{:<14}{:>6}{:>14}\n", "  embedding", 1, size_of(m["embedding_bytes"]));
  fmt::print("{:<14}{:>6}{:>14}\n\n", "  head", 1, size_of(m["head_bytes"]));
}

std::string token_text(const Json& token) {
  return token.is_null()
             ? "none"
             : fmt::format("{} {}", token["id"].get<int>(),
                           token["text"].dump(-1, ' ', false, Json::error_handler_t::replace));
}

void print_tokenizer(const Json& t) {
  if (t.is_null()) {
    fmt::print("tokenizer     none\n");
    return;
  }
  if (t.contains("error")) {
    fmt::print("tokenizer     {}\n", t["error"].get<std::string>());
    return;
  }
  std::string kind;
  if (t.contains("model")) {
    kind = fmt::format("{} {}, ", t["model"].get<std::string>(), t["pre"].get<std::string>());
  }
  fmt::print("tokenizer     {}{} tokens, {} special, bos {}, eos {}\n", kind, t["size"].get<int>(),
             t["special"].get<int>(), token_text(t["bos"]), token_text(t["eos"]));
}

void print_report(const Json& r) {
  fmt::print("file          {}\n", r["path"].get<std::string>());
  print_model(r["model"]);
  std::string types;
  for (const auto& [name, totals] : r["types"].items()) {
    types += fmt::format("{}{} x{} ({})", types.empty() ? "" : ", ", name,
                         totals["tensors"].get<int64_t>(), size_of(totals["bytes"]));
  }
  fmt::print("tensor types  {}\n", types);
  print_tokenizer(r["tokenizer"]);
  const int64_t n_template = r["template_bytes"].get<int64_t>();
  fmt::print("chat template {}\n", n_template > 0 ? bytes_text(double(n_template)) : "none");
  if (r.contains("metadata")) {
    fmt::print("\nmetadata\n");
    for (const auto& [key, value] : r["metadata"].items()) {
      fmt::print("  {} = {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  if (r.contains("tensors")) {
    fmt::print("\ntensors\n");
    for (const Json& t : r["tensors"]) {
      fmt::print("  {:<52}{:<8}{}\n", t["name"].get<std::string>(), t["type"].get<std::string>(),
                 shape_text(t["shape"].get<std::vector<int64_t>>()));
    }
  }
}

}  // namespace

int inspect_command(int argc, char** argv) {
  InspectOptions o;
  if (!parse(o, argc, argv)) return kOk;
  const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(model_path(o.model));
  Json report = {{"path", checkpoint->path().string()},
                 {"model", describe_model(*checkpoint)},
                 {"types", tensor_types(*checkpoint)},
                 {"tokenizer", describe_tokenizer(*checkpoint)},
                 {"template_bytes", chat_template_source(*checkpoint).size()}};
  if (o.metadata) report["metadata"] = list_metadata(*checkpoint);
  if (o.tensors) report["tensors"] = list_tensors(*checkpoint);
  if (o.json) {
    print_json(report);
  } else {
    print_report(report);
  }
  return kOk;
}

}  // namespace sluice
