#!/usr/bin/env python3
"""Drives `sluice serve` over HTTP: a tiny model always, the default model where it is present.

Usage: serve_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

import base64
from concurrent.futures import ThreadPoolExecutor
import http.client
import json
import os
from pathlib import Path
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

SLUICE, GOLDEN = "", Path()
DEFAULT_MODEL = Path(__file__).parent.parent / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
EMBEDDINGS = "/v1/embeddings"
# Sanitizers make a server slow and large.
SANITIZED = "SLUICE_SANITIZED" in os.environ
PATIENCE = 20 if SANITIZED else 1
USER = [{"role": "user", "content": "Hello there"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


class Server:
    """A running `sluice serve`."""

    def __init__(self, *flags):
        command = [SLUICE, "serve", "--port", "0", "--quiet", *map(str, flags)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+) ", line).group(1))
        self.model = re.match(r"sluice: serving (\S+) at", line).group(1)

    def stop(self):
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30 * PATIENCE)
        self.process.stdout.close()
        return code

    def send(self, method, path, body=None, headers=None):
        """(status, headers, text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * PATIENCE)
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        headers = {"Content-Type": "application/json"} | (headers or {})
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, response.headers, text

    def post(self, path, body, status=200, **keywords):
        got, _, text = self.send("POST", path, body, **keywords)
        if got != status:
            raise AssertionError(f"expected {status}, got {got}: {text}")
        return json.loads(text)

    def stream(self, path, body):
        """The chunks of a stream; demands its framing and its end."""
        status, headers, text = self.send("POST", path, body | {"stream": True})
        if status != 200 or not headers["Content-Type"].startswith("text/event-stream"):
            raise AssertionError(f"expected a stream, got {status}: {text}")
        events = text.split("\n\n")
        if events[-2:] != ["data: [DONE]", ""]:
            raise AssertionError(f"expected [DONE] at the end, got {events[-2:]}")
        return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]

    def metric(self, name):
        text = self.send("GET", "/metrics")[2]
        return float(re.search(rf"^{name}(?:{{model=[^}}]*}})? (\S+)$", text, re.MULTILINE).group(1))

    def wait_for(self, name, value, seconds=10):
        end = time.time() + seconds
        while self.metric(name) != value:
            if time.time() > end:
                raise AssertionError(f"{name}: expected {value}, got {self.metric(name)}")
            time.sleep(0.02)


class ServerCase(unittest.TestCase):
    MODEL = "llama/model.gguf"  # context 512
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--model", f"{GOLDEN / cls.MODEL},tiny", "--threads", 1, *cls.FLAGS)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def error(self, path, body, status=400, **keywords):
        error = self.server.post(path, body, status, **keywords)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertTrue(error["code"] is None or isinstance(error["code"], str))
        return error


class ChatTest(ServerCase):
    def ask(self, **fields):
        return self.server.post(CHAT, {"messages": USER, "max_tokens": 8, "ignore_eos": True,
                                       "temperature": 0} | fields)

    def test_answers(self):
        answer = self.ask(model="tiny")
        self.assertEqual(answer["object"], "chat.completion")
        self.assertTrue(answer["id"].startswith("chatcmpl-"))
        choice, = answer["choices"]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(choice["message"]["role"], "assistant")
        usage = answer["usage"]
        self.assertEqual(usage["completion_tokens"], 8)
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + 8)
        self.assertIn("cached_tokens", usage["prompt_tokens_details"])
        self.assertEqual(usage["completion_tokens_details"]["reasoning_tokens"], 0)

    def test_a_stream_says_the_same(self):
        whole = self.ask(max_tokens=40)["choices"][0]["message"]["content"]
        chunks = self.server.stream(CHAT, {"messages": USER, "max_tokens": 40, "ignore_eos": True,
                                           "temperature": 0,
                                           "stream_options": {"include_usage": True}})
        *parts, last = chunks
        deltas = [part["choices"][0]["delta"] for part in parts]
        self.assertEqual("".join(delta.get("content", "") for delta in deltas), whole)
        self.assertEqual([i for i, delta in enumerate(deltas) if "role" in delta], [0])
        self.assertEqual(deltas[-1], {})
        self.assertEqual(parts[-1]["choices"][0]["finish_reason"], "length")
        self.assertTrue(all(part["usage"] is None for part in parts))
        self.assertEqual(last["choices"], [])
        self.assertEqual(last["usage"]["completion_tokens"], 40)
        self.assertEqual(len({chunk["id"] for chunk in chunks}), 1)

    def test_no_usage_unless_asked(self):
        chunks = self.server.stream(CHAT, {"messages": USER, "max_tokens": 2})
        self.assertTrue(all("usage" not in chunk for chunk in chunks))

    def test_choices_and_seeds(self):
        fields = {"n": 3, "seed": 5, "temperature": 1.5, "max_tokens": 12}
        answer = self.ask(**fields)
        texts = [choice["message"]["content"] for choice in answer["choices"]]
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2])
        self.assertGreater(len(set(texts)), 1)
        again = [choice["message"]["content"] for choice in self.ask(**fields)["choices"]]
        self.assertEqual(texts, again)
        second = self.ask(**fields | {"n": 1, "seed": 6})["choices"][0]["message"]["content"]
        self.assertEqual(second, texts[1])
        streamed = {}
        for chunk in self.server.stream(CHAT, {"messages": USER, "ignore_eos": True} | fields):
            choice, = chunk["choices"]
            streamed[choice["index"]] = (streamed.get(choice["index"], "")
                                         + choice["delta"].get("content", ""))
        self.assertEqual([streamed[i] for i in range(3)], texts)

    def test_stop_texts(self):
        whole = self.ask(max_tokens=40)["choices"][0]["message"]["content"]
        stop = whole[10:13]
        before = whole[:whole.index(stop)]
        choice, = self.ask(max_tokens=40, stop=["never in it", stop])["choices"]
        self.assertEqual(choice["message"]["content"], before)
        self.assertEqual(choice["finish_reason"], "stop")
        chunks = self.server.stream(CHAT, {"messages": USER, "max_tokens": 40, "temperature": 0,
                                           "ignore_eos": True, "stop": stop})
        text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)
        self.assertEqual(text, before)

    def test_logprobs(self):
        choice, = self.ask(logprobs=True, top_logprobs=3)["choices"]
        content = choice["logprobs"]["content"]
        self.assertEqual(len(content), 8)
        for entry in content:
            self.assertLess(entry["logprob"], 0)
            self.assertEqual(len(entry["top_logprobs"]), 3)
            self.assertEqual(entry["top_logprobs"][0]["logprob"], entry["logprob"])  # greedy
        text = bytes(b for entry in content for b in entry["bytes"]).decode(errors="replace")
        self.assertEqual(text, choice["message"]["content"])

    def test_logit_bias_decides(self):
        choice, = self.ask(logit_bias={"65": 100}, max_tokens=4, logprobs=True)["choices"]
        self.assertEqual(len({e["token"] for e in choice["logprobs"]["content"]}), 1)

    def test_prefix_is_reported_as_cached(self):
        messages = [{"role": "user", "content": "A long prefix that is sent again. " * 6}]
        self.ask(messages=messages)
        usage = self.ask(messages=messages)["usage"]
        self.assertGreater(usage["prompt_tokens_details"]["cached_tokens"], 32)

    def test_service_tier_is_echoed(self):
        for given, used in [("auto", "default"), ("fast", "priority"), ("flex", "flex")]:
            self.assertEqual(self.ask(service_tier=given, max_tokens=1)["service_tier"], used)

    def test_content_parts_and_unknown_fields(self):
        parts = [{"type": "text", "text": "Hello there"}]
        whole = self.ask()["choices"][0]["message"]["content"]
        answer = self.ask(messages=[{"role": "user", "content": parts}], brand_new={"x": [1]})
        self.assertEqual(answer["choices"][0]["message"]["content"], whole)

    def test_wrong_fields_name_the_parameter(self):
        cases = [({}, "messages"), ({"messages": []}, "messages"), ({"messages": "x"}, "messages"),
                 ({"messages": [{"content": "x"}]}, "messages[0].role"),
                 ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
                 ({"messages": [{"role": "user"}]}, "messages[0].content"),
                 ({"messages": [3]}, "messages[0]"),
                 ({"messages": USER + [{"role": "assistant", "tool_calls": [CALL | {"id": 3}]}]},
                  "messages[1].tool_calls[0].id"),
                 ({"messages": USER + [{"role": "assistant", "reasoning_content": 3}]},
                  "messages[1].reasoning_content"),
                 ({"max_tokens": -5}, "max_tokens"), ({"max_tokens": 1.5}, "max_tokens"),
                 ({"temperature": "hot"}, "temperature"), ({"temperature": 3}, "temperature"),
                 ({"n": 0}, "n"), ({"n": 1000}, "n"), ({"stop": [1]}, "stop"),
                 ({"seed": "x"}, "seed"), ({"top_logprobs": 2}, "top_logprobs"),
                 ({"logit_bias": {"x": 1}}, "logit_bias"), ({"stream": "yes"}, "stream"),
                 ({"tools": [1]}, "tools[0]"), ({"tools": [{}]}, "tools[0].type"),
                 ({"tool_choice": "always"}, "tool_choice"),
                 ({"response_format": {"type": "yaml"}}, "response_format.type"),
                 ({"reasoning_effort": "ultra"}, "reasoning_effort"),
                 ({"service_tier": "gold"}, "service_tier"), ({"metadata": 5}, "metadata"),
                 ({"metadata": {"a": 5}}, "metadata"), ({"prediction": 5}, "prediction"),
                 ({"user": 5}, "user"), ({"store": 5}, "store"), ({"verbosity": "x"}, "verbosity"),
                 ({"functions": [{"name": "f"}]}, "functions"),
                 ({"function_call": {"name": "f"}}, "function_call")]
        for fields, param in cases:
            body = fields if "messages" in fields or not fields else {"messages": USER} | fields
            self.assertEqual(self.error(CHAT, body)["param"], param, body)
        image = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
        error = self.error(CHAT, {"messages": [{"role": "user", "content": image}]})
        self.assertEqual(error["param"], "messages[0].content[0].type")

    def test_harmless_old_fields_are_taken(self):
        for fields in [{"function_call": "auto"}, {"function_call": "none", "functions": []},
                       {"metadata": {"a": "b"}, "user": "u", "store": True, "verbosity": "low"}]:
            self.server.post(CHAT, {"messages": USER, "max_tokens": 1} | fields)

    def test_broken_bodies_are_the_clients_fault(self):
        for body in ["", "{", "[]", '{"a":1e400}', b'{"messages": "\xff"}', "[" * 100000]:
            self.error(CHAT, body)

    def test_unknown_model_and_too_long(self):
        error = self.error(CHAT, {"messages": USER, "model": "gpt-9"}, 404)
        self.assertEqual((error["code"], error["param"]), ("model_not_found", "model"))
        error = self.error(CHAT, {"messages": [{"role": "user", "content": "x" * 5000}]})
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertIn("maximum context length is 512 tokens", error["message"])


class CompletionTest(ServerCase):
    def ask(self, **fields):
        return self.server.post(TEXT, {"prompt": "Hello there", "max_tokens": 6,
                                       "ignore_eos": True, "temperature": 0} | fields)

    def test_answers_and_streams(self):
        answer = self.ask()
        self.assertEqual(answer["object"], "text_completion")
        text = answer["choices"][0]["text"]
        chunks = self.server.stream(TEXT, {"prompt": "Hello there", "max_tokens": 6,
                                           "ignore_eos": True, "temperature": 0,
                                           "stream_options": {"include_usage": True}})
        self.assertEqual("".join(c["choices"][0]["text"] for c in chunks[:-1]), text)
        self.assertEqual((chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]), ([], 6))

    def test_prompts_as_lists_and_tokens(self):
        one = self.ask(prompt=[5, 6, 7])["choices"][0]["text"]
        two = [c["text"] for c in self.ask(prompt=["Hello there", "Another"])["choices"]]
        mixed = [c["text"] for c in self.ask(prompt=[[5, 6, 7], "Another"])["choices"]]
        self.assertEqual(mixed, [one, two[1]])

    def test_echo_scores_the_prompt(self):
        answer = self.ask(echo=True, logprobs=2, max_tokens=0)
        choice, = answer["choices"]
        scores = choice["logprobs"]["token_logprobs"]
        self.assertEqual(choice["text"], "Hello there")
        self.assertEqual(len(scores), answer["usage"]["prompt_tokens"])
        self.assertIsNone(scores[0])
        self.assertTrue(all(score < 0 for score in scores[1:]))
        tops = choice["logprobs"]["top_logprobs"]
        self.assertIsNone(tops[0])
        self.assertEqual(tops[1:], [{token: score} for token, score in
                                    zip(choice["logprobs"]["tokens"][1:], scores[1:])])
        more = self.ask(echo=True, logprobs=2, max_tokens=3)["choices"][0]
        self.assertEqual(more["logprobs"]["token_logprobs"][:len(scores)], scores)
        self.assertEqual(len(more["logprobs"]["tokens"]), len(scores) + 3)
        self.assertTrue(more["text"].startswith("Hello there"))

    def test_text_offsets_are_those_of_the_text(self):
        for prompt in ["A ☃ and 漢字.", "x <|im_start|> y"]:
            choice, = self.ask(prompt=prompt, echo=True, logprobs=0)["choices"]
            text, scores = choice["text"], choice["logprobs"]
            self.assertTrue(text.startswith(prompt))
            ends = scores["text_offset"][1:] + [len(text)]
            for token, begin, end in zip(scores["tokens"], scores["text_offset"], ends):
                if "\ufffd" not in token:
                    self.assertEqual(text[begin:end], token)
            alone, = self.ask(prompt=prompt, logprobs=0)["choices"]
            n_tokens = len(alone["logprobs"]["tokens"])
            self.assertEqual(alone["logprobs"]["text_offset"],
                             [end - len(prompt) for end in scores["text_offset"][-n_tokens:]])

    def test_the_answers_first_space_stays(self):
        """Of tokenizers that mark words by their spaces and drop that of a text's first word."""
        letters = [chr(c) for c in range(97, 123)]
        words = ["<unk>", "<s>", "</s>", "▁", *letters, *("▁" + c for c in letters)]
        tokenizer = {
            "version": "1.0", "added_tokens": [], "pre_tokenizer": None, "post_processor": None,
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": {"type": "BPE", "vocab": {word: i for i, word in enumerate(words)},
                      "merges": [["▁", c] for c in letters]}}
        with tempfile.TemporaryDirectory() as folder:
            for name in ["config.json", "model.safetensors"]:
                shutil.copy(GOLDEN / "mistral" / name, folder)
            (Path(folder) / "tokenizer.json").write_text(json.dumps(tokenizer))
            server = Server("--model", folder, "--threads", 1)
            fields = {"prompt": "go", "max_tokens": 2, "logprobs": 0,
                      "logit_bias": {str(words.index("▁a")): 100}}
            choice, = server.post(TEXT, fields)["choices"]
            echoed, = server.post(TEXT, fields | {"echo": True})["choices"]
            self.assertEqual(server.stop(), 0)
        self.assertEqual((choice["text"], choice["logprobs"]["text_offset"]), (" a a", [0, 2]))
        self.assertEqual((echoed["text"], echoed["logprobs"]["text_offset"]),
                         ("go a a", [0, 1, 2, 4]))

    def test_best_of_gives_the_likeliest(self):
        fields = {"temperature": 1.5, "seed": 3, "logprobs": 0}
        def mean(choice):
            scores = choice["logprobs"]["token_logprobs"]
            return sum(scores) / len(scores)
        best = mean(self.ask(best_of=4, **fields)["choices"][0])
        every = [mean(choice) for choice in self.ask(n=4, **fields)["choices"]]
        self.assertAlmostEqual(best, max(every), places=5)

    def test_wrong_fields_name_the_parameter(self):
        for fields, param in [({"prompt": None}, "prompt"), ({"prompt": []}, "prompt"),
                              ({"prompt": [1, "x"]}, "prompt"), ({"prompt": [999999]}, "prompt"),
                              ({"prompt": ["x"] * 5000}, "prompt"), ({"suffix": "x"}, "suffix"),
                              ({"best_of": 1, "n": 2}, "best_of"),
                              ({"max_tokens": 0}, "max_tokens"), ({"logprobs": True}, "logprobs"), ({"prompt": {"a": 1}}, "prompt")]:
            self.assertEqual(self.error(TEXT, {"prompt": "x"} | fields)["param"], param, fields)


class EmbeddingTest(ServerCase):
    TEXTS = ["Hello there", "A somewhat longer text, of several words. " * 8, "x"]

    def ask(self, status=200, server=None, **fields):
        return (server or self.server).post(EMBEDDINGS, {"input": self.TEXTS} | fields, status)

    def vectors(self, **fields):
        return [entry["embedding"] for entry in self.ask(**fields)["data"]]

    def test_shape_and_usage(self):
        answer = self.ask(model="tiny")
        self.assertEqual((answer["object"], answer["model"]), ("list", "tiny"))
        self.assertEqual([(entry["object"], entry["index"]) for entry in answer["data"]],
                         [("embedding", i) for i in range(3)])
        counts = [self.ask(input=text)["usage"]["prompt_tokens"] for text in self.TEXTS]
        self.assertEqual(answer["usage"], {"prompt_tokens": sum(counts),
                                           "total_tokens": sum(counts)})
        for entry in answer["data"]:
            self.assertEqual(len(entry["embedding"]), 64)
            self.assertAlmostEqual(sum(x * x for x in entry["embedding"]), 1, places=5)

    def test_the_same_bits_in_any_company(self):
        together = self.vectors()
        for pooling in ["mean", "last"]:
            alone = [self.vectors(input=text, pooling=pooling)[0] for text in self.TEXTS]
            self.assertEqual(self.vectors(pooling=pooling), alone)
            self.assertEqual(alone == together, pooling == "mean")
        with ThreadPoolExecutor(6) as pool:
            self.assertTrue(all(v == together for v in pool.map(lambda _: self.vectors(), range(12))))
        other = Server("--model", GOLDEN / "llama/model.gguf", "--threads", 1, "--stages", 3,
                       "--chunk", 7)
        self.addCleanup(other.stop)
        self.assertEqual(self.vectors(server=other), together)

    def test_texts_tokens_and_base64_are_one(self):
        tokens = [5, 6, 7]
        one = self.vectors(input=tokens)
        self.assertEqual(self.vectors(input=[tokens, "x"])[:1], one)
        packed = base64.b64decode(self.vectors(input=tokens, encoding_format="base64")[0])
        self.assertEqual(struct.pack("<64f", *one[0]), packed)

    def test_wrong_fields_name_the_parameter(self):
        for fields, param in [({"input": None}, "input"), ({"input": []}, "input"),
                              ({"input": [1, "x"]}, "input"), ({"input": [[]]}, "input"),
                              ({"input": [999999]}, "input"), ({"input": ["x"] * 3000}, "input"),
                              ({"dimensions": 32}, "dimensions"), ({"pooling": "max"}, "pooling"),
                              ({"encoding_format": "int8"}, "encoding_format")]:
            self.assertEqual(self.ask(400, **fields)["error"]["param"], param, fields)
        error = self.ask(400, input=["x", "word " * 600])["error"]
        self.assertEqual((error["code"], error["param"]), ("context_length_exceeded", "input"))
        self.assertEqual(len(self.vectors(dimensions=64)[0]), 64)

    def test_a_client_that_goes_ends_it(self):
        text = json.dumps({"input": ["word " * 90] * 500})
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            client.sendall(f"POST {EMBEDDINGS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
                           f"\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
            self.server.wait_for("sluice_requests_open", 1)
        self.server.wait_for("sluice_requests_open", 0)
        self.assertGreater(self.server.metric("sluice_sequences_cancelled_total"), 100)


class ServiceTest(ServerCase):
    FLAGS = ("--max-users", 2, "--max-waiting", 2)
    # Long enough to be under way while others call.
    LONG = {"prompt": "x", "max_tokens": 450, "ignore_eos": True}

    def test_models_plan_metrics_and_document(self):
        get = lambda path: json.loads(self.server.send("GET", path)[2])
        model, = get("/v1/models")["data"]
        self.assertEqual((model["id"], model["object"], model["owned_by"], model["context_length"]),
                         ("tiny", "model", "sluice", 512))
        self.assertEqual(get("/v1/models/tiny"), model)
        self.assertEqual(get("/v1/models/%74iny"), model)
        for path in ["/v1/models/other", "/v1/models/"]:
            self.assertEqual(self.server.send("GET", path)[0], 404)
        self.assertEqual(get("/health"), {"status": "ready"})
        self.assertEqual(get("/v1/plan")["plan"]["n_blocks"], 6)
        self.assertIn(CHAT, get("/openapi.json")["paths"])
        self.server.post(TEXT, self.LONG | {"max_tokens": 5})
        self.assertGreaterEqual(self.server.metric("sluice_generated_tokens_total"), 5)
        self.assertGreaterEqual(
            self.server.metric("sluice_time_to_first_token_seconds_count"), 1)

    def test_statuses_and_busy_shares(self):
        name = 'sluice_http_responses_total{status="404"}'
        def count():
            text = self.server.send("GET", "/metrics")[2]
            return int((re.findall(rf"^{re.escape(name)} (\d+)$", text, re.MULTILINE) or [0])[0])
        before = count()
        for _ in range(3):
            self.server.send("GET", "/nothing")
        self.assertEqual(count(), before + 3)
        self.server.post(TEXT, self.LONG | {"max_tokens": 5})
        text = self.server.send("GET", "/metrics")[2]
        share, = re.findall(r'^sluice_stage_busy_ratio{model="tiny",stage="0"} (\S+)$', text,
                            re.MULTILINE)
        self.assertGreater(float(share), 0)
        self.assertLessEqual(float(share), 1)

    def test_wrong_routes_methods_and_types(self):
        for method, path, status in [("GET", "/nothing", 404), ("GET", CHAT, 405),
                                     ("DELETE", "/v1/models", 405), ("POST", "/health", 405)]:
            got, headers, text = self.server.send(method, path)
            self.assertEqual(got, status)
            self.assertIsNone(json.loads(text)["error"]["param"])
        self.error(CHAT, "{}", 415, headers={"Content-Type": "text/plain"})

    def test_full_queue_is_429_at_once(self):
        with ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(lambda _: self.server.send("POST", TEXT, self.LONG), range(24)))
        statuses = {status for status, _, _ in answers}
        self.assertEqual(statuses, {200, 429})
        refused = next(headers for status, headers, _ in answers if status == 429)
        self.assertEqual((refused["Retry-After"], refused["retry-after-ms"]), ("1", "1000"))
        self.server.wait_for("sluice_requests_open", 0)
        # Of four requests two had to wait for the others.
        self.assertGreater(self.server.metric("sluice_queue_wait_seconds_sum"), 0.01)
        self.assertGreaterEqual(self.server.metric("sluice_queue_wait_seconds_count"), 4)

    def test_clients_that_go_are_cancelled(self):
        for fields in [{"stream": True}, {}, {"n": 1}]:
            before = self.server.metric("sluice_sequences_cancelled_total")
            body = json.dumps(self.LONG | {"n": 100} | fields)
            connection = socket.create_connection(("127.0.0.1", self.server.port))
            connection.sendall(f"POST {TEXT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
                               f"\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            if fields != {"n": 1}:  # that one may have gone before it is looked at
                while self.server.metric("sluice_sequences_running") == 0:
                    time.sleep(0.01)
            connection.close()
            self.server.wait_for("sluice_requests_open", 0)
            self.server.wait_for("sluice_sequences_running", 0)
            if fields != {"n": 1}:
                self.assertGreater(self.server.metric("sluice_sequences_cancelled_total"), before)


class SeatTest(ServerCase):
    FLAGS = ("--max-users", 1, "--max-waiting", 0)

    def test_the_only_seat_is_free_when_an_answer_has_come(self):
        for _ in range(20):
            for max_tokens in [1, 2]:
                self.server.post(CHAT, {"messages": USER, "max_tokens": max_tokens})
            self.server.post(EMBEDDINGS, {"input": "x"})

    def test_the_only_seat_is_free_when_a_client_has_gone(self):
        body = json.dumps({"prompt": "word " * 90, "max_tokens": 1})
        with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
            connection.sendall(f"POST {TEXT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
                               f"\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        self.server.wait_for("sluice_requests_open", 0)
        self.server.post(TEXT, {"prompt": "x", "max_tokens": 1})


class LifeTest(unittest.TestCase):
    def start(self, *flags):
        server = Server("--model", GOLDEN / "llama/model.gguf", "--threads", 1, *flags)
        self.addCleanup(server.process.kill)
        return server

    def test_keys(self):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
            file.write("first\nsecond\n")
            file.flush()
            server = self.start("--api-key-file", file.name)
        try:
            self.assertEqual(server.send("GET", "/health")[0], 200)
            for key, status in [("Bearer first", 200), ("bearer second", 200), ("Bearer firs", 401),
                                ("Bearer firstfirst", 401), ("Bearer ", 401), ("first", 401)]:
                got = server.send("GET", "/v1/models", headers={"Authorization": key})[0]
                self.assertEqual(got, status, key)
            error = server.post(CHAT, {"messages": USER}, 401)["error"]
            self.assertEqual(error["code"], "invalid_api_key")
        finally:
            self.assertEqual(server.stop(), 0)

    def test_says_what_is_wrong(self):
        server = self.start()
        try:
            command = [SLUICE, "serve", "--model", GOLDEN / "llama/model.gguf", "--port",
                       str(server.port)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"127.0.0.1:{server.port}: cannot listen", done.stderr)
        finally:
            server.stop()
        done = subprocess.run([SLUICE, "serve", "--port", "0", "--model", "/no/such.gguf"],
                              capture_output=True, text=True, timeout=60 * PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such.gguf", done.stderr)


@unittest.skipUnless(DEFAULT_MODEL.exists(), "SKIPPED: the default model is not there")
class DefaultModelTest(unittest.TestCase):
    def test_answers_like_the_command_line(self):
        server = Server("--model", DEFAULT_MODEL)
        try:
            messages = [{"role": "user", "content": "What is the capital of France?"}]
            answer = server.post(CHAT, {"messages": messages, "temperature": 0, "max_tokens": 20})
            command = [SLUICE, "run", "--json", "--model", DEFAULT_MODEL, "-n", "20",
                       messages[0]["content"]]
            run = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            self.assertEqual(answer["choices"][0]["message"]["content"], run["text"])
            self.assertEqual(answer["usage"]["prompt_tokens"], run["prompt_tokens"])
        finally:
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    SLUICE, GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
