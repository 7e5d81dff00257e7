#!/usr/bin/env bash
# Refuses unfinished marks, paths of one machine and package registry hosts in the project's text.
# Usage: tools/check_words.sh [FILE]...   (default: every file git knows, but for test data)
set -euo pipefail

files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- . \
                         ':!tests/golden' ':!LICENSE')
fi

# The brackets keep the patterns from matching themselves.
marks='\b(TO[D]O|FIX[M]E|XX[X]|HAC[K])\b|not im[p]lemented|unim[p]lemented'
paths='(^|[^[:alnum:]_.])/(w[o]rk|r[o]ot|h[o]me)/|[.][.]/s[h]ared'
hosts='(p[y]pi|p[y]thonhosted|n[p]mjs|crates|deb[.]debian|g[o]lang)[.](org|com|io)\b'
hosts+='|https?://(files|registry|deb|proxy|index|static)[.]'

if grep -nIHE -e "$marks" -e "$paths" -e "$hosts" -- "${files[@]}"; then
  echo "check_words: expected no unfinished marks, machine paths or registry hosts" >&2
  exit 1
fi
