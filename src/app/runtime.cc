#include "app/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "app/plan_input.h"
#include "base/error.h"

namespace sluice {
namespace {

constexpr int64_t kUsualCacheTokens = 8192;
/// States of recurrent models that are kept for prompts with a known beginning.
constexpr int kStateSnapshots = 8;

/// Logical CPUs for `n_stages` stages, each its own share of `n_threads`.
std::vector<std::vector<int>> split_cores(int n_stages, int n_threads) {
  const std::vector<int> cores = usable_cores();
  if (n_threads < n_stages || size_t(n_threads) > cores.size()) {
    throw UsageError(
        fmt::format("--split-cores: expected a CPU for each of {} threads and a thread for each of "
                    "{} stages, got {} CPUs (see --threads, --stages)",
                    n_threads, n_stages, cores.size()));
  }
  std::vector<std::vector<int>> shares;
  for (int s = 0; s < n_stages; ++s) {
    shares.emplace_back(cores.begin() + int64_t(s) * n_threads / n_stages,
                        cores.begin() + int64_t(s + 1) * n_threads / n_stages);
  }
  return shares;
}

/// A plan that names its model, as those of `sluice plan -o` do, is for models of that shape.
void check_plan(const Plan& plan, const Json& json, const Model& model, const std::string& path) {
  const std::string name = Config(json, path).text("model", "");
  if (plan.n_blocks != int(model.blocks.size())) {
    throw Error(ErrorCode::kInvalidInput, "{}: n_blocks: expected {} for this model, got {}{}",
                path, model.blocks.size(), plan.n_blocks,
                name.empty() ? "" : fmt::format("; it is a plan for {}", name));
  }
  if (name.empty()) return;
  double dim = 0;
  try {
    dim = find_model(name).shape.dim;
  } catch (const Error&) {
    return;  // a path of another folder or machine
  }
  if (dim == double(model.dim)) return;
  throw Error(ErrorCode::kInvalidInput,
              "{}: model: expected one with vectors of {}, as this one, got {} with {}", path,
              model.dim, name, dim);
}

}  // namespace

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void print_notice(const std::string& text) { fmt::print(stderr, "sluice: note: {}\n", text); }

Runtime::Runtime(const ModelOptions& options) : options_(options) {
  const double start = now_us();
  checkpoint_ = open_checkpoint(model_path(options.model));
  loadable_ = make_model(*checkpoint_);
  model_ = loadable_.get();
  bytes_ = count_bytes(*model_, *checkpoint_);
  n_threads_ = options.n_threads > 0 ? options.n_threads : usable_cpu_quota();
  plan_ = make_plan();
  load_ms_ = (now_us() - start) / 1e3;
}

Runtime::~Runtime() = default;

int Runtime::n_layers() const {
  int n = 0;
  for (const PlacedBlock& placed : model_->blocks) n = std::max(n, placed.layer + 1);
  return n;
}

std::vector<int> Runtime::cores() const {
  std::vector<int> cores = usable_cores();
  if (size_t(n_threads_) != cores.size()) cores.clear();
  return cores;
}

Plan Runtime::make_plan() const {
  if (!options_.plan.empty()) {
    const Json json = parse_json(read_text(options_.plan), options_.plan);
    Plan plan = plan_from_json(json, options_.plan);
    check_plan(plan, json, *model_, options_.plan);
    return plan;
  }
  std::vector<double> costs;
  for (const PartBytes& block : bytes_.blocks) costs.push_back(block.read_by(1));
  costs.push_back(bytes_.head.read_by(1));
  Plan plan = split_by_cost(costs, options_.n_stages);
  if (options_.split_cores) {
    const auto shares = split_cores(options_.n_stages, n_threads_);
    for (size_t s = 0; s < shares.size(); ++s) plan.stages[s].cores = shares[s];
  }
  return plan;
}

CachePools Runtime::make_pools(int64_t n_tokens, int n_users, const EngineOptions& engine) const {
  const int64_t usual = std::min(model_->max_context > 0 ? model_->max_context : kUsualCacheTokens,
                                 kUsualCacheTokens);
  // Every user may have begun a page, and guesses need room before they are verified.
  const int64_t slack = int64_t(n_users) * (engine.max_draft + kPageTokens);
  const int64_t wanted =
      options_.cache_tokens > 0 ? options_.cache_tokens : std::max(usual, n_tokens) + slack;
  const int64_t n_pages = (wanted + kPageTokens - 1) / kPageTokens;
  CachePools pools{.n_pages = int(std::min<int64_t>(n_pages, 1 << 30))};
  const bool recurrent =
      std::any_of(model_->blocks.begin(), model_->blocks.end(), [](const PlacedBlock& placed) {
        return placed.block->cache().kind == CacheKind::kRecurrent;
      });
  if (recurrent) {
    const int drafts = engine.speculation == Speculation::kOff ? 0 : engine.max_draft + 1;
    pools.n_state_slots = n_users * (2 + drafts) + kStateSnapshots;
  }
  return pools;
}

void Runtime::start(int64_t n_tokens, int n_users, EngineOptions engine) {
  const double start = now_us();
  engine.chunk = options_.chunk;
  engine.max_sequences = n_users;
  engine.max_context = int(std::min<int64_t>(model_->max_context, 1 << 30));
  engine.vocab_size = int(model_->vocab);
  engine.speculation = options_.speculation();
  const PipelineOptions pipeline{.i8 = options_.i8(),
                                 .cache_f16 = options_.cache_f16(),
                                 .pools = make_pools(n_tokens, n_users, engine),
                                 .threads = n_threads_,
                                 .default_cores = cores()};
  pipeline_ = std::make_unique<Pipeline>(*checkpoint_, std::move(loadable_), plan_, pipeline);
  engine_ = std::make_unique<Engine>(*pipeline_, engine);
  load_ms_ += (now_us() - start) / 1e3;
  if (const std::vector<std::string> types = pipeline_->widened();
      !types.empty() && !options_.quiet) {
    print_notice(fmt::format("{}: no kernel for {}; these weights are kept as F32",
                             checkpoint_->path().filename().string(), fmt::join(types, ", ")));
  }
}

bool Runtime::step() { return engine_->step(now_us()); }

const Tokenizer& Runtime::tokenizer() {
  if (!tokenizer_) tokenizer_ = open_tokenizer(*checkpoint_);
  return *tokenizer_;
}

const Tokenizer* Runtime::optional_tokenizer() {
  if (!tokenizer_ && !has_tokenizer(*checkpoint_)) return nullptr;
  try {
    return &tokenizer();
  } catch (const Error& error) {
    if (!options_.quiet) print_notice(fmt::format("{}; texts are left out", error.what()));
    return nullptr;
  }
}

const ChatTemplate* Runtime::chat_template() {
  if (!looked_for_template_) {
    looked_for_template_ = true;
    std::string source = chat_template_source(*checkpoint_);
    if (!source.empty()) template_.emplace(std::move(source), checkpoint_->path().string());
  }
  return template_ ? &*template_ : nullptr;
}

std::vector<Token> Runtime::chat_tokens(const OrderedJson& messages) {
  const ChatTemplate* chat = chat_template();
  if (chat == nullptr) {
    throw Error(ErrorCode::kNotFound,
                "{}: expected a chat template, found none; `sluice run --raw` continues plain text",
                checkpoint_->path().string());
  }
  TemplateInput input;
  input.messages = messages;
  input.variables = template_variables(tokenizer());
  input.add_generation_prompt = true;
  return tokenizer().encode(chat->render(input), /*add_special=*/false);
}

std::vector<Token> Runtime::end_tokens() {
  std::vector<Token> ids;
  const auto add = [&](int64_t id) {
    const bool known = std::find(ids.begin(), ids.end(), id) != ids.end();
    if (id >= 0 && id < model_->vocab && !known) ids.push_back(Token(id));
  };
  if (const Tokenizer* tokenizer = optional_tokenizer()) {
    for (const Token id : tokenizer->end_ids()) add(id);
  }
  const Json& config = checkpoint_->config().json();
  const auto found = config.find("eos_token_id");
  if (found == config.end()) return ids;
  if (found->is_number_integer()) add(found->get<int64_t>());
  for (const Json& id : *found) {
    if (found->is_array() && id.is_number_integer()) add(id.get<int64_t>());
  }
  return ids;
}

}  // namespace sluice
