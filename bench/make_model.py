#!/usr/bin/env python3
"""Writes a small model with random weights, which fits a last-level cache (23 MB in Q4_0).

Usage: bench/make_model.py OUT.gguf [--type q4_0|q8_0] [--layers N]

Its answers mean nothing; its shape is a Llama's: per layer 512 wide, 8 heads of 64 that share 4
keys, 1536 in the feed-forward. What a token costs is then joins and reads from the cache.
"""

import argparse
import random
import struct

import gguf

DIM, FFN, HEADS, KV_HEADS, CONTEXT = 512, 1536, 8, 4, 4096
SPECIAL, BYTES, VOCAB = ["<unk>", "<s>", "</s>"], 256, 512
NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6  # kinds of token in GGUF


def random_matrix(rng, dtype, cols, rows):
    """Blocks of one f16 scale and random integers; the weights spread as 1 / sqrt(cols)."""
    n_blocks = cols * rows // 32
    n_values, deviation = (16, 4.6) if dtype == gguf.Q4_0 else (32, 74)
    size = 2 + n_values
    scale = struct.pack("<e", cols ** -0.5 / deviation)
    data = bytearray(n_blocks * size)
    data[0::size] = scale[:1] * n_blocks
    data[1::size] = scale[1:] * n_blocks
    values = rng.randbytes(n_blocks * n_values)
    for i in range(n_values):
        data[2 + i::size] = values[i * n_blocks:(i + 1) * n_blocks]
    return bytes(data)


def tensors(dtype, layers):
    rng = random.Random(1)
    matrix = lambda name, cols, rows: (name + ".weight", dtype, (cols, rows),
                                       random_matrix(rng, dtype, cols, rows))
    norm = lambda name: (name + ".weight", gguf.F32, (DIM,), struct.pack("<f", 1) * DIM)
    kv_dim = DIM // HEADS * KV_HEADS
    yield matrix("token_embd", DIM, VOCAB)
    for i in range(layers):
        yield norm(f"blk.{i}.attn_norm")
        yield matrix(f"blk.{i}.attn_q", DIM, DIM)
        yield matrix(f"blk.{i}.attn_k", DIM, kv_dim)
        yield matrix(f"blk.{i}.attn_v", DIM, kv_dim)
        yield matrix(f"blk.{i}.attn_output", DIM, DIM)
        yield norm(f"blk.{i}.ffn_norm")
        yield matrix(f"blk.{i}.ffn_gate", DIM, FFN)
        yield matrix(f"blk.{i}.ffn_up", DIM, FFN)
        yield matrix(f"blk.{i}.ffn_down", FFN, DIM)
    yield norm("output_norm")
    yield matrix("output", DIM, VOCAB)


def metadata(layers):
    n_filler = VOCAB - len(SPECIAL) - BYTES
    tokens = (SPECIAL + [f"<0x{i:02X}>" for i in range(BYTES)] +
              ["\u2581"] + [f"<unused{i}>" for i in range(n_filler - 1)])
    kinds = ([UNKNOWN, CONTROL, CONTROL] + [BYTE] * BYTES + [NORMAL] + [UNUSED] * (n_filler - 1))
    number = lambda key, value: ("llama." + key, gguf.U32, value)
    return [
        ("general.architecture", gguf.STRING, "llama"),
        ("general.name", gguf.STRING, "random"),
        number("vocab_size", VOCAB), number("context_length", CONTEXT),
        number("embedding_length", DIM), number("block_count", layers),
        number("feed_forward_length", FFN), number("attention.head_count", HEADS),
        number("attention.head_count_kv", KV_HEADS),
        number("rope.dimension_count", DIM // HEADS),
        ("llama.rope.freq_base", gguf.FLOAT, 10000.0),
        ("llama.attention.layer_norm_rms_epsilon", gguf.FLOAT, 1e-5),
        ("tokenizer.ggml.model", gguf.STRING, "llama"),
        ("tokenizer.ggml.tokens", gguf.ARRAY, (gguf.STRING, tokens)),
        ("tokenizer.ggml.scores", gguf.ARRAY, (gguf.FLOAT, [0.0] * VOCAB)),
        ("tokenizer.ggml.token_type", gguf.ARRAY, (gguf.I32, kinds)),
        ("tokenizer.ggml.unknown_token_id", gguf.U32, 0),
        ("tokenizer.ggml.bos_token_id", gguf.U32, 1),
        ("tokenizer.ggml.eos_token_id", gguf.U32, 2),
    ]


def write(path, dtype=gguf.Q4_0, layers=13):
    gguf.write(path, metadata(layers), list(tensors(dtype, layers)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--type", choices=["q4_0", "q8_0"], default="q4_0")
    parser.add_argument("--layers", type=int, default=13)
    args = parser.parse_args()
    write(args.out, gguf.Q4_0 if args.type == "q4_0" else gguf.Q8_0, args.layers)


if __name__ == "__main__":
    main()
