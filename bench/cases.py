"""The cases of bench/compare. Each takes the Bench and returns the Table of what it measured."""

import dataclasses
import json
from pathlib import Path
import statistics
import sys

import gguf
from llama_cpp import LlamaCpp
import process
from report import Row, Table, short
from sluice_cli import Sluice

MIB, GIB = 1 << 20, 1 << 30
FLASH = {"-fa 0": ("-fa", "off"), "-fa 1": ("-fa", "on")}
COLD = {"best flags": ("--no-warmup", "-fit", "off"), "its defaults": ()}

DECODE_BAR = {"q4_1": 2, "q4_0": 1.3, "q8_0": 1.3}
PREFILL_BAR = {"q4_1": 4, "q4_0": 2, "q8_0": 2, "f16": 1.2}
BANDWIDTH_BAR = 0.8

STORY = "The old lighthouse keeper had seen many storms, but on that night"
# A greedy continuation of a record copies the earlier ones.
RECORDS = "".join(f"<entry><kind>invoice</kind><status>paid</status><currency>EUR</currency>"
                  f"<amount>100</amount><due>2024-01-31</due></entry>\n" for _ in range(8))


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


@dataclasses.dataclass
class Bench:
    sluice: Sluice
    llama: LlamaCpp
    models: dict        # name -> path; the first one serves the cases that use one model
    small_model: Path
    bandwidth: Path     # the program
    repeat: int

    def alternate(self, **contenders):
        """Calls the contenders in turn, `repeat` times: name -> list of what each returned."""
        results = {name: [] for name in contenders}
        for i in range(self.repeat):
            for name, call in contenders.items():
                progress(f"run {i + 1} of {self.repeat}: {name}")
                results[name].append(call())
        progress("")
        return results

    def against_llama(self, ours, theirs, variants, **others):
        """Ours, llama.cpp's variants and `others` in turn. Returns our samples, the samples and the
        name of llama.cpp's best variant, and the samples of the others."""
        calls = {name: (lambda flags=flags: theirs(flags)) for name, flags in variants.items()}
        results = self.alternate(sluice=ours, **calls, **others)
        best = max(variants, key=lambda name: statistics.median(results[name]))
        return results["sluice"], results[best], best, [results[name] for name in others]

    @property
    def first_model(self):
        return next(iter(self.models.items()))

    def table(self, title):
        return Table(title, "sluice", f"llama.cpp {self.llama.version}")

    def gb_s(self, footprints):
        """Footprint -> read bandwidth in GB/s, the median of five."""
        done = process.run([self.bandwidth, self.sluice.threads, *footprints])
        return {row["bytes"]: statistics.median(row["gb_s"])
                for row in json.loads(done.output)["rows"]}


def split_note(speeds):
    """Where a token's time goes: medians of its parts."""
    parts = {name: statistics.median(speed.ms_per_token[name] for speed in speeds)
             for name in ("compute", "sync", "wire", "idle")}
    return ("ms a token: " + ", ".join(f"{name} {ms:.2f}" for name, ms in parts.items()) +
            f"; {short(speeds[0].joins_per_layer)} joins a layer")


def bandwidth_notes(tok_s, n_bytes, roofs, bar):
    """Bytes that must be read per second against what memory gives: `roofs` has GB/s by footprint,
    once per run."""
    gb_s = {size: statistics.median(roof[size] for roof in roofs) for size in roofs[0]}
    of = lambda size: (f"{tok_s * n_bytes / 1e9 / gb_s[size]:.0%} of {short(gb_s[size])} GB/s at "
                       f"{size // MIB} MiB")
    verdict = ""
    if bar is not None:
        met = tok_s * n_bytes / 1e9 >= bar * gb_s[GIB]
        verdict = f" (bar {bar:.0%}: {'met' if met else 'MISSED'})"
    return [f"must read {n_bytes / 1e6:.0f} MB a token: {of(GIB)}{verdict},",
            ", ".join(of(size) for size in gb_s if size != GIB)]


def memory_note(speeds):
    limit = 1.15 * (speeds[0].weight_bytes + speeds[0].cache_bytes + 64 * MIB)
    peak = max(speed.peak_bytes for speed in speeds)
    return (f"peak memory {peak / MIB:.0f} MiB (bar {limit / MIB:.0f}: "
            f"{'met' if peak <= limit else 'MISSED'})")


def decode_row(bench, name, path, new, depth=0, bar=None, bandwidth_bar=None):
    file = gguf.Reader(path)
    n_bytes = file.decode_bytes() + file.cache_bytes(depth + new // 2)
    footprints = [16 * MIB, n_bytes // MIB * MIB, GIB]
    speeds, theirs, best, (roofs,) = bench.against_llama(
        lambda: bench.sluice.bench(path, new=new, depth=depth),
        lambda flags: bench.llama.bench(path, new=new, depth=depth, flags=flags), FLASH,
        bandwidth=lambda: bench.gb_s(footprints))
    ours = [speed.decode_tok_s for speed in speeds]
    notes = [f"llama.cpp: {best}", split_note(speeds),
             *bandwidth_notes(statistics.median(ours), n_bytes, roofs, bandwidth_bar),
             memory_note(speeds)]
    return Row(name, ours, theirs, bar, notes=notes)


def decode(bench):
    """one user, every model"""
    table = bench.table("decode, one user, 128 tokens (tokens/s)")
    for name, path in bench.models.items():
        table.rows.append(decode_row(bench, name, path, 128, bar=DECODE_BAR.get(name),
                                     bandwidth_bar=BANDWIDTH_BAR))
    return table


def depth(bench):
    """one user with 2,048 tokens in the cache"""
    name, path = bench.first_model
    table = bench.table("decode at a depth of 2,048 tokens (tokens/s)")
    table.rows.append(decode_row(bench, name, path, 64, depth=2048, bar=2.5))
    return table


def prefill(bench):
    """512 tokens, every model"""
    table = bench.table("prefill of 512 tokens (tokens/s)")
    for name, path in bench.models.items():
        speeds, theirs, best, _ = bench.against_llama(
            lambda: bench.sluice.bench(path, prompt=512),
            lambda flags: bench.llama.bench(path, prompt=512, flags=flags), FLASH)
        table.rows.append(Row(name, [speed.prefill_tok_s for speed in speeds], theirs,
                              PREFILL_BAR.get(name), notes=[f"llama.cpp: {best}"]))
    return table


def users(bench):
    """8 users at once"""
    name, path = bench.first_model
    speeds, theirs, best, _ = bench.against_llama(
        lambda: bench.sluice.bench(path, prompt=64, new=64, users=8),
        lambda flags: bench.llama.decode_users(path, 8, 64, 64, flags), FLASH)
    table = bench.table("decode, 8 users, 64 + 64 tokens each (tokens/s of all)")
    table.rows.append(Row(name, [speed.decode_tok_s for speed in speeds], theirs, 3.5,
                          notes=[f"llama.cpp: {best}", split_note(speeds)]))
    return table


def cache(bench):
    """a model that fits the last-level cache"""
    table = bench.table("decode, a random model of 23 MB (tokens/s)")
    table.rows.append(decode_row(bench, "q4_0", bench.small_model, 256, bar=2))
    return table


def stages(bench):
    """the same work on more stages"""
    _, path = bench.first_model
    decode_speed = lambda **options: bench.sluice.bench(path, new=128, **options)
    table = Table("stages (sluice, decode, tokens/s)", "split", "one stage")
    rates = lambda speeds: [speed.decode_tok_s for speed in speeds]

    result = bench.alternate(three=lambda: decode_speed(flags=("--stages", 3)), one=decode_speed)
    table.rows.append(Row("3 stages", rates(result["three"]), rates(result["one"]), 0.97,
                          notes=["on the same two cores, one user", split_note(result["three"])]))

    result = bench.alternate(
        two=lambda: decode_speed(users=2, flags=("--stages", 2, "--split-cores")),
        one=lambda: decode_speed(users=2))
    table.rows.append(Row("2 x 1 thread", rates(result["two"]), rates(result["one"]), 1.0,
                          notes=["against one stage of two threads, 2 users",
                                 split_note(result["two"])]))
    return table


def lookup(bench):
    """speculation by prompt lookup, on and off"""
    _, path = bench.first_model
    table = Table("prompt lookup (sluice, decode of 192 tokens, tokens/s)", "with", "without")
    greedy, sampled = ("--temperature", 0), ("--temperature", 1, "--seed", 1)
    for label, prompt, flags, bar in (("repetitive", RECORDS, greedy, 2),
                                      ("a story", STORY, sampled, 0.98)):
        call = lambda how: lambda: bench.sluice.run_tok_s(path, prompt, 192,
                                                          flags + ("--speculate", how))
        result = bench.alternate(ngram=call("ngram"), off=call("off"))
        texts = {tuple(tokens) for samples in result.values() for _, tokens in samples}
        note = "the same tokens" if len(texts) == 1 else "DIFFERENT TOKENS"
        table.rows.append(Row(label, [tok_s for tok_s, _ in result["ngram"]],
                              [tok_s for tok_s, _ in result["off"]], bar, notes=[note]))
    return table


def cold(bench):
    """from start to first token"""
    _, path = bench.first_model
    table = bench.table("cold start to first token, files in memory (milliseconds)")
    ms = lambda seconds: [1000 * s for s in seconds]
    for name, flags in COLD.items():
        result = bench.alternate(
            ours=lambda: bench.sluice.first_token_s(path, STORY),
            theirs=lambda: bench.llama.first_token_s(path, STORY, flags))
        table.rows.append(Row(name, ms(result["ours"]), ms(result["theirs"]),
                              0.5 if flags else None, at_most=True))
    return table


def neighbour(bench):
    """another process keeps one of the CPUs busy"""
    _, path = bench.first_model
    table = Table(f"a busy process on CPU {process.cpus()[-1]} (decode, tokens/s)", "busy", "quiet")

    def row(label, call, bar):
        def disturbed():
            with process.neighbour():
                return call()
        result = bench.alternate(busy=disturbed, quiet=call)
        return Row(label, result["busy"], result["quiet"], bar)

    table.rows.append(row("sluice", lambda: bench.sluice.bench(path, new=128).decode_tok_s, 0.5))
    table.rows.append(row("llama.cpp",
                          lambda: bench.llama.bench(path, new=128, flags=FLASH["-fa 1"]), None))
    return table


CASES = {case.__name__: case for case in (decode, depth, prefill, users, cache, stages, lookup,
                                          cold, neighbour)}
