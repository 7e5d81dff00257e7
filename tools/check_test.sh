#!/usr/bin/env bash
# Shows that every check passes good input and refuses bad input. Usage: tools/check_test.sh
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$tools/../.clang-format" "$work"
cd "$work"
n_cases=0

fresh() { rm -rf src tests build && mkdir -p src/base src/kernels src/models build/kernels; }

passes() {
  n_cases=$((n_cases + 1))
  "$@" > out 2>&1 || { echo "FAILED: refused good input: $*"; cat out; exit 1; }
}

refuses() {  # refuses WORDS_OF_THE_MESSAGE COMMAND...
  n_cases=$((n_cases + 1))
  local words=$1
  shift
  if "$@" > out 2>&1; then echo "FAILED: passed bad input ($words): $*"; exit 1; fi
  grep -qF -- "$words" out || { echo "FAILED: expected '$words' from: $*"; cat out; exit 1; }
}

lines() { for ((i = 0; i < $1; ++i)); do echo "  x += $i;"; done; }

# Layers.
fresh
refuses "found none" "$tools/check_layers.py" src
echo '#include "base/error.h"' > src/models/a.cc
echo '#include "b.h"' >> src/models/a.cc
passes "$tools/check_layers.py" src
echo '#include "models/a.h"' > src/base/a.h
refuses 'base/ may include nothing' "$tools/check_layers.py" src
echo '# include "pipeline/stage.h"' > src/base/a.h
refuses 'src/base/a.h: includes "pipeline/stage.h"' "$tools/check_layers.py" src
echo '#include "../models/a.h"' > src/base/a.h
refuses 'expected a path that starts with a folder' "$tools/check_layers.py" src
mkdir -p src/pipeline && rm src/base/a.h
echo '#include "engine/executor.h"' > src/pipeline/a.cc
passes "$tools/check_layers.py" src
echo '#include "engine/scheduler.h"' > src/pipeline/a.cc
refuses 'engine/scheduler.h' "$tools/check_layers.py" src
rm -r src/pipeline && mkdir src/extra && touch src/extra/a.h
refuses 'extra/ is not in the layer rule' "$tools/check_layers.py" src

# Size.
fresh
refuses "found none" "$tools/check_size.py" .
{ echo 'struct alignas(64) A {'; lines 200; echo '};'; } > src/base/a.h
{ echo 'const char* kText = R"x({ ("x'; lines 70; echo ')x";'; } > src/base/b.cc
{ echo "void f() {  // {"; lines 58; echo "}"; lines 70; } > src/base/c.cc
{ echo 'void f() {'; lines 100; echo '}'; } > src/kernels/long.cc
passes "$tools/check_size.py" .
{ echo "void f() { char c = '}';"; lines 59; echo '}'; } > src/base/a.cc
refuses 'src/base/a.cc:1: expected a function of at most 60 lines, got 61' "$tools/check_size.py" .
{ echo 'class A {'; echo '  A() : a_(1), b_{2} {'; lines 59; echo '} };'; } > src/base/a.cc
refuses 'src/base/a.cc:2: expected a function' "$tools/check_size.py" .
{ echo 'Row rows[] = {'; echo '{"a", [](int x) {'; lines 59; echo '}}};'; } > src/base/a.cc
refuses 'src/base/a.cc:2: expected a function' "$tools/check_size.py" .
lines 601 > src/base/a.cc
refuses 'expected at most 600 lines, got 601' "$tools/check_size.py" .
lines 600 > src/base/a.cc
lines 251 > src/models/blocks.cc
passes "$tools/check_size.py" .
lines 251 > src/models/a.cc
refuses 'expected at most 250 lines, got 251' "$tools/check_size.py" .

# Symbols. The first object has none that is weak, the second instantiates a template.
fresh
refuses "found none" "$tools/check_isa_symbols.sh" build
object=build/kernels/isa_a.cc.o
compile() { "${CXX:-c++}" -x c++ -c - -o "$object"; }
echo 'namespace a { int f(int x) { return x; } }' | compile
passes "$tools/check_isa_symbols.sh" build
echo 'template <class T> T f(T x) { return x; } int g(int x) { return f(x); }' | compile
refuses 'weak symbol: int f<int>(int)' "$tools/check_isa_symbols.sh" build

# Format.
printf 'int f(int x) { return x; }\n' > a.cc
passes "$tools/check_format.sh" a.cc
printf 'int f( int x ){ return x; }\n' > a.cc
refuses 'a.cc: not as clang-format writes it' "$tools/check_format.sh" a.cc

# Words. Written in pieces, so that this file passes the check.
echo 'a todo list, homework/root/x, prefix /usr/share and https://example.org' > a.md
passes "$tools/check_words.sh" a.md
for bad in TO''DO FIX''ME '/wo''rk/x' '(/ro''ot/x)' '../sha''red/x' 'py''pi.org' \
           'https://fi''les.example.org'; do
  echo "text $bad text" > a.md
  refuses 'expected no unfinished marks' "$tools/check_words.sh" a.md
done

echo "$n_cases cases of the checks passed"
