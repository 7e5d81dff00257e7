"""llama.cpp: built from the source inside the Python package llama-cpp-python, and its tools."""

import json
from pathlib import Path
import subprocess
import sys
import tarfile

import process

PACKAGE = "llama-cpp-python"
TOOLS = ["llama-bench", "llama-batched-bench", "llama-completion", "llama-quantize"]
CMAKE = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF",
         "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_APP=OFF",
         "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_OPENSSL=OFF"]


def logged(command, log):
    with open(log, "a") as file:
        done = subprocess.run([str(word) for word in command], stdout=file,
                              stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise process.Failed(f"{command[0]} failed; see {log}")


def source(work):
    """The unpacked package in `work`, downloaded if no version of it is there."""
    if not (found := sorted(work.glob("llama_cpp_python-*.tar.gz"))):
        print(f"fetching the source of {PACKAGE}", file=sys.stderr)
        logged([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary",
                PACKAGE, "--dest", work, PACKAGE], work / "fetch.log")
        found = sorted(work.glob("llama_cpp_python-*.tar.gz"))
    folder = work / found[-1].name.removesuffix(".tar.gz")
    if not folder.exists():
        with tarfile.open(found[-1]) as archive:
            archive.extractall(work)
    return folder


def build(work, tools=TOOLS):
    """Builds `tools` once; returns their folder and the version of the package."""
    folder = source(work)
    target = work / ("build-" + folder.name)
    if not all((target / "bin" / tool).exists() for tool in tools):
        print("building llama.cpp (about 10 minutes, once)", file=sys.stderr)
        log = work / "build.log"
        logged(["cmake", "-S", folder / "vendor/llama.cpp", "-B", target, "-G", "Ninja", *CMAKE],
               log)
        logged(["cmake", "--build", target, "--target", *tools], log)
    return target / "bin", folder.name.rpartition("-")[2]


class LlamaCpp:
    def __init__(self, work, threads):
        self.bin, self.version = build(work)
        self.threads = threads

    def _run(self, tool, model, *flags):
        return process.run([self.bin / tool, "-m", model, "-t", self.threads, *flags])

    def bench(self, model, prompt=0, new=0, depth=0, flags=()):
        """Tokens a second of prefill (new=0) or of decode (prompt=0)."""
        done = self._run("llama-bench", model, "-p", prompt, "-n", new, "-d", depth, "-r", 1,
                         "-o", "jsonl", *flags)
        return json.loads(done.output)["avg_ts"]

    def decode_users(self, model, users, prompt, new, flags=()):
        """Tokens a second of all users together."""
        done = self._run("llama-batched-bench", model, "-c", users * (prompt + new), "-npp", prompt,
                         "-ntg", new, "-npl", users, "--output-format", "jsonl", *flags)
        return json.loads(done.output)["speed_tg"]

    def first_token_s(self, model, prompt, flags=()):
        return self._run("llama-completion", model, "-p", prompt, "-n", 1, "-c", 512, "--temp", 0,
                         "-no-cnv", "--no-display-prompt", "--ignore-eos", *flags).first_byte_s

    def requantized(self, model, kind, target):
        """`model` with its matrices in another type, written to `target` once."""
        target = Path(target)
        if not target.exists():
            partial = target.with_suffix(".part")
            process.run([self.bin / "llama-quantize", "--allow-requantize", model, partial,
                         kind.upper()])
            partial.rename(target)
        return target
