"""Runs one program at a time and says what it printed, how long it took and how much it held."""

import contextlib
import dataclasses
import os
import subprocess
import sys
import tempfile
import threading
import time

# Engines whose threads spin at barriers can stall for minutes on a machine with other work.
TIMEOUT_S = 300


class Failed(Exception):
    """A program ended with an error; the message holds its last words."""


@dataclasses.dataclass
class Run:
    output: str
    first_byte_s: float  # from start to the first byte on standard output
    peak_bytes: int      # largest resident set


def run(command):
    command = [str(word) for word in command]
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=errors)
        timer = threading.Timer(TIMEOUT_S, process.kill)
        timer.start()
        first = process.stdout.read(1)
        first_byte_s = time.perf_counter() - start
        output = (first + process.stdout.read()).decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        timed_out = timer.finished.is_set()
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        if timed_out:
            raise Failed(f"{' '.join(command)}: no end after {TIMEOUT_S} s")
        if process.returncode != 0:
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip().splitlines()
            raise Failed(f"{' '.join(command)}: exit code {process.returncode}: "
                         f"{words[-1] if words else 'no message'}")
    return Run(output, first_byte_s, usage.ru_maxrss * 1024)


def cpus():
    return sorted(os.sched_getaffinity(0))


@contextlib.contextmanager
def neighbour():
    """Keeps the last of our CPUs busy with another process."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(process.pid, {cpus()[-1]})
        yield
    finally:
        process.kill()
        process.wait()
