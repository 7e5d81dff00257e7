"""Sluice's own commands, as the benchmarks call them."""

import dataclasses
import json

import process


@dataclasses.dataclass
class Speed:
    decode_tok_s: float   # of all users together
    prefill_tok_s: float
    ms_per_token: dict    # compute, sync, wire, idle
    joins_per_layer: float
    weight_bytes: int     # packed
    cache_bytes: int
    peak_bytes: int


def parse_bench(done):
    """What `sluice bench --json` printed for one number of users, as a Speed."""
    printed = json.loads(done.output)
    row, = printed["rows"]
    return Speed(row["decode_tok_s"], row["prefill_tok_s"], row["ms_per_token"],
                 row["joins_per_layer"], printed["weight_bytes"], printed["cache_bytes"],
                 done.peak_bytes)


class Sluice:
    def __init__(self, binary, threads):
        self.binary = binary
        self.threads = threads

    def _run(self, command, model, *flags):
        return process.run([self.binary, command, "--model", model, "--threads", self.threads,
                            *flags])

    def bench(self, model, prompt=8, new=1, users=1, depth=0, flags=()):
        return parse_bench(self._run("bench", model, "--prompt-tokens", prompt, "--new-tokens", new,
                                     "--users", users, "--depth", depth, "--repeat", 1, *flags,
                                     "--json"))

    def run_tok_s(self, model, prompt, new, flags=()):
        """Tokens a second of decoding `new` tokens after `prompt`, and the tokens."""
        done = self._run("run", model, prompt, "--raw", "--ignore-eos", "--json",
                         "--max-tokens", new, *flags)
        printed = json.loads(done.output)
        return printed["timings"]["decode_tok_s"], printed["tokens"]

    def first_token_s(self, model, prompt):
        return self._run("run", model, prompt, "--raw", "--ignore-eos", "--max-tokens", 1,
                         "--temperature", 0).first_byte_s
