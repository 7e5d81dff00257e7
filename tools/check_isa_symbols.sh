#!/usr/bin/env bash
# Refuses weak symbols in the objects of src/kernels/isa_*.cc. The linker keeps one copy of a weak
# symbol for the whole program: compiled with AVX-512 flags it would crash older processors.
# Usage: tools/check_isa_symbols.sh BUILD_FOLDER
set -euo pipefail

build=${1:?usage: tools/check_isa_symbols.sh BUILD_FOLDER}
mapfile -t objects < <(find "$build" -path '*kernels*' -name 'isa_*.cc.o' | sort)
if [[ ${#objects[@]} -eq 0 ]]; then
  echo "$build: expected objects of src/kernels/isa_*.cc, found none" >&2
  exit 1
fi

faults=0
for object in "${objects[@]}"; do
  symbols=$(nm -C "$object")
  while read -r symbol; do
    echo "$object: weak symbol: $symbol"
    faults=1
  done < <(sed -nE 's/^ *[0-9a-f]* +[WwVvu] (.*)/\1/p' <<< "$symbols")
done
exit "$faults"
