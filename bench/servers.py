"""Starts and stops the servers that are compared."""

import contextlib
import http.client
import socket
import subprocess
import tempfile
import time

import process

READY_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(port, path):
    """(status, text)"""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@contextlib.contextmanager
def running(command):
    """The port of a server that was started as `command(port)` and says that it is healthy."""
    port = free_port()
    words = [str(word) for word in command(port)]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            end = time.monotonic() + READY_S
            while not is_ready(port):
                if server.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    last = log.read().decode(errors="replace").strip().splitlines()[-1:]
                    raise process.Failed(f"{words[0]} did not start: {' '.join(last)}")
                time.sleep(0.02)
            yield port
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def is_ready(port):
    try:
        return get(port, "/health")[0] == 200
    except OSError:
        return False


def sluice(binary, model, threads, users, flags=()):
    return lambda port: [binary, "serve", "--quiet", "--model", model, "--threads", threads,
                         "--max-users", users, "--port", port, *flags]


def llama_server(binary, model, threads, users, context, flags=()):
    """`context`: tokens of each user."""
    return lambda port: [binary, "-m", model, "-t", threads, "--parallel", users,
                         "-c", users * context, "--host", "127.0.0.1", "--port", port, *flags]
