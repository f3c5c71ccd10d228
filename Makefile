# Two commands for newcomers: `make run` watches pages, `make test` runs every test. Each installs what it needs.

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# optional parts of Driftline for `make run`, separated by commas: browser, pdf, postgres, lab
EXTRAS ?=
# one process per core; a process that has run out of tests takes half of another one's
PARALLEL := --numprocesses auto --dist worksteal

comma := ,
USER_READY := $(VENV)/.ready-user$(addprefix -,$(subst $(comma),-,$(EXTRAS)))
DEVELOPER_READY := $(VENV)/.ready-developer
DOCS_READY := $(VENV)/.ready-docs

.PHONY: help run add test setup fuzz lab docs reference clean

help:
	@echo "make run                 watch pages (options: make run ARGS='--every 10m'; EXTRAS=browser,pdf,postgres)"
	@echo "make add URL=...         add a page to watch"
	@echo "make test                lint, check types and imports, run every test, print the coverage"
	@echo "                         (some tests: make test ARGS='-k words')"
	@echo "make fuzz                the property tests on new examples, many more of them (minutes)"
	@echo "make lab                 the paper's experiment and the speed comparison (minutes)"
	@echo "make docs                build the documentation site in site/"
	@echo "make reference           regenerate docs/reference/cli.md from the command"
	@echo "make clean               remove the virtual environment, caches and the built site"

# what a user needs, and nothing else
$(USER_READY): pyproject.toml scripts/setup
	@scripts/setup $(VENV) "$(EXTRAS)"
	@touch $@

# what the tests need besides: tools, every optional part, PostgreSQL, Chromium
$(DEVELOPER_READY): pyproject.toml scripts/setup
	@scripts/setup $(VENV) dev
	@touch $@ $(VENV)/.ready-user

$(DOCS_READY): pyproject.toml scripts/setup
	@scripts/setup $(VENV) docs
	@touch $@

setup: $(DEVELOPER_READY)

run: $(USER_READY)
	@$(BIN)/driftline run $(ARGS)

# the URL reaches the shell as a variable, so that an '&' or ';' in it is not taken for shell syntax
add: export PAGE := $(value URL)
add: $(USER_READY)
	@test -n "$$PAGE" || { echo "Name the page: make add URL=https://example.com/"; exit 2; }
	@$(BIN)/driftline add -- "$$PAGE"

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/slipcover --source src/driftline --json --out .coverage.json -m pytest $(PARALLEL) $(ARGS)
	@$(BIN)/python scripts/coverage_summary.py .coverage.json

# twenty times as many examples, and new ones each time
fuzz: setup
	$(BIN)/pytest $(PARALLEL) tests/unit --hypothesis-profile fuzz $(ARGS)

lab: setup
	@$(BIN)/driftline lab experiment --quick
	@$(BIN)/driftline lab speed

reference: setup
	$(BIN)/python scripts/cli_reference.py docs/reference/cli.md

docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict $(ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage.json site
