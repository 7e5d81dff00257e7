#!/usr/bin/env python3
"""Refuses two types of one name in one namespace: each source file compiles, and the linker merges
what they share by name into one that fits only one of them. Relies on the closing comments of
namespaces that .clang-format writes."""
import re
import sys
from collections import defaultdict
from pathlib import Path

NAMESPACE = re.compile(r"(?:inline )?namespace ([\w:]*) ?\{")
CLOSING = re.compile(r"\}\s*//\s*namespace")
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|union|enum class|enum) (\w+)\b(?!::)[^;()]*(?:\{|$)")


def types(path):
    """Qualified names of the types that the file defines outside of functions and other types."""
    scopes, last = [], len(lines := path.read_text().splitlines()) - 1
    for i, line in enumerate(lines):
        if match := NAMESPACE.match(line):
            scopes.append(match.group(1) or None)
        elif CLOSING.match(line):
            scopes.pop()
        elif (match := TYPE.match(line)) and scopes and None not in scopes:
            # A line that does not end here is a definition if a brace comes before a semicolon.
            rest = " ".join(lines[i:min(i + 4, last + 1)])
            if rest.find("{") != -1 and (rest.find(";") == -1 or rest.find("{") < rest.find(";")):
                yield "::".join([*scopes, match.group(1)]), i + 1


def main():
    places = defaultdict(dict)
    for path in sorted(Path("src").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        for name, line in types(path):
            places[name].setdefault(path, line)
    bad = {name: found for name, found in places.items() if len(found) > 1}
    for name, found in bad.items():
        print(f"{name}: defined in " + ", ".join(f"{path}:{line}" for path, line in found.items()))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
