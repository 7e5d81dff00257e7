// POST /v1/embeddings: what the model makes of a text, as one vector of length 1.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/openai.h"

namespace sluice {
namespace {

constexpr size_t kMaxInputs = 2048;  // as OpenAI's API has it

/// Four characters for three bytes (RFC 4648).
std::string base64(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  const size_t n = values.size() * sizeof(float);
  std::string text;
  for (size_t i = 0; i < n; i += 3) {
    const size_t n_here = std::min<size_t>(3, n - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) bits = bits << 8 | (j < n_here ? bytes[i + j] : 0u);
    for (size_t j = 0; j < 4; ++j) {
      text += j <= n_here ? kAlphabet[bits >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

/// The inputs of one request while they are computed. Lives on the engine's thread.
class Embedding : public std::enable_shared_from_this<Embedding> {
 public:
  Embedding(Call call, const Fields& body);
  ~Embedding() { settle(); }
  Embedding(const Embedding&) = delete;
  Embedding& operator=(const Embedding&) = delete;

  void start();
  /// From any thread.
  void cancel();

 private:
  struct Input {
    std::vector<Token> tokens;
    RequestId id = 0;
    bool open = false;
    std::vector<double> sum;  // (dim): of the rows so far, or the last of them
  };

  void submit(Engine& engine, Input& input);
  bool take(Engine& engine, Input& input, const TokenEvent& event);
  void add_rows(Input& input, const std::vector<float>& rows);
  void stop(Engine& engine);
  void settle();
  void respond();

  const Call call_;
  bool last_only_ = false, base64_ = false;
  std::vector<Input> inputs_;
  size_t n_open_ = 0;
  Usage usage_;
  bool settled_ = false, over_ = false;
};

Embedding::Embedding(Call call, const Fields& body) : call_(std::move(call)) {
  const ServedModel& model = *call_.model;
  base64_ = body.choice("encoding_format", {"float", "base64"}) == "base64";
  last_only_ = body.choice("pooling", {"mean", "last"}) == "last";
  const int64_t dimensions = body.integer("dimensions", 1, INT32_MAX).value_or(model.dim);
  if (dimensions != model.dim) {
    body.fail("dimensions",
              fmt::format("{}, as this model's embeddings cannot be shortened", model.dim));
  }
  for (std::vector<Token>& tokens : read_prompts(body, "input", kMaxInputs, model)) {
    answer_limit(model, tokens.size(), 1, "input");
    inputs_.push_back({.tokens = std::move(tokens), .id = 0, .open = false, .sum = {}});
  }
  n_open_ = inputs_.size();
}

void Embedding::start() {
  call_.model->engine->post([self = shared_from_this()](Engine& engine) {
    if (self->over_) return;
    for (Input& input : self->inputs_) self->submit(engine, input);
  });
}

void Embedding::submit(Engine& engine, Input& input) {
  Request request;
  request.prompt = input.tokens;
  request.want_hidden = true;
  request.sink = [self = shared_from_this(), &engine, &input](const TokenEvent& event) {
    return self->take(engine, input, event);
  };
  input.open = true;
  input.id = engine.submit(std::move(request));
}

bool Embedding::take(Engine& engine, Input& input, const TokenEvent& event) {
  if (over_) return false;
  add_rows(input, event.hidden);
  if (event.finish == FinishReason::kNone) return true;
  input.open = false;
  if (const GenerationError error = error_of(event); !error.empty()) {
    call_.exchange->respond(http_error(error));
    stop(engine);
    return false;
  }
  usage_.prompt_tokens += int64_t(input.tokens.size());
  if (--n_open_ > 0) return true;
  settle();
  respond();
  return true;
}

/// Row by row, so that it does not matter how many come at once.
void Embedding::add_rows(Input& input, const std::vector<float>& rows) {
  const size_t dim = size_t(call_.model->dim);
  for (size_t first = 0; first < rows.size(); first += dim) {
    if (last_only_ || input.sum.empty()) input.sum.assign(dim, 0);
    for (size_t i = 0; i < dim; ++i) input.sum[i] += double(rows[first + i]);
  }
}

void Embedding::cancel() {
  call_.model->engine->post([self = shared_from_this()](Engine& engine) { self->stop(engine); });
}

void Embedding::stop(Engine& engine) {
  over_ = true;
  for (Input& input : inputs_) {
    if (std::exchange(input.open, false)) engine.cancel(input.id);
  }
}

void Embedding::settle() {
  if (!std::exchange(settled_, true)) call_.account(usage_);
}

void Embedding::respond() {
  std::string data;
  const auto out = std::back_inserter(data);
  for (size_t n = 0; n < inputs_.size(); ++n) {
    double square = 0;
    for (const double x : inputs_[n].sum) square += x * x;
    if (!std::isfinite(square)) {
      return call_.exchange->respond(
          http_error(500, "The model's hidden states are not finite.", "server_error"));
    }
    const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
    std::vector<float> vector;
    for (const double x : inputs_[n].sum) vector.push_back(float(x * scale));
    fmt::format_to(out, R"({}{{"object":"embedding","index":{},"embedding":)", n > 0 ? "," : "", n);
    if (base64_) {
      fmt::format_to(out, R"("{}"}})", base64(vector));
    } else {
      fmt::format_to(out, "[{}]}}", fmt::join(vector, ","));
    }
  }
  call_.exchange->respond(
      {200, fmt::format(R"({{"object":"list","data":[{}],"model":{},"usage":{}}})", data,
                        dump(call_.model->name),
                        dump({{"prompt_tokens", usage_.prompt_tokens},
                              {"total_tokens", usage_.prompt_tokens}}))});
}

}  // namespace

void create_embeddings(const OrderedJson& body, const Call& call) {
  const auto embedding = std::make_shared<Embedding>(call, Fields(body));
  embedding->start();
  call.exchange->on_disconnect([weak = std::weak_ptr(embedding)] {
    if (const auto open = weak.lock()) open->cancel();
  });
}

}  // namespace sluice
