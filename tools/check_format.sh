#!/usr/bin/env bash
# Refuses C++ sources that clang-format would change. Usage: tools/check_format.sh [FILE]...
set -euo pipefail

files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(find src bench fuzz tests -name '*.cc' -o -name '*.h' -o -name '*.inl')
fi
clang-format --dry-run -Werror "${files[@]}"
