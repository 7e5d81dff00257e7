// sluice tokenize and sluice detokenize.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/commands.h"
#include "app/line_mode.h"
#include "app/report.h"
#include "app/runtime.h"
#include "base/error.h"

namespace sluice {
namespace {

struct TokenizerOptions {
  std::string model, tokenizer;
  bool json = false, jsonl = false;
};

void add_tokenizer_flags(CLI::App& app, TokenizerOptions& o) {
  add_model_flag(app, o.model);
  add_text(app, "--tokenizer", "FILE", o.tokenizer,
           "a tokenizer.json, tiktoken.model, tokenizer.model, .gguf file, or a folder with one")
      ->group("Model")
      ->excludes("--model");
  add_switch(app, "--json", o.json, "print one object")->group("Output");
}

std::unique_ptr<Tokenizer> open(const TokenizerOptions& o) {
  return Tokenizer::open(o.tokenizer.empty() ? model_path(o.model)
                                             : std::filesystem::path(o.tokenizer));
}

struct TokenizeOptions : TokenizerOptions {
  std::string text, file;
  bool no_special = false, plain = false;
};

bool parse(TokenizeOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "tokenize", "[flags] (--text TEXT | --file FILE | --jsonl)",
           "Turns a text into token ids. Names of special tokens in the text become those tokens, "
           "and what the model expects at the beginning or end is added.",
           {"sluice tokenize --text \"Hello, world\"",
            "sluice tokenize --tokenizer tokenizer.json --file notes.txt --json",
            "echo '\"Hello\"' | sluice tokenize --jsonl --no-special"});
  CLI::Option* text = add_text(app, "--text", "TEXT", o.text, "the text")->group("Text");
  CLI::Option* file =
      add_text(app, "-f,--file", "FILE", o.file, "read the text from FILE; -: standard input")
          ->group("Text");
  CLI::Option* lines = add_switch(app, "--jsonl", o.jsonl,
                                  "each line of standard input is a JSON string; prints a list of "
                                  "ids, or {\"error\": ...}, per line")
                           ->group("Text");
  add_switch(app, "--no-special", o.no_special, "add nothing at the beginning or end")
      ->group("Text");
  add_switch(app, "--plain", o.plain, "names of special tokens are plain text")->group("Text");
  add_tokenizer_flags(app, o);
  text->excludes(file)->excludes(lines);
  file->excludes(lines);
  if (!parse_flags(app, argc, argv)) return false;
  if (text->count() + file->count() + lines->count() == 0) {
    throw UsageError("--text: expected --text, --file or --jsonl");
  }
  return true;
}

void print_pieces(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    // A JSON string shows spaces, line breaks and broken characters.
    const Json piece = std::string(tokenizer.token_bytes(id));
    fmt::print("{:>8}  {}\n", id, piece.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
}

std::string text_of(const OrderedJson& value) {
  if (!value.is_string()) {
    throw Error(ErrorCode::kInvalidInput, "line: expected a string, got {}", value.type_name());
  }
  return value.get<std::string>();
}

std::vector<int32_t> ids_of(const OrderedJson& value) {
  std::vector<int32_t> ids;
  for (const OrderedJson& id : value) {
    if (!value.is_array() || !id.is_number_integer()) break;
    const int64_t number = id.get<int64_t>();
    ids.push_back(int32_t(std::clamp<int64_t>(number, INT32_MIN, INT32_MAX)));
  }
  if (!value.is_array() || ids.size() != value.size()) {
    throw Error(ErrorCode::kInvalidInput, "line: expected a list of whole numbers");
  }
  return ids;
}

/// Names the first id that is no token's.
std::string decode(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special,
                   const char* what) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < tokenizer.vocab_size()) continue;
    throw Error(ErrorCode::kInvalidInput, "{}: expected ids below {}, got {}", what,
                tokenizer.vocab_size(), id);
  }
  return tokenizer.decode(ids, skip_special);
}

struct DetokenizeOptions : TokenizerOptions {
  std::string tokens;
  bool skip_special = false;
};

bool parse(DetokenizeOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "detokenize", "[flags] (--tokens IDS | --jsonl)",
           "Turns token ids into text. Bytes that are no UTF-8 become U+FFFD.",
           {"sluice detokenize --tokens 1,2,3",
            "echo '[1,2,3]' | sluice detokenize --tokenizer tokenizer.json --jsonl"});
  CLI::Option* tokens =
      add_text(app, "--tokens", "IDS", o.tokens, "token ids like 1,2,3")->group("Tokens");
  CLI::Option* lines = add_switch(app, "--jsonl", o.jsonl,
                                  "each line of standard input is a list of ids; prints a JSON "
                                  "string, or {\"error\": ...}, per line")
                           ->group("Tokens");
  add_switch(app, "--skip-special", o.skip_special, "leave out special tokens")->group("Tokens");
  add_tokenizer_flags(app, o);
  tokens->excludes(lines);
  if (!parse_flags(app, argc, argv)) return false;
  if (tokens->count() + lines->count() == 0) {
    throw UsageError("--tokens: expected --tokens or --jsonl");
  }
  return true;
}

}  // namespace

int tokenize_command(int argc, char** argv) {
  TokenizeOptions o;
  if (!parse(o, argc, argv)) return kOk;
  const std::unique_ptr<Tokenizer> tokenizer = open(o);
  const auto encode = [&](const std::string& text) {
    return tokenizer->encode(text, !o.no_special, !o.plain);
  };
  if (o.jsonl) {
    serve_lines([&](const OrderedJson& line) { return OrderedJson(encode(text_of(line))); });
    return kOk;
  }
  const std::vector<int32_t> ids = encode(o.file.empty() ? o.text : read_text(o.file));
  if (o.json) {
    print_json(Json{{"tokens", ids}});
  } else {
    print_pieces(*tokenizer, ids);
  }
  return kOk;
}

int detokenize_command(int argc, char** argv) {
  DetokenizeOptions o;
  if (!parse(o, argc, argv)) return kOk;
  const std::unique_ptr<Tokenizer> tokenizer = open(o);
  if (o.jsonl) {
    serve_lines([&](const OrderedJson& line) {
      return OrderedJson(decode(*tokenizer, ids_of(line), o.skip_special, "line"));
    });
    return kOk;
  }
  const std::string text =
      decode(*tokenizer, parse_integers(o.tokens, "--tokens"), o.skip_special, "--tokens");
  if (o.json) {
    print_json(Json{{"text", text}});
  } else {
    fmt::print("{}\n", text);
  }
  return kOk;
}

}  // namespace sluice
