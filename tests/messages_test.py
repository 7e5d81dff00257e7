#!/usr/bin/env python3
"""Anthropic's Messages API and the books of `sluice serve`, over HTTP.

Usage: messages_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

import json
from pathlib import Path
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import serve_test
from serve_test import CHAT, DEFAULT_MODEL, TEXT, USER, Server, ServerCase

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
BASE = {"max_tokens": 8, "messages": USER, "temperature": 0, "ignore_eos": True}


def events_of(server, body):
    """The events of a stream; demands their framing."""
    status, headers, text = server.send("POST", MESSAGES, body | {"stream": True})
    if status != 200 or not headers["Content-Type"].startswith("text/event-stream"):
        raise AssertionError(f"expected a stream, got {status}: {text}")
    events = []
    for event in text.split("\n\n")[:-1]:
        name, data = event.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        if name != "event: " + events[-1]["type"]:
            raise AssertionError(f"expected the type as name, got {event}")
    return events


class MessagesCase(ServerCase):
    def ask(self, **fields):
        return self.server.post(MESSAGES, BASE | fields)

    def failure(self, path, body, status, kind, **keywords):
        answer = self.server.post(path, body, status, **keywords)
        self.assertEqual((answer["type"], answer["error"]["type"]), ("error", kind))
        self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
        return answer["error"]


class MessagesTest(MessagesCase):
    def test_answers(self):
        answer = self.ask(model="tiny")
        self.assertEqual((answer["type"], answer["role"], answer["model"], answer["stop_reason"]),
                         ("message", "assistant", "tiny", "max_tokens"))
        self.assertTrue(answer["id"].startswith("msg_"))
        chat = self.server.post(CHAT, BASE)
        block, = answer["content"]
        self.assertEqual(block, {"type": "text",
                                 "text": chat["choices"][0]["message"]["content"]})
        self.assertEqual(answer["usage"]["output_tokens"], 8)
        self.assertEqual(answer["usage"]["service_tier"], "standard")

    def test_a_stream_says_the_same(self):
        whole = self.ask(max_tokens=40)
        start, begin, *deltas, end, last, stop = events_of(self.server, BASE | {"max_tokens": 40})
        self.assertEqual((start["type"], stop), ("message_start", {"type": "message_stop"}))
        self.assertEqual(start["message"]["content"], [])
        self.assertIsNone(start["message"]["stop_reason"])
        self.assertEqual((begin["type"], begin["index"], begin["content_block"]),
                         ("content_block_start", 0, {"type": "text", "text": ""}))
        self.assertTrue(all(d["type"] == "content_block_delta" and d["index"] == 0 for d in deltas))
        self.assertEqual("".join(d["delta"]["text"] for d in deltas), whole["content"][0]["text"])
        self.assertEqual(end, {"type": "content_block_stop", "index": 0})
        self.assertEqual(last["delta"], {"stop_reason": "max_tokens", "stop_sequence": None})
        self.assertEqual(last["usage"]["output_tokens"], 40)
        usage = last["usage"]
        self.assertEqual(start["message"]["usage"]["input_tokens"],
                         usage["input_tokens"] + usage["cache_read_input_tokens"])

    def test_stop_sequences(self):
        whole = self.ask(max_tokens=40)["content"][0]["text"]
        stop = whole[10:13]
        answer = self.ask(max_tokens=40, stop_sequences=["never in it", stop])
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("stop_sequence", stop))
        self.assertEqual(answer["content"][0]["text"], whole[:whole.index(stop)])

    def test_cached_input_is_counted_apart(self):
        text = {"type": "text", "text": "A long prefix that is sent again. " * 5,
                "cache_control": {"type": "ephemeral"}}
        messages = [{"role": "user", "content": [text]}]
        n = self.server.post(COUNT, {"messages": messages})["input_tokens"]
        for cached in [False, True]:
            usage = self.ask(messages=messages)["usage"]
            self.assertEqual(usage["cache_read_input_tokens"] > 32, cached)
            self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"]
                             + usage["cache_creation_input_tokens"], n)

    def test_what_agents_send_is_taken(self):
        self.ask(max_tokens=32000, thinking={"type": "adaptive", "display": "omitted"},
                 context_management={"edits": []}, output_config={"effort": "high"},
                 metadata={"user_id": "x"}, service_tier="standard_only", stop_sequences=None,
                 tools=[{"type": "web_search_20250305", "name": "web_search"},
                        {"name": "later", "input_schema": {"type": "object"},
                         "defer_loading": True}],
                 tool_choice={"type": "auto", "disable_parallel_tool_use": True})

    def test_wrong_fields(self):
        image = [{"type": "image", "source": {"type": "base64", "data": ""}}]
        for fields, param in [
                ({"max_tokens": None}, "max_tokens"), ({"max_tokens": 0}, "max_tokens"),
                ({"messages": []}, "messages"), ({"messages": [3]}, "messages[0]"),
                ({"messages": [{"role": "user"}]}, "messages[0].content"),
                ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
                ({"messages": USER + [{"role": "assistant", "content": "I"}]}, "messages"),
                ({"messages": [{"role": "user", "content": image}]}, "messages[0].content[0].type"),
                ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
                 "messages[0].content[0].tool_use_id"),
                ({"system": 3}, "system"), ({"tools": [1]}, "tools[0]"),
                ({"tools": [{"description": "x"}]}, "tools[0].name"),
                ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
                ({"thinking": {"type": "deep"}}, "thinking.type"),
                ({"thinking": {"type": "enabled", "budget_tokens": -1}}, "thinking.budget_tokens"),
                ({"output_config": {"effort": "ultra"}}, "output_config.effort"),
                ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
                ({"metadata": 5}, "metadata"), ({"metadata": {"user_id": 5}}, "metadata.user_id"),
                ({"stop_sequences": "x"}, "stop_sequences"),
                ({"stop_sequences": [1]}, "stop_sequences"), ({"temperature": "x"}, "temperature"),
                ({"stream": 1}, "stream"), ({"service_tier": "gold"}, "service_tier")]:
            error = self.failure(MESSAGES, BASE | fields, 400, "invalid_request_error")
            self.assertEqual(error["param"], param, fields)
        self.failure(MESSAGES, BASE | {"model": "other"}, 404, "not_found_error")
        self.failure(MESSAGES, "{", 400, "invalid_request_error")
        self.failure(MESSAGES, "{}", 415, "invalid_request_error",
                     headers={"Content-Type": "text/plain"})


class ConversationTest(MessagesCase):
    MODEL = "llama-tied/model.gguf"  # with room for tools: context 2048

    def test_blocks_become_a_conversation(self):
        """Against the same conversation as a chat completion."""
        tool = {"name": "add", "description": "adds", "input_schema": {"type": "object"}}
        body = {"system": [{"type": "text", "text": "Be brief."}], "messages": [
            {"role": "user", "content": "One"},
            {"role": "user", "content": [{"type": "text", "text": "two"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "text", "text": "Adding."},
                {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1",
                 "content": [{"type": "text", "text": "3"}]},
                {"type": "text", "text": "Go on."}]}]}
        chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "One\ntwo"},
                {"role": "assistant", "content": "Adding.", "reasoning_content": "Hm.",
                 "tool_calls": [{"id": "toolu_1", "type": "function",
                                 "function": {"name": "add", "arguments": '{"a":1}'}}]},
                {"role": "tool", "tool_call_id": "toolu_1", "content": "3"},
                {"role": "user", "content": "Go on."}]
        function = {"type": "function", "function": {
            "name": "add", "description": "adds", "parameters": {"type": "object"}}}
        answer = self.ask(**body, tools=[tool])
        same = self.server.post(CHAT, BASE | {"messages": chat, "tools": [function]})
        self.assertEqual(answer["content"][0]["text"], same["choices"][0]["message"]["content"])
        n = self.server.post(COUNT, body | {"tools": [tool]})["input_tokens"]
        self.assertEqual(n, same["usage"]["prompt_tokens"])


class BooksTest(unittest.TestCase):
    """What `sluice usage` says."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.db = str(Path(folder.name) / "sluice.db")
        keys, tiers = Path(folder.name) / "keys", Path(folder.name) / "tiers.json"
        keys.write_text("a name=ann\nb\n")
        tiers.write_text('{"pro": {"model": "tiny", "price": '
                         '{"input": 1000, "cached": 100, "output": 3000, "priority": 2}}}')
        self.flags = ["--model", f"{serve_test.GOLDEN / 'llama/model.gguf'},tiny", "--threads", 1,
                      "--db", self.db, "--api-key-file", keys, "--tiers", tiers]

    def start(self):
        server = Server(*self.flags)
        self.addCleanup(server.process.stdout.close)
        self.addCleanup(server.process.kill)
        return server

    def usage(self, by="key"):
        command = [serve_test.SLUICE, "usage", "--json", "--db", self.db, "--by", by]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return {row[by]: row for row in map(json.loads, done.stdout.splitlines())}

    def wait_for(self, n_requests):
        end = time.time() + 10
        while sum(row["requests"] for row in self.usage().values()) != n_requests:
            self.assertLess(time.time(), end)
            time.sleep(0.05)

    def test_every_request_is_in_the_books_once(self):
        server = self.start()
        ann, key_2 = ({"Authorization": f"Bearer {key}"} for key in "ab")
        chat = server.post(CHAT, {"messages": USER, "max_tokens": 5, "ignore_eos": True,
                                  "model": "pro"}, headers=ann)["usage"]
        message = server.post(MESSAGES, BASE | {"model": "pro", "service_tier": "priority"},
                              headers={"x-api-key": "a"})["usage"]
        server.send("POST", TEXT, {"prompt": "Hello", "stream": True, "n": 2, "ignore_eos": True},
                    key_2)
        server.post(CHAT, {"messages": []}, 400, headers=key_2)  # nothing was used
        self.wait_for(3)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        keys = self.usage()
        self.assertEqual({name: row["requests"] for name, row in keys.items()},
                         {"ann": 2, "key-2": 1})
        self.assertEqual(keys["ann"]["completion_tokens"], 5 + 8)
        cached = (chat["prompt_tokens_details"]["cached_tokens"]
                  + 2 * message["cache_read_input_tokens"])
        rest = (chat["prompt_tokens"] - chat["prompt_tokens_details"]["cached_tokens"]
                + 2 * message["input_tokens"])
        cost = (1000 * rest + 100 * cached + 3000 * (5 + 2 * 8)) / 1e6
        self.assertAlmostEqual(keys["ann"]["cost"], cost, places=8)
        self.assertEqual(keys["key-2"]["cost"], 0)
        self.assertEqual(keys["key-2"]["completion_tokens"], 32)
        self.assertEqual({k: v["requests"] for k, v in self.usage("tier").items()},
                         {"default": 2, "priority": 1})
        self.assertEqual({k: v["requests"] for k, v in self.usage("model").items()},
                         {"pro": 2, "tiny": 1})
        self.assertEqual(len(self.usage("day")), 1)
        self.assertEqual(self.start().stop(), 0)  # the file is fine, and nothing counts twice
        self.assertEqual(self.usage(), keys)
        table = subprocess.run([serve_test.SLUICE, "usage", "--db", self.db], text=True,
                               capture_output=True, check=True).stdout
        self.assertRegex(table, r"(?m)^ann +2 ")

    def test_a_client_that_goes_pays_for_what_it_used(self):
        server = self.start()
        body = json.dumps({"prompt": "x", "max_tokens": 480, "ignore_eos": True, "stream": True,
                           "n": 20})
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall((f"POST {TEXT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\n"
                                f"Content-Type: application/json\r\nContent-Length: {len(body)}"
                                f"\r\n\r\n{body}").encode())
            while b'"text"' not in connection.recv(65536):
                pass
        self.wait_for(1)
        tokens = self.usage()["ann"]["completion_tokens"]
        self.assertTrue(1 <= tokens < 20 * 480, tokens)

    def test_wrong_files(self):
        for command in [["usage"], ["usage", "--db", "/no/such.db"],
                        ["serve", "--port", "0", "--db", "/no/such/folder/x.db"]]:
            done = subprocess.run([serve_test.SLUICE, *command], capture_output=True, text=True,
                                  timeout=60 * serve_test.PATIENCE, env={})
            self.assertIn(done.returncode, [1, 2])
            self.assertIn("db", done.stderr)


if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
