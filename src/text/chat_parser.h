// An answer's text, in pieces of any size, as deltas: thinking, text, calls of tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chat_call_reader.h"
#include "text/chat_delta.h"
#include "text/chat_format.h"
#include "text/chat_harmony.h"

namespace sluice {

/// The deltas are the same for any pieces, but for how a kind's text is cut. A marker never shows;
/// what may be the start of one is held back. Text that looks like a call but is none is given out
/// as text. White space around thinking and before calls belongs to the format, not to the text.
class ChatParser {
 public:
  /// `tools`: those that may be called; with none, no calls are looked for. `thinking`: the prompt
  /// has opened the thinking already. All must live on.
  ChatParser(const ChatFormat& format, const std::vector<ChatTool>& tools, bool thinking);

  ChatParser(const ChatParser&) = delete;
  ChatParser& operator=(const ChatParser&) = delete;

  std::vector<ChatDelta> push(std::string_view text);
  /// What was held back; a call that is not whole gets no end. `cut`: more would have followed, so
  /// what may have become a call is dropped.
  std::vector<ChatDelta> finish(bool cut = false);

  bool thinking() const;
  int n_calls() const { return sink_.n_calls(); }

 private:
  enum class State { kThinking, kText, kCall };

  void step(char c);
  void resolve();
  bool take_marker();
  void show(char c);
  void show(std::string_view text) {
    for (const char c : text) show(c);
  }
  void read_call(char c);

  const ChatFormat& format_;
  DeltaSink sink_;
  CallReader reader_;
  HarmonyParser harmony_;
  State state_ = State::kText;
  std::string held_;      // may be the start of a marker
  std::string spaces_;    // shown only if something follows
  bool at_start_ = true;  // nothing was shown in this state
  bool was_thinking_ = false;
  std::vector<std::string> openings_;  // of calls
};

}  // namespace sluice
