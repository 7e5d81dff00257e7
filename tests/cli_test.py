#!/usr/bin/env python3
"""Drives the built `sluice` over tests/golden: answers, logits, errors, help.

Usage: cli_test.py SLUICE GOLDEN_DIR [unittest arguments]
"""

import json
import os
from pathlib import Path
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

SLUICE, GOLDEN = "", Path()
TIMEOUT_S = 6000 if "SLUICE_SANITIZED" in os.environ else 300
COMMANDS = ["run", "chat", "serve", "bench", "inspect", "logits", "perplexity", "tokenize",
            "detokenize", "template", "pack", "simulate",
            "calibrate", "compare"]
# None of these may change a bit.
ARRANGEMENTS = [("--threads", "1"), ("--threads", "2"), ("--stages", "2"),
                ("--stages", "3", "--threads", "1"), ("--chunk", "7"), ("--chunk", "1"),
                ("--speculate", "off")]
if len(os.sched_getaffinity(0)) > 1:
    ARRANGEMENTS.append(("--stages", "2", "--threads", "2", "--split-cores"))
TEMPLATE = ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant:{% endif %}")


def read_safetensors(path):
    """name -> (shape, values)"""
    data = Path(path).read_bytes()
    n, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            first, last = t["data_offsets"]
            code = {"F32": "f", "I32": "i"}[t["dtype"]]
            values = struct.unpack(f"<{(last - first) // 4}{code}", data[8 + n + first:8 + n + last])
            tensors[name] = t["shape"], values
    return tensors


def sluice(*arguments, stdin="", code=0, env=None):
    """Runs the binary, demands its exit code, returns (standard output, standard error)."""
    command = [SLUICE, *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S,
                          env=None if env is None else os.environ | env)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(command)}: expected exit code {code}, got "
                             f"{done.returncode}: {done.stderr}")
    return done.stdout, done.stderr


def sluice_json(*arguments, **keywords):
    return json.loads(sluice(*arguments, "--json", **keywords)[0])


class Terminal:
    """The binary on a pseudo-terminal."""

    def __init__(self, arguments, env):
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.execve(SLUICE, [SLUICE, *map(str, arguments)], os.environ | {"TERM": "xterm"} | env)
        self.shown = b""

    def type(self, text):
        os.write(self.file, text.encode())

    def expect(self, text):
        """Waits until `text` is shown, and forgets what was shown up to it."""
        deadline = time.monotonic() + 20
        while text.encode() not in self.shown:
            ready, _, _ = select.select([self.file], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"expected {text!r}, saw {self.shown!r}")
            self.shown += os.read(self.file, 4096)
        self.shown = self.shown.split(text.encode(), 1)[1]

    def end(self):
        """The exit code."""
        try:
            while os.read(self.file, 4096):
                pass
        except OSError:  # the other side is closed
            pass
        os.close(self.file)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def ids(tokens):
    return ",".join(map(str, tokens))


def golden_models():
    """(model, its expected tensors)"""
    for folder in sorted(p.parent for p in GOLDEN.glob("*/expected.safetensors")):
        if (folder / "model.safetensors").exists() and (folder / "config.json").exists():
            yield folder, read_safetensors(folder / "expected.safetensors")
        for gguf in sorted(folder.glob("*.gguf")):
            special = folder / f"expected{gguf.stem.removeprefix('model')}.safetensors"
            expected = special if special.exists() else folder / "expected.safetensors"
            yield gguf, read_safetensors(expected)


def text_model(folder):
    """Gives the tiny llama of tests/golden a tokenizer with one token per byte, and a template."""
    folder = Path(folder)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(GOLDEN / "llama" / name, folder)
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    names = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}
    tokenizer = {
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {names[b]: b for b in range(256)}, "merges": []}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return folder


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class Models(WithFolder):
    def logits(self, model, tokens, *flags):
        out = self.folder / "logits.safetensors"
        sluice("logits", "--model", model, "--tokens", ids(tokens), "--compute", "f32",
               "--out", out, *flags)
        return read_safetensors(out)["logits"]

    def greedy(self, model, tokens, n, *flags):
        return sluice_json("run", "--model", model, "--tokens", ids(tokens), "--max-tokens", n,
                           "--temperature", 0, "--ignore-eos", "--compute", "f32", *flags)

    def test_logits_and_greedy_tokens(self):
        n_models = 0
        for model, expected in golden_models():
            with self.subTest(model=str(model.relative_to(GOLDEN))):
                prompt, (shape, want) = expected["prompt"][1], expected["logits"]
                got_shape, got = self.logits(model, prompt)
                self.assertEqual(got_shape, shape)
                error = sum((a - b) ** 2 for a, b in zip(got, want))
                self.assertLessEqual(error / sum(b * b for b in want), 1e-9)
                greedy = list(expected["greedy"][1])
                answer = self.greedy(model, prompt, len(greedy))
                self.assertEqual(answer["tokens"], greedy)
                self.assertEqual(answer["prompt_tokens"], len(prompt))
                self.assertEqual(answer["finish_reason"], "length")
                n_models += 1
        self.assertGreaterEqual(n_models, 10)

    def test_arrangements_change_no_bit(self):
        for name in ("llama/model.gguf", "qwen3-moe", "granite-4-hybrid"):
            model = GOLDEN / name
            folder = model if model.is_dir() else model.parent
            expected = read_safetensors(folder / "expected.safetensors")
            prompt, greedy = expected["prompt"][1], list(expected["greedy"][1])
            logits = self.logits(model, prompt)
            for flags in ARRANGEMENTS:
                with self.subTest(model=name, flags=" ".join(flags)):
                    answer = self.greedy(model, prompt, len(greedy), *flags)
                    self.assertEqual(answer["tokens"], greedy)
                    self.assertEqual(self.logits(model, prompt, *flags), logits)

    def test_sampling_with_a_seed_is_the_same_everywhere(self):
        model, prompt = GOLDEN / "granite-4-hybrid", [5, 6, 7, 8, 5, 6, 7, 8, 5, 6]
        draw = lambda seed, *flags: sluice_json(
            "run", "--model", model, "--tokens", ids(prompt), "--max-tokens", 40, "--temperature",
            1, "--seed", seed, "--ignore-eos", *flags)["tokens"]
        one = draw(1)
        self.assertNotEqual(one, draw(2))
        for flags in ARRANGEMENTS:
            self.assertEqual(draw(1, *flags), one, flags)

    def test_plan(self):
        model = GOLDEN / "llama"
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"n_blocks": 6, "stages": [
            {"name": "mixers", "blocks": [[0, 1], [2, 3], [4, 5]]},
            {"name": "others", "blocks": [[1, 2], [3, 4], [5, 6]], "head": True}]}))
        answer = self.greedy(model, [1, 2, 3], 8, "--plan", plan)
        self.assertEqual(answer["tokens"], self.greedy(model, [1, 2, 3], 8)["tokens"])
        self.assertEqual([s["name"] for s in answer["timings"]["stages"]], ["mixers", "others"])
        result = sluice_json("bench", "--model", model, "--plan", plan, "--prompt-tokens", 8,
                             "--new-tokens", 4, "--repeat", 1)
        self.assertEqual(result["stages"], 2)
        plan.write_text('{"n_blocks": 5, "stages": []}')
        _, error = sluice("run", "--model", model, "--tokens", "1", "--plan", plan, code=1)
        self.assertIn("plan", error)

    def test_packed_folder_gives_the_same_bits(self):
        prompt = [3, 1, 4, 1, 5, 9, 2, 6]
        for name in ("llama-kquants/model.gguf", "granite-4-hybrid", "qwen3-moe/model-q8_0.gguf"):
            packed = self.folder / name.replace("/", "-")
            sluice("pack", "--model", GOLDEN / name, "--out", packed)
            self.assertEqual(self.logits(packed, prompt), self.logits(GOLDEN / name, prompt), name)
            self.assertEqual(self.greedy(packed, prompt, 8, "--stages", 2)["tokens"],
                             self.greedy(GOLDEN / name, prompt, 8)["tokens"])
            weights = packed / "packed.safetensors"
            data = weights.read_bytes()
            self.assertIn(b'"sluice.layout":"1"', data)
            weights.write_bytes(data.replace(b'"sluice.layout":"1"', b'"sluice.layout":"0"', 1))
            _, error = sluice("run", "--model", packed, "--tokens", "1", code=1)
            self.assertIn("pack the model again", error)
            weights.write_bytes(data[:-70])
            _, error = sluice("run", "--model", packed, "--tokens", "1", code=1)
            self.assertIn("packed.safetensors", error)

    def test_bench(self):
        result = sluice_json("bench", "--model", GOLDEN / "llama", "--users", "1,2",
                             "--prompt-tokens", 40, "--new-tokens", 20, "--depth", 64,
                             "--repeat", 2)
        self.assertEqual([row["users"] for row in result["rows"]], [1, 2])
        for row in result["rows"]:
            self.assertGreater(row["prefill_tok_s"], 0)
            self.assertGreater(row["decode_tok_s"], 0)
            self.assertLessEqual(row["decode"]["min"], row["decode"]["max"])
            self.assertEqual(set(row["ms_per_token"]), {"compute", "sync", "wire", "idle"})
            self.assertGreater(row["read_bytes_per_token"], 0)
            self.assertGreater(row["bandwidth_gb_s"], 0)
        table, _ = sluice("bench", "--model", GOLDEN / "llama", "--prompt-tokens", 8,
                          "--new-tokens", 4, "--repeat", 1)
        self.assertLessEqual(max(map(len, table.splitlines())), 80)

    def test_inspect(self):
        report = sluice_json("inspect", "--model", GOLDEN / "qwen3-moe", "--tensors")
        self.assertEqual(report["model"]["architecture"], "Qwen3MoeForCausalLM")
        self.assertEqual({k["kind"] for k in report["model"]["blocks"]}, {"attention", "experts"})
        model = report["model"]
        self.assertLess(model["read_bytes_per_token"], model["weight_bytes"])
        self.assertIsNone(report["tokenizer"])
        self.assertTrue(report["tensors"])
        text, _ = sluice("inspect", "--model", GOLDEN / "llama" / "model.gguf")
        self.assertIn("LlamaForCausalLM", text)


class Texts(WithFolder):
    def setUp(self):
        super().setUp()
        self.model = text_model(self.folder)

    def test_run_streams_what_json_reports(self):
        flags = ("run", "--model", self.model, "--max-tokens", 12, "--ignore-eos", "Hello")
        answer = sluice_json(*flags)
        text, table = sluice(*flags)
        self.assertEqual(text.rstrip("\n"), answer["text"].rstrip("\n"))
        self.assertEqual(len(answer["tokens"]), 12)
        self.assertEqual(answer["prompt_tokens"], len("user: Hello\nassistant:"))
        self.assertIn("joins per layer", table)
        self.assertLessEqual(max(map(len, table.splitlines())), 80)
        self.assertEqual(sluice(*flags, "--quiet")[1], "")
        self.assertEqual(sluice(*flags[:-1], stdin="Hello")[0], text)

    def test_run_raw_and_stop(self):
        flags = ("run", "--model", self.model, "--raw", "--max-tokens", 12, "--ignore-eos", "Hello")
        answer = sluice_json(*flags)
        self.assertEqual(answer["prompt_tokens"], len("Hello"))
        whole = answer["text"]
        stop = next(c for c in whole[2:] if c != "\ufffd")
        stopped = sluice_json(*flags, "--stop", stop)
        self.assertEqual(stopped["text"], whole[:whole.index(stop)])
        self.assertEqual(stopped["finish_reason"], "stop")

    def test_end_token(self):
        # The config's end token is 2; make it certain.
        answer = sluice_json("run", "--model", self.model, "--tokens", "5", "--logit-bias", "2=1000")
        self.assertEqual((answer["tokens"], answer["text"]), ([2], ""))
        self.assertEqual(answer["finish_reason"], "stop")
        answer = sluice_json("run", "--model", self.model, "--tokens", "5", "--logit-bias",
                             "2=1000", "--min-tokens", 3)
        self.assertEqual(len(answer["tokens"]), 4)

    def test_logprobs(self):
        answer = sluice_json("run", "--model", self.model, "--tokens", "5,6", "--max-tokens", 3,
                             "--ignore-eos", "--logprobs", 2)
        for token, score in zip(answer["tokens"], answer["logprobs"], strict=True):
            self.assertEqual(score["token"], token)
            self.assertEqual(score["top"][0]["token"], token)
            self.assertLess(score["top"][1]["logprob"], score["logprob"] + 1e-6)

    def test_perplexity_is_that_of_the_logits(self):
        from math import exp, log
        text = "".join(chr(97 + i * i % 26) for i in range(64))
        (self.folder / "text").write_text(text)
        result = sluice_json("perplexity", "--model", self.model, "--file", self.folder / "text",
                             "--context", 32, "--compute", "f32")
        self.assertEqual((result["windows"], result["tokens"]), (2, 2 * 15))
        total = 0
        for window in (text[:32], text[32:]):
            out = self.folder / "logits"
            sluice("logits", "--model", self.model, "--prompt", window, "--compute", "f32",
                   "--out", out)
            (_, n_vocab), values = read_safetensors(out)["logits"]
            for position in range(16, 31):
                row = values[position * n_vocab:(position + 1) * n_vocab]
                top = max(row)
                total += top + log(sum(exp(v - top) for v in row)) - row[ord(window[position + 1])]
        self.assertAlmostEqual(result["perplexity"], exp(total / 30), delta=1e-3 * exp(total / 30))

    def test_tokenize_there_and_back(self):
        self.assertEqual(sluice_json("tokenize", "--model", self.model, "--text", "Hi é"),
                         {"tokens": [72, 105, 32, 195, 169]})
        self.assertEqual(sluice_json("detokenize", "--model", self.model, "--tokens", "72,105,195"),
                         {"text": "Hi\ufffd"})
        _, error = sluice("detokenize", "--model", self.model, "--tokens", "72,256", code=1)
        self.assertIn("--tokens: expected ids below 256, got 256", error)
        lines, _ = sluice("detokenize", "--tokenizer", self.model / "tokenizer.json", "--jsonl",
                          stdin="[72]\n[72,-1]\n")
        text, unknown = map(json.loads, lines.splitlines())
        self.assertEqual(text, "H")
        self.assertIn("got -1", unknown["error"])
        lines, _ = sluice("tokenize", "--tokenizer", self.model / "tokenizer.json", "--jsonl",
                          stdin='"a"\n5\n{\n"b"\n')
        first, number, broken, last = map(json.loads, lines.splitlines())
        self.assertEqual((first, last), ([97], [98]))
        self.assertIn("error", number)
        self.assertIn("error", broken)

    def test_template(self):
        messages = self.folder / "messages.json"
        messages.write_text('[{"role": "user", "content": "Hi"}]')
        self.assertEqual(sluice("template", "--model", self.model, "--messages", messages)[0],
                         "user: Hi\nassistant:")
        jinja = self.folder / "t.jinja"
        jinja.write_text("{{ greeting }} {{ messages[0].content }} {{ on }}")
        text, _ = sluice("template", "--template", jinja, "--messages", messages,
                         "--var", "greeting=Hello", "--var", "on=true")
        self.assertEqual(text, "Hello Hi True")
        lines, _ = sluice("template", "--jsonl", stdin=json.dumps(
            {"template": TEMPLATE, "messages": [{"role": "user", "content": "é\u2028"}]}) + "\n" +
            json.dumps({"template": "{% if %}", "messages": []}) + "\n")
        text, error = map(json.loads, lines.splitlines())
        self.assertEqual(text, "user: é\u2028\n")
        self.assertIn("error", error)

    def test_chat_keeps_the_conversation_in_the_cache(self):
        lines, _ = sluice("chat", "--model", self.model, "--json", "--max-tokens", 4, "--ignore-eos",
                          stdin="Tell me a rather long story about a fox\nAnd then?\n/reset\nHi\n")
        first, second, third = map(json.loads, lines.splitlines())
        self.assertEqual(first["cached_tokens"], 0)
        self.assertGreaterEqual(second["cached_tokens"], 32)
        self.assertGreater(second["prompt_tokens"], first["prompt_tokens"])
        self.assertEqual(third["prompt_tokens"], len("user: Hi\nassistant:"))

    def test_chat_at_a_terminal_edits_lines_and_remembers_them(self):
        with tempfile.TemporaryDirectory() as state:
            terminal = Terminal(["chat", "--model", self.model, "--max-tokens", 3, "--ignore-eos",
                                 "--temperature", 0], {"XDG_STATE_HOME": state})
            terminal.expect("> ")
            terminal.type("Tell mxy\x7f\x1b[D\x04e a story\r")  # backspace, left, delete
            terminal.expect("3 tokens at")
            terminal.expect("> ")
            terminal.type("dropped")
            terminal.expect("dropped")
            terminal.type("\x03")  # Ctrl-C
            terminal.expect("> ")
            terminal.type("é\r")
            terminal.expect("3 tokens at")
            terminal.expect("> ")
            terminal.type("\x1b[A\x1b[A\r")  # the line before the last one
            terminal.expect("3 tokens at")
            terminal.expect("> ")
            terminal.type(f"/save {state}/talk\r/exit\r")
            self.assertEqual(terminal.end(), 0)
            talk = json.loads(Path(state, "talk").read_text())
            self.assertEqual([m["content"] for m in talk if m["role"] == "user"],
                             ["Tell me a story", "é", "Tell me a story"])
            terminal = Terminal(["chat", "--model", self.model], {"XDG_STATE_HOME": state})
            terminal.expect("> ")
            terminal.type("\x1b[A")  # of the last time
            terminal.expect("/exit")
            terminal.type("\r")
            self.assertEqual(terminal.end(), 0)

    def test_interrupt_prints_what_there_is(self):
        process = subprocess.Popen(
            [SLUICE, "run", "--model", self.model, "--raw", "--ignore-eos", "--max-tokens",
             "1000000", "--cache-tokens", "512", "Hello", "--threads", "1", "--json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        # Either it was stopped in time, or the context of 512 tokens was full before.
        if process.returncode == 130 and output:
            self.assertEqual(json.loads(output)["finish_reason"], "cancelled")
        elif output:
            self.assertEqual(json.loads(output)["finish_reason"], "length")


class Simulate(WithFolder):
    def test_one_user_pays_every_stage_and_all_fill_them(self):
        stages = ["--stages", 10, "--stage-us", 20, "--hop-us", 5, "--output", 200]
        one = sluice_json("simulate", *stages, "--users", 1, "--requests", 2)
        self.assertAlmostEqual(one["tpot_ms"]["p50"], 0.25, places=3)
        ten = sluice_json("simulate", *stages, "--users", 13, "--requests", 26)
        self.assertGreater(ten["output_tok_s"], 0.9e6 / 20)
        self.assertEqual([s["stage"] for s in ten["stages"]], [f"stage {i}" for i in range(10)])

    def test_saturation_is_said_instead_of_a_time(self):
        load = ["simulate", "--stages", 2, "--stage-us", 1000, "--rate", 1000, "--max-users", 4]
        report = sluice_json(*load)
        self.assertTrue(report["saturated"])
        self.assertIsNone(report["ttft_ms"])
        self.assertIsNotNone(report["tpot_ms"])
        self.assertIn("saturated", sluice(*load)[0])

    def test_compare_forms_the_same_batches(self):
        report = sluice_json("compare", "--model", GOLDEN / "llama", "--users", "1,3",
                             "--prompt", 40, "--output", 8, "--requests", 2, "--stages", 2)
        for row, users in zip(report["rows"], (1, 3)):
            self.assertEqual(row["users"], users)
            self.assertTrue(row["same_batches"])
            self.assertGreater(row["tpot_ms"]["measured"], 0)
            self.assertGreater(row["tpot_ms"]["predicted"], 0)

    def test_compare_knows_how_little_the_cache_holds(self):
        load = ["compare", "--model", GOLDEN / "llama", "--users", "3", "--prompt", 40, "--output",
                8, "--requests", 2, "--threads", 1]
        roomy, tight = (sluice_json(*load, *flags)["rows"][0]
                        for flags in ([], ["--cache-tokens", 64]))  # one request at a time
        self.assertTrue(tight["same_batches"])
        self.assertGreater(tight["batches"], 2 * roomy["batches"])

    def test_calibrate_writes_a_profile_that_compare_reads(self):
        host = self.folder / "host.json"
        flags = ["compare", "--model", GOLDEN / "llama", "--output", 4, "--prompt", 8]
        sluice("calibrate", "--types", "F32", "--quick", "-o", host)
        self.assertIn("BF16", sluice(*flags, "--host", host, code=1)[1])
        sluice("calibrate", "--types", "BF16", "--quick", "-o", host)
        profile = json.loads(host.read_text())
        self.assertTrue(all(m["us_per_mb"] > 0 for m in profile["matmul"]))
        self.assertEqual(len(sluice_json(*flags, "--host", host)["rows"]), 2)
        profile["norm"]["fixed_us"] = "fast"
        host.write_text(json.dumps(profile))
        self.assertIn("fixed_us", sluice(*flags, "--host", host, code=1)[1])

    def test_compare_refuses_what_does_not_fit_before_it_measures(self):
        plan, host = self.folder / "plan.json", self.folder / "host.json"
        flags = ["compare", "--model", GOLDEN / "llama"]
        cases = [
            (["--prompt", 100000], "--prompt, --output: expected at most", 2),
            (["--max-users", 4], "--max-users: unknown flag", 2),
            (["--speculate", "ngram"], "--speculate: expected off; random text", 2),
            (["--cache-tokens", 100], "at most 96 tokens together, the pages of --cache-tokens", 2),
            (["--plan", plan], "plan.json: n_blocks: expected 6 for this model, got 64; it is a plan "
                               "for Llama-3.1-8B", 1),
        ]
        sluice("plan", "Llama-3.1-8B", "--on", "H100", "-o", plan)
        placed = json.loads(plan.read_text())
        same_blocks = self.folder / "same_blocks.json"
        same_blocks.write_text(json.dumps({
            "model": placed["model"], "n_blocks": 6,
            "stages": [{"name": "all", "blocks": [[0, 6]], "head": True}]}))
        cases.append((["--plan", same_blocks],
                      "same_blocks.json: model: expected one with vectors of", 1))
        sluice("calibrate", "--types", "F32", "--quick", "--threads", 1, "-o", host)
        profile = json.loads(host.read_text())
        for key, wrong in (("isa", "other"), ("threads", 99), ("compute", "f32"),
                           ("cache", "f32")):
            other = self.folder / f"{key}.json"
            other.write_text(json.dumps(profile | {key: wrong}))
            cases.append((["--threads", 1, "--host", other], f"{key}.json: {key}: expected", 1))
        for words, message, code in cases:
            output, error = sluice(*flags, *words, code=code)
            self.assertIn(message, error)
            self.assertEqual(output, "")

    def test_simulate_serves_what_plan_placed(self):
        plan = self.folder / "plan.json"
        for model, hardware in (("Llama-3.1-8B", "H100"), ("Kimi-K3", "CS-3")):
            best = sluice_json("plan", model, "--on", hardware, "--users", 1, "--context", 512,
                               "--output", 64, "-o", plan)["best"]
            report = sluice_json("simulate", "--plan", plan, "--users", 1, "--requests", 4,
                                 "--output", 64)
            self.assertEqual(report["requests"], 4)
            expected_ms = 1000 / best["tokens_per_s_per_user"]
            self.assertAlmostEqual(report["tpot_ms"]["mean"], expected_ms, delta=0.1 * expected_ms)
        plan.write_text('{"n_blocks": 4, "stages": []}')
        _, error = sluice("simulate", "--plan", plan, code=1)
        self.assertIn("plan.json: model", error)

    def test_trace_in_and_trace_out(self):
        out = self.folder / "out.json"
        report = sluice_json("simulate", "--stages", 2, "--stage-us", 50, "--trace", out,
                             "--workload", GOLDEN / "workload" / "trace.csv")
        self.assertEqual(report["requests"], 6)
        self.assertGreater(report["cached_share"], 0)
        events = json.loads(out.read_text())["traceEvents"]
        self.assertEqual(sum(e["ph"] == "X" for e in events), 2 * report["batches"])
        backwards = self.folder / "back.csv"
        backwards.write_text("arrival_s,prompt_tokens,output_tokens\n2,1,1\n1,1,1\n")
        _, error = sluice("simulate", "--stage-us", 1, "--workload", backwards, code=1)
        self.assertIn("back.csv: line 3: arrival_s: expected at least", error)


class Usage(WithFolder):
    def test_help(self):
        overview, _ = sluice("--help")
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", overview)
            text, _ = sluice(command, "--help")
            self.assertEqual(text, sluice("help", command)[0])
            self.assertIn(f"Usage: sluice {command}", text)
            self.assertGreaterEqual(text.count(f"sluice {command}", text.index("Examples:")), 2)
            # Examples may be longer; everything else fits a terminal.
            lines = text[:text.index("Examples:")].splitlines()
            self.assertLessEqual(max(map(len, lines)), 80, command)

    def test_suggestions(self):
        for arguments, expected in (
                (["rnu"], "did you mean run?"), (["tokenise"], "did you mean tokenize?"),
                (["run", "Hi", "--max-token", "3"], "did you mean --max-tokens?"),
                (["bench", "--user=3"], "did you mean --users?"),
                (["run", "--compute", "f16", "Hi"], "expected f32 or i8"),
                (["run", "two", "words"], "quote"),
                (["run", "Hi", "--tokens", "1"], "excludes"),
                (["run", "--tokens", "1;2"], "expected whole numbers"),
                (["logits", "--tokens", "1"], "--out"),
                (["bench", "--users", "0"], "--users"),
                (["tokenize"], "--text"), (["detokenize"], "--tokens"),
                (["simulate"], "--stage-us"), (["simulate", "--rate", "nan"], "--rate"),
                (["simulate", "--rate", "1", "--users", "2"], "excludes"),
                (["template"], "--messages")):
            with self.subTest(arguments=arguments):
                output, error = sluice(*arguments, code=2)
                self.assertEqual(output, "")
                self.assertIn("sluice: error: ", error)
                self.assertIn(expected, error)
                self.assertIn("--help", error)

    def test_errors_name_the_cause(self):
        llama = ["--model", GOLDEN / "llama"]
        broken = self.folder / "broken.gguf"
        broken.write_bytes((GOLDEN / "llama" / "model.gguf").read_bytes()[:5000])
        for arguments, expected in (
                (["run", "Hi", "--model", "absent.gguf"], "absent.gguf"),
                (["run", "Hi", "--model", broken], "broken.gguf"),
                (["run", "Hi", *llama], "--tokens"),
                (["run", *llama, "--tokens", "256"], "expected 0 to 255, got 256"),
                (["run", *llama, "--tokens", ids(range(200)), "--cache-tokens", "64"], "200"),
                (["run", *llama, "--tokens", "1", "--plan", "absent.json"], "absent.json"),
                (["run", *llama, "--tokens", "1", "--stages", "9"], "9"),
                (["chat", *llama], "chat template"),
                (["tokenize", "--model", GOLDEN / "mistral", "--text", "Hi"], "mistral"),
                (["perplexity", "--file", "absent.txt", *llama], ""),
                (["logits", *llama, "--tokens", "1", "--out", "absent/logits"], "absent")):
            with self.subTest(arguments=arguments):
                output, error = sluice(*arguments, code=1)
                self.assertEqual(output, "")
                self.assertIn("sluice: error: ", error)
                self.assertIn(expected, error)

    def test_model_from_the_environment(self):
        answer = sluice_json("run", "--tokens", "1", "--max-tokens", 1,
                             env={"SLUICE_MODEL": str(GOLDEN / "llama")})
        self.assertEqual(len(answer["tokens"]), 1)


if __name__ == "__main__":
    SLUICE, GOLDEN = sys.argv[1], Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
