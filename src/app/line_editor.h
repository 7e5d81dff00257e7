// Lines typed at a terminal: cursor keys, history, search with Ctrl-R (libedit).
#pragma once

#include <memory>
#include <string>

namespace sluice {

class LineEditor {
 public:
  /// At most 1000 lines of history are kept in `history_file`, which need not exist and may be
  /// empty: no file.
  explicit LineEditor(std::string history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Outcome { kLine, kEnd, kInterrupted };
  /// Reads a line without its end, showing "> " before it. Ctrl-C (see catch_interrupts()) drops
  /// what was typed.
  Outcome read(std::string& line);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// $XDG_STATE_HOME/sluice/chat_history, by default in ~/.local/state; the folder is made. Empty if
/// it cannot be.
std::string chat_history_file();

}  // namespace sluice
