# Two commands for newcomers: `make run` watches pages, `make test` passes every test. Both set up what they need.

VENV := .venv
PYTHON := $(VENV)/bin/python
ARGS ?=
# a process for each core; a process without tests of its own takes over half of those that another one has left
PYTEST := $(VENV)/bin/pytest --numprocesses auto --dist worksteal

.PHONY: help run add test setup fuzz lab clean

help:
	@echo "make run                 watch pages on the embedded store (make run ARGS='--every 10m')"
	@echo "make add URL=...         add a page to watch"
	@echo "make test                lint, type-check, check the imports and run every test (some: make test ARGS='-k words')"
	@echo "make fuzz                the property tests on new examples, many more of them (minutes)"
	@echo "make lab                 the paper's experiment and the speed race (minutes)"
	@echo "make clean               remove the virtual environment and caches"

$(VENV)/.ready: pyproject.toml scripts/setup
	@scripts/setup $(VENV)
	@touch $@

setup: $(VENV)/.ready

run: setup
	@$(VENV)/bin/driftline run $(ARGS)

# the address reaches the shell as a variable, so that it takes no '&' or ';' in it for its own
add: export PAGE := $(value URL)
add: setup
	@test -n "$$PAGE" || { echo "Say which page: make add URL=https://example.com/"; exit 2; }
	@$(VENV)/bin/driftline add -- "$$PAGE"

test: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PYTEST) $(ARGS)

# the property tests on new examples, twenty times as many
fuzz: setup
	$(PYTEST) tests/unit --hypothesis-profile fuzz $(ARGS)

lab: setup
	@$(VENV)/bin/driftline lab experiment --quick
	@$(VENV)/bin/driftline lab speed

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
