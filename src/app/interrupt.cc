#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "app/runtime.h"
#include "base/error.h"

namespace sluice {
namespace {

volatile std::sig_atomic_t pressed = 0;
int pipe_ends[2] = {-1, -1};

void on_interrupt(int) {
  if (pressed != 0) _exit(kInterrupted);
  pressed = 1;
  const int error = errno;
  [[maybe_unused]] const ssize_t n = write(pipe_ends[1], "", 1);
  errno = error;
}

}  // namespace

void catch_interrupts() {
  if (pipe_ends[0] < 0 && pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorCode::kResource, "cannot make a pipe: {}", std::strerror(errno));
  }
  struct sigaction action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: reading a line stops, too
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return pressed != 0; }
int interrupt_fd() { return pipe_ends[0]; }

void clear_interrupt() {
  pressed = 0;
  char bytes[16];
  while (read(pipe_ends[0], bytes, sizeof bytes) > 0) {
  }
}

}  // namespace sluice
