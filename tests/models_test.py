#!/usr/bin/env python3
"""Several models, tiers and keys of `sluice serve`, over HTTP.

Usage: models_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

from concurrent.futures import ThreadPoolExecutor
import json
from pathlib import Path
import subprocess
import sys
import tempfile
import time
import unittest

import serve_test
from serve_test import CHAT, DEFAULT_MODEL, TEXT, USER, Server

TIERS = {
    "gpt-5.6": "gpt-5.6-sol",
    "gpt-5.6-sol": {"model": "big", "effort": "high", "context": 300, "max_tokens": 7,
                    "temperature": 0.25, "top_p": 0.5, "frequency_penalty": 2,
                    "price": {"input": 5, "cached": 0.5, "output": 30, "priority": 2}},
    "gpt-5.6-luna": {"model": "small"},
}


def write_file(case, text):
    file = tempfile.NamedTemporaryFile("w", suffix=".txt")
    case.addCleanup(file.close)
    file.write(text)
    file.flush()
    return file.name


class ModelsTest(unittest.TestCase):
    def start(self, *flags):
        server = Server("--threads", 1, *flags)
        self.addCleanup(server.process.kill)
        self.addCleanup(server.stop)
        return server

    def start_two(self, *flags):
        return self.start("--model", f"{serve_test.GOLDEN / 'llama/model.gguf'},small", "--model",
                          f"{serve_test.GOLDEN / 'granite-4-hybrid/model.gguf'},big", "--tiers",
                          write_file(self, json.dumps(TIERS)), *flags)

    def test_each_name_reaches_its_model(self):
        server = self.start_two()
        listed = json.loads(server.send("GET", "/v1/models")[2])["data"]
        roots = {entry["id"]: entry["root"] for entry in listed}
        self.assertEqual(roots, {"small": "small", "big": "big", "gpt-5.6": "big",
                                 "gpt-5.6-sol": "big", "gpt-5.6-luna": "small"})
        sol = json.loads(server.send("GET", "/v1/models/gpt-5.6-sol")[2])
        self.assertEqual((sol["context_length"], sol["default_effort"], sol["price"]["cached"]),
                         (300, "high", 0.5))
        body = {"prompt": "Hello there", "max_tokens": 6, "ignore_eos": True, "temperature": 0}
        answers = {name: server.post(TEXT, body | ({"model": name} if name else {}))
                   for name in ["", *roots]}
        texts = {name: answer["choices"][0]["text"] for name, answer in answers.items()}
        self.assertNotEqual(texts["small"], texts["big"])
        for name, root in roots.items():
            self.assertEqual(texts[name], texts[root])
        self.assertEqual(texts[""], texts["small"])
        self.assertEqual(answers["gpt-5.6"]["model"], "gpt-5.6-sol")
        error = server.post(TEXT, body | {"model": "gpt-9"}, 404)["error"]
        self.assertEqual((error["code"], error["param"]), ("model_not_found", "model"))
        self.assertEqual(server.post(TEXT, body | {"model": 3}, 400)["error"]["param"], "model")
        for query in ["model=big", "x=y&model=b%69g"]:
            plan = json.loads(server.send("GET", f"/v1/plan?{query}")[2])
            self.assertEqual(plan["model"], "big")
        metrics = server.send("GET", "/metrics")[2]
        for name in ["small", "big"]:
            self.assertRegex(metrics, f'sluice_generated_tokens_total{{model="{name}"}} [1-9]')
        self.assertEqual(metrics.count("# TYPE sluice_generated_tokens_total"), 1)

    def test_a_tier_has_its_own_sampling(self):
        server = self.start_two()
        for model, sampling in [("gpt-5.6", (0.25, 0.5)), ("big", (1, 1)), ("small", (1, 1))]:
            answer = server.post("/v1/responses",
                                 {"input": "Hi", "max_output_tokens": 1, "model": model})
            self.assertEqual((answer["temperature"], answer["top_p"]), sampling)
            self.assertEqual(answer["frequency_penalty"], 2 if model == "gpt-5.6" else 0)
        answer = server.post("/v1/responses", {"input": "Hi", "max_output_tokens": 1,
                                               "model": "gpt-5.6", "frequency_penalty": 0})
        self.assertEqual(answer["frequency_penalty"], 0)

    def test_a_tier_has_its_own_limits(self):
        server = self.start_two()
        body = {"messages": USER, "ignore_eos": True, "model": "gpt-5.6"}
        self.assertEqual(server.post(CHAT, body)["usage"]["completion_tokens"], 7)
        long = body | {"messages": [{"role": "user", "content": "x" * 5000}]}
        error = server.post(CHAT, long, 400)["error"]
        self.assertIn("maximum context length is 300 tokens", error["message"])

    def test_models_answer_at_the_same_time(self):
        server = self.start_two()
        body = {"prompt": "x", "max_tokens": 200, "ignore_eos": True, "temperature": 0}
        names = ["small", "big"] * 4
        with ThreadPoolExecutor(len(names)) as pool:
            answers = list(pool.map(lambda name: server.post(TEXT, body | {"model": name}), names))
        for name, answer in zip(names, answers):
            self.assertEqual(answer["usage"]["completion_tokens"], 200)
            self.assertEqual(answer["choices"][0]["text"], answers[names.index(name)]["choices"][0]["text"])

    def test_wrong_flags(self):
        model = serve_test.GOLDEN / "llama/model.gguf"
        for flags, message in [
                (["--model", model, "--model", model], "--model: model: expected a name for each"),
                (["--model", model, "--tiers", write_file(self, "{")], "parse error"),
                (["--model", model, "--tiers", write_file(self, '{"a": "b"}')],
                 'a: expected a model or tier, got "b"'),
                (["--model", model, "--api-key-file", write_file(self, "k seats=x")],
                 'line 1: seats: expected a number')]:
            done = subprocess.run([serve_test.SLUICE, "serve", "--port", "0", *flags], text=True,
                                  capture_output=True, timeout=60 * serve_test.PATIENCE)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(message, done.stderr)

    def test_seats(self):
        keys = write_file(self, "a name=ann seats=1\nb name=bob\nc seats=0\n")
        model = serve_test.GOLDEN / "llama/model.gguf"
        server = self.start("--model", model, "--api-key-file", keys, "--max-users", 1,
                            "--max-waiting", 0)
        with server_busy(server, "b"):
            body = {"prompt": "x", "max_tokens": 1}
            for key, status in [("b", 429), ("c", 429), ("a", 200)]:
                server.post(TEXT, body, status, headers={"Authorization": f"Bearer {key}"})
        server = self.start("--model", model, "--api-key-file", keys)
        for key, used in [("a", "priority"), ("b", "priority"), ("c", "default")]:
            answer = server.post(CHAT, {"messages": USER, "max_tokens": 1, "service_tier": "fast"},
                                 headers={"Authorization": f"Bearer {key}"})
            self.assertEqual(answer["service_tier"], used, key)

    @unittest.skipUnless(DEFAULT_MODEL.exists(), "SKIPPED: the default model is not there")
    def test_without_flags_the_default_model_is_served(self):
        server = self.start()
        self.assertEqual(server.model, DEFAULT_MODEL.stem)
        # What its model card recommends, and what the request says.
        for fields, sampling in [({}, (0.2, 0.9)), ({"temperature": 0.5}, (0.5, 0.9)),
                                 ({"top_p": 1}, (0.2, 1))]:
            answer = server.post("/v1/responses", {"input": "Hi", "max_output_tokens": 1} | fields)
            self.assertAlmostEqual(answer["temperature"], sampling[0], 5)
            self.assertAlmostEqual(answer["top_p"], sampling[1], 5)


class server_busy:
    """While it is open, a long answer for `key` is under way."""

    def __init__(self, server, key):
        self.server, self.key = server, key

    def __enter__(self):
        self.pool = ThreadPoolExecutor(1)
        body = {"prompt": "x", "max_tokens": 480, "ignore_eos": True, "n": 100}
        self.running = self.pool.submit(self.server.send, "POST", TEXT, body,
                                        {"Authorization": f"Bearer {self.key}"})
        end = time.time() + 10
        while "sluice_requests_open 1" not in self.server.send(
                "GET", "/metrics", headers={"Authorization": f"Bearer {self.key}"})[2]:
            if time.time() > end:
                raise AssertionError("the answer is not under way")
            time.sleep(0.01)

    def __exit__(self, *_):
        self.running.result()
        self.pool.shutdown()


if __name__ == "__main__":
    serve_test.SLUICE, serve_test.GOLDEN = sys.argv[1], Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
