#!/usr/bin/env python3
"""Runs bench/compare with stand-ins for every program it calls, whose speeds are known."""

import json
from pathlib import Path
import subprocess
import sys
import tempfile

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH))
import gguf
import make_model

SLUICE = """
import json, sys
flags = dict(zip(sys.argv[2::2], sys.argv[3::2]))
stages = int(flags.get("--stages", 1))
if sys.argv[1] == "run" and "--json" not in sys.argv:
    print("x")
elif sys.argv[1] == "run":
    print(json.dumps({"tokens": [1], "timings":
                      {"decode_tok_s": 300 if sys.argv[-1] == "ngram" else 100}}))
elif flags["--depth"] == "2048":
    sys.exit("sluice: no room")
else:
    print(json.dumps({"weight_bytes": 1 << 20, "cache_bytes": 0, "rows": [
        {"decode_tok_s": 200 / stages, "prefill_tok_s": 1000, "joins_per_layer": 4,
         "ms_per_token": {"compute": 4, "sync": 1, "wire": 0, "idle": 0}}]}))
"""
BANDWIDTH = """
import json, sys
print(json.dumps({"rows": [{"bytes": int(size), "gb_s": [8, 10, 12]} for size in sys.argv[2:]]}))
"""
LLAMA_BENCH = """
import json, sys
print(json.dumps({"avg_ts": 50 if "off" in sys.argv else 80}))
"""
LLAMA_BATCHED = 'print(\'{"speed_tg": 100}\')'
LLAMA_COMPLETION = "print('x')"


def program(path, code):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{code}")
    path.chmod(0o755)


def expect(condition, what, context):
    if not condition:
        sys.exit(f"FAILED: {what}\n{context}")


def test_model(path):
    make_model.write(path, layers=2)
    file = gguf.Reader(path)
    n_bytes = sum(gguf.tensor_bytes(*tensor) for tensor in file.tensors.values())
    embedding = gguf.tensor_bytes(*file.tensors["token_embd.weight"])
    expect(n_bytes < path.stat().st_size < n_bytes + 64 * 1024, "the file holds its tensors",
           f"{n_bytes} bytes of tensors, {path.stat().st_size} in all")
    expect(file.decode_bytes() == n_bytes - embedding, "an untied embedding is not read", n_bytes)
    expect(file.cache_bytes(10) == 2 * 10 * 2 * 4 * 64 * 2, "keys and values of 2 layers",
           file.cache_bytes(10))


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        model, found = work / "random-q4_0.gguf", work / "found.json"
        test_model(model)
        program(work / "sluice", SLUICE)
        program(work / "bandwidth", BANDWIDTH)
        (work / "llama_cpp_python-1.2.tar.gz").touch()
        (work / "llama_cpp_python-1.2").mkdir()
        tools = work / "build-llama_cpp_python-1.2/bin"
        for tool, code in (("bench", LLAMA_BENCH), ("batched-bench", LLAMA_BATCHED),
                           ("completion", LLAMA_COMPLETION), ("quantize", "")):
            program(tools / f"llama-{tool}", code)
        done = subprocess.run(
            [BENCH / "compare", "--work", work, "--model", model, "--repeat", "2", "--threads", "1",
             "--sluice", work / "sluice", "--bandwidth", work / "bandwidth", "--json", found],
            capture_output=True, text=True)
        context = done.stdout + done.stderr
        expect(done.returncode == 1 and "sluice: no room" in done.stdout,
               "a case that fails is named, and the others go on", context)
        cases = json.loads(found.read_text())["cases"]
        ratios = {name: [row["ratio"] for row in case["rows"]] for name, case in cases.items()}
        expect(ratios["decode"] == [2.5] and "llama.cpp: -fa 1" in done.stdout,
               "decode against the better of llama.cpp's variants", context)
        expect(ratios["prefill"] == [12.5] and ratios["users"] == [2], "prefill and users", context)
        expect(ratios["lookup"] == [3, 3] and ratios["cold"][0] > 0, "lookup, cold start", context)
        expect(cases["stages"]["rows"][0]["met"] is False and "MISSED" in done.stdout,
               "three times slower stages miss their bar", context)
        expect(len(ratios["neighbour"]) == 2 and "cache" in ratios, "every other case", context)
        tables = [line for line in done.stdout.splitlines() if "no room" not in line]
        expect(max(map(len, tables)) <= 80, "80 columns", context)
    print("bench/compare: passed")


if __name__ == "__main__":
    main()
