#!/usr/bin/env python3
"""Refuses an include that the layer rule of ARCHITECTURE.md forbids.

Usage: tools/check_layers.py [SRC_FOLDER]
"""

from pathlib import Path
import re
import sys

# What the files of a folder may include besides their own folder. An entry is a folder or a file.
PLAN = ["plan/plan.h"]
SEAM = ["engine/request.h", "engine/executor.h", "engine/sampler.h"]  # the last stage samples
COUNTED = ["weights/checkpoint.h", "cache/storage.h"]  # what the planner counts exactly
ALLOWED = {
    "base": [],
    "weights": ["base"],
    "text": ["base", "weights"],
    "kernels": ["base", "weights"],
    "cache": ["base", "weights", "kernels"],
    "models": ["base", "weights", "kernels", "cache"],
    "engine": ["base", "cache"],
    "plan": ["base", "models", "engine"] + COUNTED,
    "pipeline": ["base", "weights", "kernels", "cache", "models"] + SEAM + PLAN,
    "serve": ["base", "weights", "text", "kernels", "cache", "models", "engine", "pipeline", "plan"],
    "app": ["base", "weights", "text", "kernels", "cache", "models", "engine", "pipeline", "plan",
            "serve"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def fault(folder, include):
    """Why a file of `folder` may not include `include`; None if it may."""
    first, slash, _ = include.partition("/")
    if not slash or first == folder:
        return None
    if first not in ALLOWED:
        return f'includes "{include}": expected a path that starts with a folder of src/'
    if first in ALLOWED[folder] or include in ALLOWED[folder]:
        return None
    return f'includes "{include}": {folder}/ may include {", ".join(ALLOWED[folder]) or "nothing"}'


def main():
    src = Path(sys.argv[1] if len(sys.argv) > 1 else "src")
    files = sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cc", ".inc", ".inl"))
    faults = [] if files else [f"{src}: expected sources, found none"]
    for path in files:
        folder = path.relative_to(src).parts[0]
        if folder not in ALLOWED:
            faults.append(f"{path}: folder {folder}/ is not in the layer rule")
            continue
        for include in INCLUDE.findall(path.read_text()):
            if reason := fault(folder, include):
                faults.append(f"{path}: {reason}")
    print(*faults, sep="\n", end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
