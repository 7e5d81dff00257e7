#include "app/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <utility>

#include "app/runtime.h"

namespace sluice {
namespace {

constexpr int kHistoryLines = 1000;

const char* prompt(EditLine*) { return "> "; }

/// False after an interrupt; waiting for the signal alone would miss one that comes just before.
bool wait_for_input() {
  pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
  while (!interrupted() && files[0].revents == 0) {
    if (poll(files, 2, -1) < 0 && errno != EINTR) return false;
  }
  return !interrupted();
}

/// Reads one character; libedit's own reader would go on after an interrupt.
int read_character(EditLine*, wchar_t* character) {
  std::mbstate_t state = {};
  for (;;) {
    if (!wait_for_input()) return -1;
    char byte;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n <= 0) return int(n);
    const size_t done = std::mbrtowc(character, &byte, 1, &state);
    if (done == size_t(-2)) continue;
    if (done == size_t(-1)) {
      *character = L'\ufffd';
      errno = 0;
    }
    return 1;
  }
}

}  // namespace

struct LineEditor::Impl {
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event = {};
  std::string file;
};

LineEditor::LineEditor(std::string history_file) : impl_(std::make_unique<Impl>()) {
  Impl& s = *impl_;
  s.file = std::move(history_file);
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  s.editor = el_init("sluice", stdin, stdout, stderr);
  s.history = history_init();
  history(s.history, &s.event, H_SETSIZE, kHistoryLines);
  history(s.history, &s.event, H_SETUNIQUE, 1);
  if (!s.file.empty()) history(s.history, &s.event, H_LOAD, s.file.c_str());
  el_set(s.editor, EL_PROMPT, &prompt);
  el_set(s.editor, EL_EDITOR, "emacs");
  el_set(s.editor, EL_HIST, history, s.history);
  el_set(s.editor, EL_GETCFN, &read_character);
  el_set(s.editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
  Impl& s = *impl_;
  if (!s.file.empty()) history(s.history, &s.event, H_SAVE, s.file.c_str());
  history_end(s.history);
  el_end(s.editor);
}

LineEditor::Outcome LineEditor::read(std::string& line) {
  Impl& s = *impl_;
  clear_interrupt();
  el_set(s.editor, EL_PREP_TERM, 1);  // before the prompt: what is typed once it shows is edited
  int n = 0;
  const char* text = el_gets(s.editor, &n);
  if (interrupted()) {
    el_reset(s.editor);
    std::fputs("\n", stdout);
    return Outcome::kInterrupted;
  }
  if (text == nullptr || n <= 0) return Outcome::kEnd;
  line.assign(text, size_t(n));
  while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
  if (!line.empty()) history(s.history, &s.event, H_ENTER, line.c_str());
  return Outcome::kLine;
}

std::string chat_history_file() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && *state == '/') {
    folder = state;
  } else if (home != nullptr && *home == '/') {
    folder = std::filesystem::path(home) / ".local/state";
  } else {
    return "";
  }
  folder /= "sluice";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? "" : (folder / "chat_history").string();
}

}  // namespace sluice
