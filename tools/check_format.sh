#!/usr/bin/env bash
# Names the C++ sources that clang-format would change. Usage: tools/check_format.sh [FILE]...
set -euo pipefail

files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(find src bench fuzz tests -name '*.cc' -o -name '*.h' -o -name '*.inl')
fi

faults=0
for file in "${files[@]}"; do
  if ! clang-format --dry-run -Werror "$file" 2> /dev/null; then
    echo "$file: not as clang-format writes it; run make format"
    faults=1
  fi
done
exit "$faults"
