// sluice chat: a conversation in the terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <optional>

#include "app/answer.h"
#include "app/commands.h"
#include "app/line_editor.h"
#include "app/own_sampling.h"
#include "app/report.h"
#include "base/error.h"

namespace sluice {
namespace {

struct ChatOptions {
  ChatOptions() {
    answer.sampling.temperature = 0.7f;
    answer.sampling.top_p = 0.9f;
    answer.max_tokens = 1024;
    answer.own_sampling = true;
  }

  ModelOptions model;
  AnswerOptions answer;
  std::string system;
  bool json = false;
  bool has_temperature = false, has_top_p = false, has_top_k = false;
};

bool parse(ChatOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(
      app, "chat", "[flags]",
      "Talks with a model that has a chat template. What was said before stays in the cache, "
      "so each turn computes only what is new. Ctrl-C stops an answer, Ctrl-D leaves; the cursor "
      "keys edit the line and bring back earlier ones, Ctrl-R searches them.\n"
      "In the chat: /help, /reset (forget the conversation), /system TEXT (and forget), "
      "/undo (take back the last turn), /save FILE, /exit.",
      {"sluice chat", "sluice chat --system \"Answer in one sentence.\" --temperature 0",
       "printf 'Hi\\nWho are you?\\n' | sluice chat --json"});
  add_text(app, "--system", "TEXT", o.system, "a system message at the beginning")
      ->group("Conversation");
  add_answer_flags(app, o.answer);
  add_model_flags(app, o.model);
  add_switch(app, "--json", o.json, "print one object per answer instead of streaming text")
      ->group("Output");
  const bool go_on = parse_flags(app, argc, argv);
  o.has_temperature = app.count("--temperature") > 0;
  o.has_top_p = app.count("--top-p") > 0;
  o.has_top_k = app.count("--top-k") > 0;
  return go_on;
}

/// What the flags leave open is the model's own.
void take_own_sampling(ChatOptions& o, const Checkpoint& checkpoint) {
  SamplingParams& s = o.answer.sampling;
  const SamplingParams own = own_sampling(checkpoint, s);
  if (!o.has_temperature) s.temperature = own.temperature;
  if (!o.has_top_p) s.top_p = own.top_p;
  if (!o.has_top_k) s.top_k = own.top_k;
}

class Chat {
 public:
  Chat(Runtime& runtime, const ChatOptions& options) : runtime_(runtime), options_(options) {
    reset(options.system);
    const bool is_terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
    if (is_terminal) editor_.emplace(chat_history_file());
  }

  void loop() {
    if (editor_ && !options_.model.quiet) {
      fmt::print(stderr, "Ctrl-C stops an answer, Ctrl-D leaves, /help lists the commands.\n");
    }
    std::string line;
    while (read_line(line)) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      if (!line.starts_with('/')) {
        reply(line);
      } else if (!obey(line)) {
        break;
      }
    }
  }

 private:
  void reset(const std::string& system) {
    messages_ = OrderedJson::array();
    if (!system.empty()) messages_.push_back({{"role", "system"}, {"content", system}});
  }

  /// False at the end of the input.
  bool read_line(std::string& line) {
    if (!editor_) {
      clear_interrupt();
      return bool(std::getline(std::cin, line));
    }
    auto outcome = LineEditor::Outcome::kInterrupted;
    while (outcome == LineEditor::Outcome::kInterrupted) outcome = editor_->read(line);
    if (outcome == LineEditor::Outcome::kEnd) fmt::print("\n");
    return outcome == LineEditor::Outcome::kLine;
  }

  /// A line that starts with "/"; false to leave.
  bool obey(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string word = line.substr(0, space);
    const std::string rest = space < line.size() ? line.substr(space + 1) : "";
    if (word == "/exit" || word == "/quit") return false;
    if (word == "/reset") {
      reset(system());
    } else if (word == "/system") {
      reset(rest);
    } else if (word == "/undo") {
      undo();
    } else if (word == "/save") {
      save(rest);
    } else if (word == "/help") {
      fmt::print(
          "/reset        forget the conversation\n"
          "/system TEXT  set the system message and forget the conversation\n"
          "/undo         take back the last question and its answer\n"
          "/save FILE    write the conversation as JSON (see sluice template)\n"
          "/exit         leave\n");
    } else {
      fmt::print(stderr, "{}: unknown; /help lists the commands\n", word);
    }
    return true;
  }

  std::string system() const {
    const bool has = !messages_.empty() && messages_.front()["role"] == "system";
    return has ? messages_.front()["content"].get<std::string>() : "";
  }

  void undo() {
    while (!messages_.empty() && messages_.back()["role"] == "assistant") drop_last();
    if (!messages_.empty() && messages_.back()["role"] == "user") drop_last();
  }

  void drop_last() { messages_.erase(messages_.size() - 1); }

  void save(const std::string& path) const {
    std::FILE* file = std::fopen(path.c_str(), "w");
    const std::string text = messages_.dump(2) + "\n";
    const bool written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
    if (file == nullptr || std::fclose(file) != 0 || !written) {
      fmt::print(stderr, "/save: {}: cannot be written\n", path);
    }
  }

  void reply(const std::string& question) {
    messages_.push_back({{"role", "user"}, {"content", question}});
    try {
      Request request = make_request(runtime_, runtime_.chat_tokens(messages_), options_.answer);
      const Answer result =
          answer(runtime_, std::move(request), options_.answer.stop, [&](std::string_view text) {
            if (options_.json) return;
            std::fwrite(text.data(), 1, text.size(), stdout);
            std::fflush(stdout);
          });
      messages_.push_back({{"role", "assistant"}, {"content", result.text}});
      show(result);
    } catch (const Error& error) {
      drop_last();
      fmt::print(stderr, "sluice: error: {}\n", error.what());
    }
  }

  void show(const Answer& result) const {
    if (options_.json) {
      print_json(answer_to_json(runtime_, result));
      return;
    }
    fmt::print("\n");
    std::fflush(stdout);
    if (options_.model.quiet || !editor_) return;
    fmt::print(stderr, "[{} tokens at {}/s, {} of {} prompt tokens from the cache, {}]\n",
               result.tokens.size(), short_number(result.decode_tok_s()), result.n_cached,
               result.n_prompt, finish_name(result.finish));
  }

  Runtime& runtime_;
  const ChatOptions& options_;
  std::optional<LineEditor> editor_;  // at a terminal
  OrderedJson messages_;
};

}  // namespace

int chat_command(int argc, char** argv) {
  ChatOptions o;
  if (!parse(o, argc, argv)) return kOk;
  Runtime runtime(o.model);
  if (runtime.chat_template() == nullptr) {
    throw Error(ErrorCode::kNotFound,
                "{}: expected a chat template, found none; `sluice run --raw` continues plain text",
                runtime.checkpoint().path().string());
  }
  take_own_sampling(o, runtime.checkpoint());
  runtime.start(0, 1);
  catch_interrupts();
  Chat(runtime, o).loop();
  return kOk;
}

}  // namespace sluice
