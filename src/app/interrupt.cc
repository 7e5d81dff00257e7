#include <unistd.h>

#include <csignal>

#include "app/runtime.h"

namespace sluice {
namespace {

volatile std::sig_atomic_t pressed = 0;

void on_interrupt(int) {
  if (pressed != 0) _exit(kInterrupted);
  pressed = 1;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: reading a line stops, too
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return pressed != 0; }
void clear_interrupt() { pressed = 0; }

}  // namespace sluice
