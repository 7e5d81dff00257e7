#include "serve/response_context.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "serve/chat_prompt.h"
#include "serve/openai.h"
#include "serve/response_items.h"

namespace sluice {
namespace {

constexpr int64_t kMaxSummary = 2048;

constexpr const char* kSummarise =
    "Summarise this conversation for the one who will continue it without having seen it. Keep "
    "names, numbers, decisions, results of tools, and what is still to be done.";

/// Also tells such a summary from the user's own words.
constexpr std::string_view kSummary = "Summary of the conversation so far:\n";

}  // namespace

void truncate_messages(ChatRequest& chat, const ServedModel& model) {
  const int64_t wanted = chat.max_tokens > 0 ? chat.max_tokens : model.context / 8;
  const int64_t limit = model.context - std::min(wanted, model.context / 2);
  const OrderedJson all = chat.messages;
  const size_t n_system = !all.empty() && all[0]["role"] == "system" ? 1 : 0;
  const auto without = [&](size_t n_dropped) {
    OrderedJson kept(all.begin(), all.begin() + int64_t(n_system));
    for (size_t i = n_system + n_dropped; i < all.size(); ++i) kept.push_back(all[i]);
    return kept;
  };
  const auto fits = [&](size_t n_dropped) {
    chat.messages = without(n_dropped);
    return prompt_fits(chat, model, limit);
  };
  if (all.size() <= n_system + 1 || fits(0)) return;
  size_t low = 0, high = all.size() - n_system - 1;  // dropping `low` is not enough
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  // An answer of a tool makes no sense without its call.
  while (n_system + high + 1 < all.size() && all[n_system + high]["role"] == "tool") ++high;
  chat.messages = without(high);
}

int64_t compaction_limit(const ServedModel& model) { return model.context * 3 / 4; }

size_t n_unanswered(const OrderedJson& messages) {
  const auto is_answer = [](const OrderedJson& message) { return message["role"] == "assistant"; };
  size_t first = messages.size();
  bool has_outputs = false;
  while (first > 0 && !is_answer(messages[first - 1])) {
    has_outputs = has_outputs || messages[first - 1]["role"] == "tool";
    --first;
  }
  if (has_outputs && first > 0) --first;
  const bool any = std::any_of(messages.begin(), messages.begin() + int64_t(first), is_answer);
  return any ? messages.size() - first : messages.size();
}

ChatRequest summary_request(const ChatRequest& chat, size_t n_unanswered,
                            const ServedModel& model) {
  ChatRequest request;
  request.messages =
      OrderedJson(chat.messages.begin(), chat.messages.end() - int64_t(n_unanswered));
  request.messages.push_back({{"role", "user"}, {"content", kSummarise}});
  request.effort = chat.effort;
  request.generation = chat.generation;
  request.generation.stop.clear();
  request.generation.request.ignore_end = false;
  request.generation.request.min_tokens = 0;
  SamplingParams& sampling = request.generation.request.sampling;
  sampling.temperature = 0;
  sampling.n_top_logprobs = -1;
  request.max_tokens = std::min(kMaxSummary, std::max<int64_t>(model.context / 8, 1));
  request.messages_param = chat.messages_param;
  return request;
}

OrderedJson compaction_item(const Compaction& compaction, const std::string& summary,
                            const ServedModel& model) {
  const OrderedJson messages = read_messages(response_messages(compaction.items, ""), "input");
  const size_t n_done = messages.size() - std::min(compaction.n_unanswered, messages.size());
  std::vector<OrderedJson> kept;  // newest first
  int64_t room = compaction.n_kept_tokens;
  for (size_t i = n_done; i-- > 0;) {
    const std::string& content = messages[i]["content"].get_ref<const std::string&>();
    const bool is_user = messages[i]["role"] == "user" && !content.starts_with(kSummary);
    if (is_user) room -= int64_t(model.tokenizer->encode(content, /*add_special=*/false).size());
    if (messages[i]["role"] == "system" || (is_user && room >= 0)) kept.push_back(messages[i]);
  }
  std::reverse(kept.begin(), kept.end());
  OrderedJson sealed = kept;
  sealed.push_back({{"role", "user"}, {"content", std::string(kSummary) + summary}});
  for (size_t i = n_done; i < messages.size(); ++i) sealed.push_back(messages[i]);
  return {{"id", make_id("cmp_")},
          {"type", "compaction"},
          {"encrypted_content", seal_text(dump(sealed))}};
}

}  // namespace sluice
