# Everything beyond Python 3.11+ and a C++ compiler comes from pip, into .venv. `make help` lists the targets.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin

# The virtual environment holds the package as a user gets it, a wheel, so it is rebuilt whenever the content of what
# goes into the wheel changes (content, not dates: a deleted or reverted file counts too).
SOURCES := $(shell find src CMakeLists.txt pyproject.toml -type f -not -name '*.pyc' -not -name '*.so' | LC_ALL=C sort)
FINGERPRINT := $(shell cat $(SOURCES) | cksum | tr ' ' '-')-$(words $(SOURCES))
INSTALLED := $(VENV)/installed-$(FINGERPRINT)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install lint test demo browser docs docs-serve bench bench-quick soak aarch64 format golden clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "make %-12s %s\n", $$1, $$2 }'

install: $(INSTALLED) ## build the wheel and install it with everything for development into .venv

$(INSTALLED):
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("qflock needs Python 3.11 or newer: make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install -qq --group test '.[train-cpu,k8s,gcs,s3,report]'
	rm -f $(VENV)/installed-*
	touch $@

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## everything a change has to pass: style, types, import order, tests, documentation
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --doctest-modules --pyargs qflock tests

browser: $(INSTALLED) ## open the pages that qflock makes in headless Chromium (Debian: apt-get install chromium)
	$(BIN)/python -m pytest -n 0 -m browser tests

demo: $(INSTALLED) ## train a QCNN on two local workers, then predict with the stored weights and check the error
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python examples/demo.py

docs: $(INSTALLED) ## build the documentation into site/
	$(BIN)/python -m pip install -qq --group docs
	$(BIN)/mkdocs build --strict

docs-serve: $(INSTALLED) ## serve the documentation on http://127.0.0.1:8000 while you write it
	$(BIN)/python -m pip install -qq --group docs
	$(BIN)/mkdocs serve

bench-quick: $(INSTALLED) ## our own speed beside its targets, under 3 minutes; fails where one is missed
	$(BIN)/python -m benchmarks quick

bench: $(INSTALLED) ## side by side with other simulators, each in an environment of its own; writes docs/benchmarks/
	$(BIN)/python -m pip install -qq --group bench
	$(BIN)/python -m benchmarks all

soak: $(INSTALLED) ## the long tests: many calls, many trainings, memory that must stay flat
	$(BIN)/python -m pip install -qq --group exports
	$(BIN)/python -m pytest -n 0 -m soak --timeout 3600 tests

aarch64: ## cross-build the kernels' test for aarch64 and run it (Debian: g++-aarch64-linux-gnu, qemu-user)
	mkdir -p build
	aarch64-linux-gnu-g++ -std=c++17 -O2 -ffast-math -fopenmp -static -Wno-psabi -DQFLOCK_VECTOR_BYTES=16 \
	  -I src/qflock/engine/native tests/native/kernel_test.cc -o build/kernel_test_aarch64
	qemu-aarch64 build/kernel_test_aarch64

format: $(INSTALLED) ## let ruff format and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

golden: $(INSTALLED) ## rewrite the golden files after an intended change of command line, public names or manifests
	$(BIN)/python -m pytest -n 0 tests/docs/test_golden.py tests/deploy/test_render.py --update-golden

clean: ## remove everything that was built
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
