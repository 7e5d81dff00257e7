"""GGUF version 3 (specification: ggml's docs/gguf.md): what the benchmarks read and write of it."""

import math
import mmap
import struct

# Type number -> (weights per block, bytes per block).
TYPES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
         10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
         20: (32, 18), 23: (256, 136), 30: (1, 2), 39: (32, 17)}
F32, Q4_0, Q8_0 = 0, 2, 8

U32, I32, FLOAT, STRING, ARRAY = 4, 5, 6, 8, 9
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", U32: "<I", I32: "<i", FLOAT: "<f", 7: "<?",
           10: "<Q", 11: "<q", 12: "<d"}
ALIGNMENT = 32


def tensor_bytes(dtype, shape):
    weights, size = TYPES[dtype]
    return math.prod(shape) // weights * size


class Reader:
    """`metadata` (arrays as their lengths) and `tensors`: name -> (type number, shape)."""

    def __init__(self, path):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            self.data, self.at = data, 0
            magic, version, n_tensors, n_keys = self._take("<4sIQQ")
            if magic != b"GGUF" or version != 3:
                raise ValueError(f"{path}: expected GGUF version 3")
            self.metadata = {self._string(): self._value(*self._take("<I"))
                             for _ in range(n_keys)}
            self.tensors = {self._string(): self._tensor() for _ in range(n_tensors)}
            del self.data

    def _take(self, layout):
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values

    def _string(self):
        n, = self._take("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode(errors="replace")

    def _value(self, kind):
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._take(SCALARS[kind])[0]
        kind, n = self._take("<IQ")
        for _ in range(n):
            self._value(kind)
        return n

    def _tensor(self):
        n_dims, = self._take("<I")
        shape = self._take(f"<{n_dims}Q")
        dtype, _ = self._take("<IQ")
        return dtype, shape

    def decode_bytes(self):
        """Bytes of weights that one token must read: everything but an untied embedding table,
        of which it reads a row."""
        tied = "output.weight" not in self.tensors
        return sum(tensor_bytes(*tensor) for name, tensor in self.tensors.items()
                   if tied or name != "token_embd.weight")

    def cache_bytes(self, depth, bytes_per_value=2):
        """Bytes of keys and values that one token at this depth must read."""
        arch = self.metadata["general.architecture"]
        key = lambda name, default=None: self.metadata.get(f"{arch}.{name}", default)
        heads = key("attention.head_count")
        head_dim = key("attention.key_length", key("embedding_length") // heads)
        kv_heads = key("attention.head_count_kv", heads)
        return 2 * depth * key("block_count") * kv_heads * head_dim * bytes_per_value


def _packed_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _packed_value(kind, value):
    if kind == STRING:
        return _packed_string(value)
    if kind == ARRAY:
        element, values = value
        return struct.pack("<IQ", element, len(values)) + b"".join(
            _packed_value(element, v) for v in values)
    return struct.pack(SCALARS[kind], value)


def write(path, metadata, tensors):
    """metadata: (key, kind, value); tensors: (name, type number, shape innermost first, bytes)."""
    padding = lambda n: b"\0" * (-n % ALIGNMENT)
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, kind, value in metadata:
        header += _packed_string(key) + struct.pack("<I", kind) + _packed_value(kind, value)
    offset = 0
    for name, dtype, shape, data in tensors:
        if len(data) != tensor_bytes(dtype, shape):
            raise ValueError(f"{name}: expected {tensor_bytes(dtype, shape)} bytes, got {len(data)}")
        header += _packed_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape,
                                                     dtype, offset)
        offset += len(data) + len(padding(len(data)))
    with open(path, "wb") as file:
        file.write(header + padding(len(header)))
        for _, _, _, data in tensors:
            file.write(data + padding(len(data)))
