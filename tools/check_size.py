#!/usr/bin/env python3
"""Refuses files and functions that are too long to read.

A source file has at most 600 lines, a model (src/models/x.cc) 250, a function outside src/kernels
60. Usage: tools/check_size.py [PROJECT_FOLDER]
"""

from pathlib import Path
import re
import sys

MAX_FILE = 600
MAX_MODEL = 250
MAX_FUNCTION = 60
SUFFIXES = (".cc", ".h", ".inl", ".inc", ".py", ".sh")
FOLDERS = ("src", "tests", "fuzz", "bench", "tools")

# What can hold a brace that is not a scope. Each match is blanked; its newlines stay.
HIDDEN = re.compile(
    r'R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"'  # raw string
    r"|//[^\n]*|/\*.*?\*/"                         # comments
    r'|"(?:\\.|[^"\\\n])*"'                        # string
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"        # character, but not 1'000
    r"|^[ \t]*#(?:\\\n|[^\n])*",                   # preprocessor line
    re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"(?:namespace|class|struct|union|enum)\b")
TYPE = re.compile(r"\b(?:class|struct|union)\b")
BODY_FOLLOWS = (")", "const", "override", "noexcept", "final")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def is_function(head, previous):
    """Whether `head`, the text between the symbol `previous` and a brace, opens a function body."""
    head = head.strip()
    if not head:
        return previous == "}"  # after the last of a constructor's braced initialisers
    if "(" not in head:
        return False
    if TYPE.search(head.rpartition(")")[2]):
        return False            # template <...> requires(...) struct X {
    return not (SCOPE.match(head) and not head.endswith(BODY_FOLLOWS))  # struct alignas(64) X {


def long_functions(text):
    """Yields (first line, lines) of every function body of more than MAX_FUNCTION lines."""
    text = HIDDEN.sub(blank, text)
    open_scopes = []  # per open brace: None, or the line where a function body starts
    function = None   # depth of the brace that opened the current function
    previous, head_start, line = ";", 0, 1
    for match in re.finditer(r"[{};\n]", text):
        symbol = match.group()
        if symbol == "\n":
            line += 1
            continue
        if symbol == "{":
            starts = function is None and is_function(text[head_start:match.start()], previous)
            if starts:
                function = len(open_scopes)
            open_scopes.append(line if starts else None)
        elif symbol == "}" and open_scopes:
            first = open_scopes.pop()
            if function == len(open_scopes):
                function = None
                if line - first + 1 > MAX_FUNCTION:
                    yield first, line - first + 1
        previous, head_start = symbol, match.end()


def faults(root):
    n_files = 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or (root / "tests/golden") in path.parents:
                continue
            n_files += 1
            text = path.read_text()
            n_lines = len(text.splitlines())
            is_model = (path.parent == root / "src/models" and path.suffix == ".cc" and
                        not path.stem.startswith("blocks") and not path.stem.endswith("_test"))
            limit = MAX_MODEL if is_model else MAX_FILE
            if n_lines > limit:
                yield f"{path}: expected at most {limit} lines, got {n_lines}"
            if path.suffix in (".py", ".sh") or (root / "src/kernels") in path.parents:
                continue
            for first, n in long_functions(text):
                yield f"{path}:{first}: expected a function of at most {MAX_FUNCTION} lines, got {n}"
    if n_files == 0:
        yield f"{root}: expected sources, found none"


def main():
    found = list(faults(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
