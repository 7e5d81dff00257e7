#include "serve/chat.h"

#include <utility>

#include "serve/chat_prompt.h"

namespace sluice {
namespace {

ChatFinish chat_finish(FinishReason reason) {
  if (reason == FinishReason::kNone) return ChatFinish::kNone;
  return reason == FinishReason::kLength ? ChatFinish::kLength : ChatFinish::kStop;
}

ChatPiece chat_piece(Piece piece) {
  ChatPiece result{.choice = piece.choice,
                   .deltas = {},
                   .scores = std::move(piece.scores),
                   .finish = chat_finish(piece.finish)};
  if (!piece.text.empty()) {
    result.deltas.emplace_back();
    result.deltas.back().text = std::move(piece.text);
  }
  return result;
}

}  // namespace

std::shared_ptr<Generation> start_chat(const ServedModel& model, ChatRequest request,
                                       ChatSinks sinks) {
  if (request.format.kind != AnswerFormat::Kind::kText) {
    throw ApiError(400, request.format.param + ": this server cannot constrain answers",
                   request.format.param);
  }
  if (!request.tools.empty() &&
      (request.tool_choice == ToolChoice::kRequired || request.tool_choice == ToolChoice::kNamed)) {
    throw ApiError(400, "tool_choice: this server cannot force a call", "tool_choice");
  }
  GenerationRequest generation = std::move(request.generation);
  generation.prompts = {chat_prompt(request, model)};
  generation.request.max_tokens =
      answer_limit(model, generation.prompts[0].size(), request.max_tokens, request.messages_param);
  if (sinks.accepted) sinks.accepted();
  return start_generation(
      model, std::move(generation),
      {[sink = std::move(sinks.piece)](Piece piece) {
         sink(chat_piece(std::move(piece)));
         return true;
       },
       [sink = std::move(sinks.done)](const std::string& error, const Usage& usage) {
         ChatUsage all;
         static_cast<Usage&>(all) = usage;
         sink(error, all);
       }});
}

}  // namespace sluice
