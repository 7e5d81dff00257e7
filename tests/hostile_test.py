#!/usr/bin/env python3
"""What clients do to a server by mistake or on purpose: `sluice serve` answers with a 4xx and goes on.

Usage: hostile_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

import json
from pathlib import Path
import resource
import selectors
import socket
import sys
import time
import unittest

import serve_test
from serve_test import CHAT, TEXT, USER, ServerCase

MESSAGES = "/v1/messages"
JSON = "Content-Type: application/json\r\n"


def post(path, body, length=None):
    body = body if isinstance(body, bytes) else body.encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: {length or len(body)}\r\n\r\n"
    return head.encode() + body


class HostileCase(ServerCase):
    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        self.addCleanup(connection.close)
        return connection

    def answers_to(self, data):
        """The statuses of what comes back until the server closes the connection or is silent."""
        connection = self.connect()
        received = b""
        try:
            connection.sendall(data if isinstance(data, bytes) else data.encode())
            connection.settimeout(1)
            while more := connection.recv(1 << 16):
                received += more
        except (ConnectionResetError, BrokenPipeError, TimeoutError):
            pass
        return [int(part[:3]) for part in received.decode().split("HTTP/1.1 ")[1:]]

    def check_health(self):
        start = time.time()
        self.assertEqual(self.server.send("GET", "/health")[0], 200)
        return time.time() - start

    def resident(self):
        pages = Path(f"/proc/{self.server.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def tearDown(self):
        self.check_health()


class ProtocolTest(HostileCase):
    def test_broken_requests_are_400(self):
        body = '{"prompt": "x", "max_tokens": 1}'
        for head in ["Content-Length: -1", "Content-Length: +5", "Content-Length: 0x5",
                     "Content-Length: 5, 5", "Content-Length: 99999999999999999999999",
                     "Content-Length: 5\r\nContent-Length: 6",
                     f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked",
                     "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                     "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity",
                     "Transfer-Encoding : chunked", "Bad Header: x", "\x00: x", "A: \x01",
                     "A\r: x"]:
            request = f"POST {TEXT} HTTP/1.1\r\nHost: x\r\n{JSON}{head}\r\n\r\n{body}"
            statuses = self.answers_to(request)
            self.assertEqual(statuses, [400], head)
        for line in ["", "GET", "GET /health", "GET /health HTTP/2.0", "GET  /health HTTP/1.1",
                     "GET /he alth HTTP/1.1", "\x16\x03\x01\x02\x00\x01", "PRI * HTTP/2.0"]:
            statuses = self.answers_to(f"{line}\r\nHost: x\r\n\r\n")
            self.assertTrue(set(statuses) <= {400}, (line, statuses))

    def test_one_empty_line_before_a_request_is_ignored(self):
        get = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        call = post(TEXT, '{"prompt": "x", "max_tokens": 1}')
        self.assertEqual(self.answers_to(b"\r\n" + get), [200])
        self.assertEqual(self.answers_to(call + b"\r\n" + get + b"\r\n"), [200, 200])
        self.assertEqual(self.answers_to(b"\r\n\r\n" + get), [400])
        self.assertEqual(self.answers_to(b"\n" + get), [400])

    def test_broken_chunks_are_400(self):
        head = f"POST {TEXT} HTTP/1.1\r\nHost: x\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n"
        for chunks in ["zz\r\n", "-1\r\n{}\r\n0\r\n\r\n", "fffffffffffffffff\r\n", "2\r\n{}x\r\n",
                       "2\r\n{}\r\n0\r\nBad Header: x\r\n\r\n"]:
            self.assertTrue(set(self.answers_to(head + chunks)) <= {400}, chunks)
        self.assertEqual(self.answers_to(head + "2;a=b\r\n{}\r\n0\r\n\r\n"), [400])  # no prompt

    def test_nothing_is_smuggled(self):
        """What looks like a second request within a body or after a refusal is not one."""
        inner = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
        for request in [post(TEXT, inner), post("/nothing", inner),
                        f"POST {TEXT} HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: 4\r\n"
                        f"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
                        f"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: {len(inner)}\r\n\r\n"
                        + inner]:
            self.assertEqual(len(self.answers_to(request)), 1, request)

    def test_pipelined_requests_are_answered_in_order(self):
        statuses = self.answers_to(b"".join(
            post(TEXT, '{"prompt": "x", "max_tokens": 1}') if i % 2 else
            b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n" for i in range(50)))
        self.assertEqual(statuses, [404, 200] * 25)
        connection = self.connect()
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        received = b""
        while received.count(b'{"status":"ready"}') < 50:
            received += connection.recv(1 << 16)

    def test_what_no_context_holds_is_refused_before_it_is_tokens(self):
        error = self.server.post(CHAT, {"messages": [
            {"role": "user", "content": " " * 12_000_000}]}, status=400)["error"]
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertIn("at least", error["message"])

    def test_large_heads_and_bodies_are_refused_at_once(self):
        start = time.time()
        self.assertEqual(self.answers_to(f"GET / HTTP/1.1\r\nA: {'x' * 200000}\r\n\r\n"), [431])
        many = "".join(f"A{i}: x\r\n" for i in range(20000))
        self.assertEqual(self.answers_to(f"GET / HTTP/1.1\r\n{many}\r\n"), [431])
        self.assertEqual(self.answers_to(f"GET /{'x' * 100000} HTTP/1.1\r\n\r\n"), [431])
        self.assertEqual(self.answers_to(post(TEXT, "{}", length=10 ** 10)), [413])
        self.assertLess(time.time() - start, 60)


class BodyTest(HostileCase):
    def test_bodies_that_are_not_json(self):
        deep = 100_000
        for body in ["", " ", "{", "[]", "3", "null", '"x"', '{"a":1e400}', '{"a":1e}', "{'a':1}",
                     '{"a":"\ud800"}'.encode("utf-8", "surrogatepass"), b'{"a":"\xff"}',
                     b'{"a":"\xc0\x80"}', '{"a":"\x01"}', '{"a":1}{"b":2}', "[" * deep,
                     '{"a":' * deep, '{"messages":' + "[" * deep + "]" * deep + "}",
                     '{"a":' * deep + "1" + "}" * deep, "\x00" * 1000, '{"a":"\\ud800"}',
                     "{" + ",".join(f'"k{i}":1' for i in range(100_000)) + "}"]:
            for path in [CHAT, TEXT, MESSAGES]:
                status, _, text = self.server.send("POST", path, body)
                self.assertEqual(status, 400, (path, body[:40]))
                self.assertEqual(set(json.loads(text)["error"]),
                                 {"message", "type", "param", "code"})

    def test_values_out_of_range(self):
        for value in [10 ** 30, -10 ** 30, 1e300, -1, 1.5, "1", True, [], {}, [[]], "x" * 100_000]:
            for key in ["max_tokens", "n", "temperature", "top_p", "top_k", "seed", "stop", "model",
                        "logprobs", "logit_bias", "min_tokens", "stream", "messages", "prompt",
                        "service_tier", "tools", "tool_choice", "system", "thinking",
                        "stop_sequences", "best_of", "echo", "suffix", "stream_options"]:
                for path in [CHAT, TEXT, MESSAGES]:
                    body = {"messages": USER, "prompt": "x", "max_tokens": 1} | {key: value}
                    status, _, text = self.server.send("POST", path, body)
                    self.assertIn(status, [200, 400, 404], (path, key, str(value)[:40], text[:300]))

    def test_a_key_that_is_there_twice_counts_once(self):
        body = '{"prompt": "x", "max_tokens": 3, "max_tokens": 1, "ignore_eos": true}'
        self.assertEqual(self.server.post(TEXT, body)["usage"]["completion_tokens"], 1)

    def test_memory_does_not_grow(self):
        body = json.dumps({"messages": [{"role": "user", "content": "x" * (1 << 20)}] * 8})
        for _ in range(6):  # until each of the workers has had one
            self.server.send("POST", CHAT, body)
        before = self.resident()
        for _ in range(12):
            self.assertEqual(self.server.send("POST", CHAT, body)[0], 400)
        if not serve_test.SANITIZED:
            self.assertLess(self.resident() - before, 64 << 20)


def places(json_value, place=()):
    """Where everything within is: the keys and indices that lead there."""
    if place:
        yield place
    items = json_value.items() if isinstance(json_value, dict) else (
        enumerate(json_value) if isinstance(json_value, list) else ())
    for key, value in items:
        yield from places(value, place + (key,))


class OneWrongFieldTest(HostileCase):
    """Whole requests of which one field after the other is missing or of another type."""
    MODEL = "llama-tied/model.gguf"  # with room for tools: context 2048
    SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}
    GRAMMAR = {"syntax": "regex", "definition": "a+"}
    BODIES = {
        CHAT: {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "x"}], "name": "n"},
                {"role": "assistant", "content": None, "reasoning_content": "x", "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                    {"id": "2", "type": "custom", "custom": {"name": "c", "input": "a"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "x"}],
            "tools": [{"type": "function",
                       "function": {"name": "f", "strict": True, "parameters": SCHEMA}},
                      {"type": "custom", "custom": {
                          "name": "c", "format": {"type": "grammar", "grammar": GRAMMAR}}}],
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {
                "mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}},
            "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
            "max_tokens": 1, "stop": ["x"], "logit_bias": {"5": 1}, "metadata": {"a": "b"},
            "stream_options": {"include_usage": True}},
        "/v1/responses": {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}],
                 "encrypted_content": "sluice1.YQ"},
                {"type": "function_call", "call_id": "1", "name": "f", "namespace": "s",
                 "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "x"},
                {"type": "custom_tool_call", "call_id": "2", "name": "c", "input": "a"},
                {"type": "custom_tool_call_output", "call_id": "2", "output": []},
                {"type": "additional_tools", "tools": [{"type": "function", "name": "g"}]}],
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA},
                      {"type": "custom", "name": "c", "format": {"type": "grammar"} | GRAMMAR},
                      {"type": "namespace", "name": "s",
                       "tools": [{"type": "function", "name": "h"}]}],
            "tool_choice": {"type": "allowed_tools", "mode": "auto",
                            "tools": [{"type": "function", "name": "f"}]},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
            "reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"],
            "context_management": [{"type": "compaction", "compact_threshold": 1000}],
            "max_output_tokens": 1, "store": False, "metadata": {"a": "b"}},
        MESSAGES: {
            "system": [{"type": "text", "text": "x"}],
            "messages": [
                {"role": "user", "content": [{"type": "document", "source": {
                    "type": "text", "media_type": "text/plain", "data": "x"}}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "x", "signature": "x"},
                    {"type": "tool_use", "id": "1", "name": "f", "input": {"a": "x"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1",
                                              "content": [{"type": "text", "text": "x"}]}]}],
            "tools": [{"name": "f", "input_schema": SCHEMA}],
            "tool_choice": {"type": "tool", "name": "f"},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
            "max_tokens": 1, "stop_sequences": ["x"], "metadata": {"user_id": "x"}}}

    def test_none_is_the_servers_fault(self):
        for path, body in self.BODIES.items():
            self.server.post(path, body)
            for place in places(body):
                for wrong in [None, 3, "x", [], {}, [None], "missing"]:
                    changed = json.loads(json.dumps(body))
                    *way, last = place
                    within = changed
                    for key in way:
                        within = within[key]
                    if wrong == "missing":
                        del within[last]
                    else:
                        within[last] = wrong
                    status, _, text = self.server.send("POST", path, changed)
                    self.assertIn(status, [200, 400, 404], (path, place, wrong, text))


class ManyConnectionsTest(HostileCase):
    N_STREAMS = 200
    FLAGS = ("--max-users", N_STREAMS, "--cache-tokens", 64 << 10)

    def test_many_streams_all_progress(self):
        body = json.dumps({"prompt": "x", "max_tokens": 480, "ignore_eos": True, "stream": True})
        request = post(TEXT, body)
        received = {}
        with selectors.DefaultSelector() as selector:
            for _ in range(self.N_STREAMS):
                client = self.connect()
                client.sendall(request[:-1])
                selector.register(client, selectors.EVENT_READ)
                received[client] = b""
            for client in received:
                client.sendall(request[-1:])
            while selector.get_map():
                for key, _ in selector.select(60):
                    received[key.fileobj] += key.fileobj.recv(1 << 16)
                    if b"[DONE]" not in received[key.fileobj]:
                        continue
                    # Nobody ends before everybody has begun.
                    self.assertTrue(all(b"data: " in text for text in received.values()))
                    selector.unregister(key.fileobj)
        self.assertTrue(all(text.count(b"data: {") > 240 for text in received.values()))

    def test_idle_and_slow_clients_cost_little(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 2000:
            self.skipTest("SKIPPED: fewer than 2000 file descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.check_health()
        before = self.resident()
        clients = [self.connect() for _ in range(1500)]
        request = post(CHAT, json.dumps({"messages": USER}))
        slow, n_sent = clients[1000:], len(request) // 2
        for client in slow:
            client.sendall(request[:n_sent])
        waits = []
        for i in range(20):
            for client in slow:
                client.sendall(request[n_sent + i:n_sent + i + 1])
            waits.append(self.check_health())
            self.server.post(TEXT, {"prompt": "x", "max_tokens": 1})
        if not serve_test.SANITIZED:
            self.assertLess(self.resident() - before, 40 << 20)
        self.assertLess(sorted(waits)[len(waits) // 2], 1)


if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
