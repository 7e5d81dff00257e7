# `make` lists what there is. Every target sets up what it needs first.
SETUP ?= tools/setup.sh
PRESET ?= release
PROMPT ?= Why is the sky blue? Answer in two sentences.
FUZZ_SECONDS ?= 60

MODEL := models/SmolLM2-135M-Instruct.Q4_1.gguf
SLUICE := build/src/app/sluice

.DEFAULT_GOAL := help
.PHONY: help setup build model run test clients test-clients check bench bench-serve dev tsan fuzz format tidy clean

help:
	@echo 'make run      build, get the default model, answer PROMPT="..." through three stages'
	@echo 'make test     build and run every test (PRESET=ci: warnings are errors)'
	@echo 'make test-clients  SDKs and Codex CLI against the server, the page in Chromium (installs them)'
	@echo 'make check    layer rule, sizes, one type per name, format, words'
	@echo 'make bench    compare with llama.cpp; ARGS="..." go to bench/compare (see its --help)'
	@echo 'make bench-serve  the server under load, next to llama-server; ARGS as above'
	@echo 'make dev      the tests under address and undefined-behaviour sanitizers'
	@echo 'make tsan     the tests under the thread sanitizer'
	@echo 'make fuzz     every fuzzer for FUZZ_SECONDS=$(FUZZ_SECONDS) seconds each (clang)'
	@echo 'make format   rewrite the sources as .clang-format says'
	@echo 'make tidy     clang-tidy over the sources'
	@echo 'make clean    remove every build folder'

setup:
	@$(SETUP)

build: setup
	@cmake --preset $(PRESET) > /dev/null
	@cmake --build build

model: setup
	@tools/get_model.py > /dev/null

run: setup model
	@cmake --preset $(PRESET) > /dev/null
	@cmake --build build --target sluice
	@$(SLUICE) run --model $(MODEL) --stages 3 "$(PROMPT)"

test: build
	@tools/get_model.py > /dev/null || \
	  echo 'make test: no default model; the tests that need it say SKIPPED'
	@ctest --test-dir build --output-on-failure

# Chromium for the pages, the SDKs and Codex CLI.
clients: setup
	@$(SETUP) chromium chromium-driver python3-venv iproute2
	@tests/clients/packages.py

test-clients: build model clients
	@ctest --test-dir build --output-on-failure -R '^(page|plan_page|clients|codex)$$'

check: setup
	@tools/check_layers.py src
	@tools/check_size.py
	@tools/check_names.py
	@tools/check_format.sh
	@tools/check_words.sh

bench: build model
	@bench/compare $(ARGS)

bench-serve: build model
	@bench/serve $(ARGS)

dev tsan: setup
	@cmake --preset $@ > /dev/null
	@cmake --build build-$@
	@ctest --test-dir build-$@ --output-on-failure

fuzz:
	@$(SETUP) clang libclang-rt-dev
	@cmake --preset fuzz > /dev/null
	@cmake --build build-fuzz --target fuzzers
	@for fuzzer in $$(find build-fuzz/fuzz -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x); do \
	  echo "== $$fuzzer"; \
	  mkdir -p "$$fuzzer.corpus"; \
	  "$$fuzzer" -seed_inputs="@$$fuzzer.seeds" -max_total_time=$(FUZZ_SECONDS) \
	    -artifact_prefix="$$fuzzer." "$$fuzzer.corpus" || exit 1; \
	done

format: setup
	@find src bench fuzz tests \( -name '*.cc' -o -name '*.h' -o -name '*.inl' \) -print0 | \
	  xargs -0 clang-format -i

tidy: build
	@$(SETUP) clang-tidy
	@find src -name '*.cc' -print0 | xargs -0 -P 2 -n 4 clang-tidy --quiet -p build

clean:
	@rm -rf build build-dev build-tsan build-fuzz
