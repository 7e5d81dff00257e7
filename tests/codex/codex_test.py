#!/usr/bin/env python3
"""Runs Codex CLI against `sluice serve` with the default model, over a WebSocket and over SSE.

Run it in a network namespace that has only loopback (`unshare -n`), as `make test-clients` does:
then it is certain that Codex talks to nobody else.

Usage: codex_test.py SLUICE MODEL CODEX FOLDER   (FOLDER: for Codex's files; not below the system's
temporary folder, where Codex refuses to live)
"""

import json
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys

ATTEMPTS = 8  # a small model at temperature 1 does not always come to an end
MAX_TOKENS = 256  # then Codex calls the turn failed
SHARED_TOKENS = 800  # at least so many of every first prompt are instructions and tools


def start(sluice, model):
    server = subprocess.Popen([sluice, "serve", "--model", model, "--port", "0", "--quiet",
                               "--max-tokens", str(MAX_TOKENS)],
                              stdout=subprocess.PIPE, text=True)
    return server, re.search(r":(\d+) ", server.stdout.readline()).group(1)


def turn(codex, home, work):
    """The events of `codex exec`."""
    command = [codex, "exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check",
               "--json", "Say hello."]
    done = subprocess.run(command, cwd=work, env={"CODEX_HOME": str(home), "HOME": str(home),
                                                  "PATH": "/usr/local/bin:/usr/bin:/bin"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def complete_turn(codex, home, work):
    """The usage of the first turn that comes to an end by itself."""
    for attempt in range(ATTEMPTS):
        events = turn(codex, home, work)
        for event in events:
            if event["type"] == "turn.completed":
                return event["usage"]
        print(f"codex: attempt {attempt + 1}: {events[-1:]}", file=sys.stderr)
    raise SystemExit("codex: expected a completed turn")


def check(sluice, model, codex, folder):
    home, work = folder / "home", folder / "work"
    shutil.rmtree(folder, ignore_errors=True)
    work.mkdir(parents=True)
    server, port = start(sluice, model)
    try:
        subprocess.run([sluice, "serve", "--model", model, "--port", port, "--quiet",
                        "--codex-config", home], check=True)
        config = home / "config.toml"
        printed = config.read_text()
        sockets = "supports_websockets = true\n"
        if sockets not in printed:
            raise SystemExit(f"codex: expected {sockets!r} in the printed configuration")
        for way, line in [("WebSocket", sockets), ("SSE", "")]:
            config.write_text(printed.replace(sockets, line + "stream_max_retries = 0\n"))
            usage = complete_turn(codex, home, work)
            # What all turns share: Codex computes it ahead over a WebSocket.
            if usage["cached_input_tokens"] < SHARED_TOKENS:
                raise SystemExit(f"codex: {way}: expected {SHARED_TOKENS} or more cached tokens, "
                                 f"got {usage}")
            print(f"codex: {way}: turn completed, {usage['input_tokens']} tokens in "
                  f"({usage['cached_input_tokens']} cached), {usage['output_tokens']} out",
                  flush=True)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def main():
    sluice, model, codex, folder = sys.argv[1:]
    check(sluice, model, codex, Path(folder).resolve())


if __name__ == "__main__":
    main()
