# make demo    set up and run the NN samples on a private board
# make test    set up and run every check: format, lint, types, import rules, tests
# make test-long    the tests that take many seconds each
#
# Both make .venv on the first run, with the first of $(PYTHONS) that will do (or: make demo PYTHON=/path/to/python3).
# Later runs install nothing, and ask no network, until pyproject.toml or constraints.txt changes.

PYTHON     ?=
PYTHONS    := python3.13 python3.12 python3.11 python3
VENV       := .venv
BIN        := $(VENV)/bin
PIP        := $(BIN)/python -m pip --disable-pip-version-check --no-input
DOCS_PORT  ?= 8000
GUESTS     := $(wildcard packages/*)
# One test process more than there are CPUs to use, since some wait, and no more than five: every board starts processes of
# its own. Each takes a part that hangs together, whose tests share boards, and at the end from the others' parts.
TEST_JOBS  ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ "$$n" -le 4 ] || n=4; echo $$((n + 1)))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Goals share one .venv, so they run one after the other, also under make -j.
.NOTPARALLEL:
# A test that runs make itself must not inherit our flags or job slots.
unexport MAKEFLAGS MFLAGS MAKELEVEL

.PHONY: help demo test test-long test-arm64 lint native docs docs-tables docs-serve bench venv wheel clean

help:
	@echo "make demo | test | test-long | test-arm64 | lint | native | docs | docs-serve | docs-tables | bench | venv | wheel | clean"

demo: $(VENV)/.installed-base
	@$(BIN)/python native/build.py .
	@$(BIN)/hbrt run nn

# There is no limit for all tests together: on a slow or busy machine they take what they take, and each has its own.
# Tests start some thousand programs: each would compile hbrt anew where PYTHONDONTWRITEBYTECODE is set, and each pytest
# its plugins, hypothesis among them.
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q -n $(TEST_JOBS) --dist worksteal $(PYTEST_ARGS) </dev/null

test: lint native
	@$(BIN)/python -m compileall -q arm_client dsp_server hbrt samples packages
	@$(PYTEST)

# What pyproject.toml leaves out of make test: campaigns of minutes, soak, pages that install with pip, clusters of Ray.
test-long: native
	@$(PYTEST) -m long

# The C parts and their tests on arm64, by qemu-user in a Debian root: as root, an hour on two CPUs, the first time longer.
test-arm64:
	@tools/arm64/host.sh

# The C parts; the installation has built them once.
native: $(VENV)/.installed-dev
	@$(BIN)/python native/build.py

# mypy's workers must start within 3 s: where they cannot, on a busy machine, it ends with 2 and is run without them.
lint: $(VENV)/.installed-dev
	@$(BIN)/ruff format --quiet --check \
	  || { echo "Some files are not formatted. To format them: $(BIN)/ruff format" >&2; exit 1; }
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy --num-workers 2 --no-error-summary || { [ $$? -eq 2 ] && $(BIN)/mypy --no-error-summary; }
	@$(BIN)/lint-imports --no-logo >$(VENV)/import-rules.log 2>&1 \
	  || { cat $(VENV)/import-rules.log; exit 1; }
	@echo "format, lint, types, import rules: good"

# MkDocs announces its successor with each run.
docs docs-serve: export NO_MKDOCS_2_WARNING = 1
docs: docs-tables
	@$(BIN)/mkdocs build --strict
	@echo "The site: $(CURDIR)/site/index.html"

docs-serve: docs-tables
	@$(BIN)/mkdocs serve --dev-addr 127.0.0.1:$(DOCS_PORT)

docs-tables: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.docs_tables

bench: $(VENV)/.installed-bench
	@$(BIN)/python -m benchmarks.rpc $(BENCH_ARGS)

venv: $(VENV)/.installed-dev

wheel: $(VENV)/.builder
	@$(PIP) -qq wheel --no-deps --no-build-isolation --wheel-dir dist . $(addprefix ./,$(GUESTS))
	@ls dist/hbrt-*.whl dist/hbrt_*.whl

clean:
	rm -rf $(VENV) build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The extras of a stamp's name are installed over what is there already. pip's lines of files and packages show that it is
# at work; its status goes past sed by a file.
$(VENV)/.installed-base: EXTRAS =
$(VENV)/.installed-dev: EXTRAS = [dev]
$(VENV)/.installed-bench: EXTRAS = [bench]
$(VENV)/.installed-%: pyproject.toml $(addsuffix /pyproject.toml,$(GUESTS)) constraints.txt | $(VENV)/.builder
	@echo "Installing hbrt$(EXTRAS) into $(VENV) ..."
	@{ $(PIP) install --progress-bar off --constraint constraints.txt --no-build-isolation --editable '.$(EXTRAS)' \
	     $(if $(EXTRAS),$(addprefix --editable ,$(GUESTS))); \
	   echo $$? >$(VENV)/pip-status; } \
	  | sed -un -e 's/^ *\(Downloading\|Using cached\) \([^ ]*\)/  \2/p' -e 's/^Installing collected packages: /  Installing /p'
	@exit $$(cat $(VENV)/pip-status)
	@touch $@

# What builds the wheel, the editable install and the C parts, from inside .venv, so that versions are pinned as well: a C
# compiler, too, where the machine has none.
$(VENV)/.builder: constraints.txt | $(VENV)/.made
	@$(PIP) -qq install --constraint constraints.txt hatchling cffi $$($(BIN)/python native/build.py --fallback)
	@touch $@

# A name on PATH is not yet a Python that runs (version managers leave names behind), and a Python that runs may lack the
# modules to make an environment with.
$(VENV)/.made:
	@found=; bare=; \
	for python in $(or $(PYTHON),$(PYTHONS)); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
	  "$$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || { bare="$$bare $$python"; continue; }; \
	  found=$$python; break; \
	done; \
	if [ -z "$$found" ] && [ -n "$$bare" ]; then \
	  echo "These Pythons cannot make a virtual environment, their venv or ensurepip module is missing:$$bare." >&2; \
	  echo "Install it (on Debian and Ubuntu: apt install python3-venv), or name another one: make PYTHON=/path/to/python3" >&2; \
	  exit 3; \
	elif [ -z "$$found" ]; then \
	  echo "No Python 3.11 or newer runs here; tried: $(or $(PYTHON),$(PYTHONS))." >&2; \
	  echo "Install one, or name it: make PYTHON=/path/to/python3.11" >&2; \
	  exit 3; \
	fi; \
	echo "Making $(VENV) with $$("$$found" --version) ..."; \
	"$$found" -m venv --clear $(VENV) && touch $@
