# Every target makes the virtual environment it needs: nothing but Python 3.11+ and make.
# uv is used where it is installed; otherwise the standard venv and pip.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
UV := $(shell command -v uv 2>/dev/null)
DEMO_OUT ?= runs/demo
# More arguments of the demo, such as --limit 2.
DEMO_ARGS ?=
ACCEPTANCE_OUT ?= runs/acceptance
BENCH_OUT ?= runs/bench
BENCH_ARGS ?=
PEERS ?= .venv-peers
REDUCED ?=
ONLY ?=
SKIP ?=
IDS ?=
# A folder with wheels of what installing ALFWorld would compile, where there is one.
ALFWORLD_WHEELS ?=
PYTEST_ARGS ?=
# Such as --ignore-vuln ID, of what nothing can be done about.
AUDIT_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help bench demo demo-mle demo-mle-chain alfworld demo-alfworld demo-transplant test test-all check lint format type acceptance architecture base-image boards prompts docs figures build bare compat audit release-check clean links

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

links:
	@test -L src/langgraft/memory || { \
	echo "This checkout has no symbolic links in src/langgraft: clone it with git, on a system (or with 'git config core.symlinks true') that has them."; exit 1; }

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "langgraft needs Python 3.11 or newer: set PYTHON=/path/to/python3"; exit 1; }
ifdef UV
	@$(UV) venv --quiet --allow-existing --python "$(PYTHON)" $(VENV)
else
	@"$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
endif

# What a user of the benchmarks installs.
$(VENV)/.demo: $(VENV)/pyvenv.cfg pyproject.toml | links
ifdef UV
	@$(UV) pip install --quiet --python $(BIN)/python -e '.[babyai,bench]'
else
	@$(BIN)/python -m pip install --quiet -e '.[babyai,bench]'
endif
	@touch $@

# What a developer installs.
$(VENV)/.dev: $(VENV)/pyvenv.cfg pyproject.toml | links
ifdef UV
	@$(UV) pip install --quiet --python $(BIN)/python -e '.[all]' --group dev
else
	@$(BIN)/python -m pip install --quiet -e '.[all]' --group dev
endif
	@touch $@ $(VENV)/.demo $(VENV)/.demo-mle $(VENV)/.demo-math

demo: $(VENV)/.demo ## Run the demo study on BabyAI and write its report
	@$(BIN)/langgraft run demo --out $(DEMO_OUT) $(DEMO_ARGS)

$(VENV)/.demo-mle: $(VENV)/.demo
ifdef UV
	@$(UV) pip install --quiet --python $(BIN)/python -e '.[bench,mle]'
else
	@$(BIN)/python -m pip install --quiet -e '.[bench,mle]'
endif
	@touch $@

demo-mle: $(VENV)/.demo-mle ## Run the demo of the tree agent, in Docker, and write its report
	@$(BIN)/langgraft run demo-mle --out $(DEMO_OUT)-mle

demo-mle-chain: $(VENV)/.demo-mle ## Run the demo of the chain agent and MLAB, in Docker
	@$(BIN)/langgraft run demo-mle-chain --out $(DEMO_OUT)-mle-chain

# A part of it is built by a program that wants to find `python`.
$(VENV)/.alfworld: WHEELS = $(if $(ALFWORLD_WHEELS),--find-links '$(abspath $(ALFWORLD_WHEELS))')
$(VENV)/.alfworld: pyproject.toml | $(VENV)/.demo
ifdef UV
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(UV) pip install --quiet --python $(BIN)/python $(WHEELS) -e '.[alfworld]'
else
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet $(WHEELS) -e '.[alfworld]'
endif
	@touch $@

alfworld: $(VENV)/.alfworld ## Install ALFWorld too (compiles: g++ and make; ALFWORLD_WHEELS names wheels)

demo-alfworld: $(VENV)/.alfworld ## Run the demo on generated ALFWorld games
	@$(BIN)/langgraft run demo-alfworld --out $(DEMO_OUT)-alfworld

demo-transplant: $(VENV)/.demo-math ## Run the demo of memory transplants, and write its report
	@$(BIN)/langgraft run demo-transplant --out $(DEMO_OUT)-transplant

$(VENV)/.demo-math: $(VENV)/.demo
ifdef UV
	@$(UV) pip install --quiet --python $(BIN)/python -e '.[bench,math]'
else
	@$(BIN)/python -m pip install --quiet -e '.[bench,math]'
endif
	@touch $@

# A process a core: each imports all there is, and sets up what its modules need. Tests that wait for servers,
# sandboxes and processes of their own gain by more (PROCESSES). Each takes a class or a module.
# Tests start hundreds of processes, which would compile again whatever they import, and each of them
# and of these would have threads of BLAS and OpenMP for every core: a quarter of the time of an analysis.
PROCESSES ?= $(shell "$(PYTHON)" -c 'import os; print(os.cpu_count() or 1)')
PYTEST = PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadscope --no-loadscope-reorder

test: $(VENV)/.dev ## Run the tests in minutes: not those marked browser, docker, kill, matrix (PYTEST_ARGS adds)
	@$(PYTEST) -m "not (browser or docker or kill or matrix)" $(PYTEST_ARGS)

test-all: $(VENV)/.dev ## Run all tests, the marked ones too (PYTEST_ARGS adds arguments)
	@$(PYTEST) $(PYTEST_ARGS)

lint: $(VENV)/.dev ## Check style and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(VENV)/.dev ## Format the code
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

type: $(VENV)/.dev ## Check types
	@$(BIN)/mypy

check: lint type test audit ## Lint, types, the tests of `make test`, and known vulnerabilities

acceptance: $(VENV)/.dev ## Measure every promise (REDUCED=1: small; ONLY=word, SKIP=word: groups by title)
	@PYTHONPATH=tests:tests/support $(BIN)/python -m acceptance --out "$(ACCEPTANCE_OUT)" \
		$(if $(REDUCED),--reduced) $(if $(ONLY),--only "$(ONLY)") $(if $(SKIP),--skip "$(SKIP)")

# What is measured beside ours, in an environment of its own: it would hold back versions of ours.
$(PEERS)/.peers: pyproject.toml | links
ifdef UV
	@$(UV) venv --quiet --allow-existing --python "$(PYTHON)" $(PEERS)
	@$(UV) pip install --quiet --python $(PEERS)/bin/python -e '.[all]' --group bench-peers
else
	@"$(PYTHON)" -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(PEERS)/bin/python -m pip install --quiet -e '.[all]' --group bench-peers
endif
	@touch $@

bench: $(PEERS)/.peers ## Measure speed beside peers and floors, on one page (BENCH_ARGS: --only word, --sizes 1000)
	@$(PEERS)/bin/langgraft bench --out "$(BENCH_OUT)" $(BENCH_ARGS)

architecture: $(VENV)/.dev ## Draw the floors of docs/architecture.md anew, and list the files that calls enter
	@PYTHONPATH=tests:tests/support $(BIN)/python -m architecture

prompts: $(VENV)/.dev ## Write docs/prompts.md anew: what agents are told, beside what their originals tell
	@PYTHONPATH=tests:tests/support $(BIN)/python -m prompts_page

docs: $(VENV)/.dev ## Build the documentation into build/site; a warning fails it
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "build/site/index.html"

figures: $(VENV)/.dev ## Draw the figures of the documentation; after make demo its report's picture too (Chromium)
	@PYTHONPATH=tests:tests/support $(BIN)/python -m documentation $(DEMO_OUT)

base-image: $(VENV)/.dev ## Make a base image for the sandbox of this Python, where none can be pulled
	@$(BIN)/python tests/support/base_image.py

boards: $(VENV)/.dev ## Make the leaderboards of the competitions that ship anew (IDS: which)
	@PYTHONPATH=tests $(BIN)/python -m boards $(IDS)

# What tries and describes a release: uv, pip-audit, CycloneDX's list of what is installed. In an environment
# of its own: something that it brings makes every import of Chroma a second slower.
TOOLS = $(VENV)/tools
$(TOOLS)/.release: $(VENV)/.dev
ifdef UV
	@$(UV) venv --quiet --allow-existing --python $(BIN)/python $(TOOLS)
	@$(UV) pip install --quiet --python $(TOOLS)/bin/python --group release
else
	@$(BIN)/python -m venv $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(TOOLS)/bin/python -m pip install --quiet --group release
endif
	@touch $@

# Files in the wheel are dated as the commit is: who builds it again from there gets the same bytes.
build: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
build: $(VENV)/.dev ## Build wheel and sdist into dist/
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist

RELEASE = PATH="$$PATH:$(abspath $(TOOLS))/bin" PYTHONPATH=tests $(BIN)/python -m release

bare: $(TOOLS)/.release build ## Use the built wheel alone, on Python 3.11 to 3.13, and list what it brings
	@$(RELEASE) bare dist

compat: $(TOOLS)/.release ## Narrow tests on the oldest and on the newest LangGraph and LangChain
	@$(RELEASE) compat

# Without a network nothing is audited, and nothing fails: it is said.
audit: $(VENV)/.dev ## Known vulnerabilities of what is installed (AUDIT_ARGS: more of pip-audit's)
	@if $(MAKE) --no-print-directory $(TOOLS)/.release; then $(RELEASE) audit $(AUDIT_ARGS); \
	else echo "NOT AUDITED: pip-audit cannot be installed"; fi

release-check: $(TOOLS)/.release ## Do version, changelog and citation agree with TAG?
	@$(RELEASE) agree "$(TAG)"

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) $(PEERS) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
