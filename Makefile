# make run, make test; both install what they need into .venv and frontend/node_modules.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: install run test check pytest frontend-test wheel wheel-check lock schema clean

install: $(VENV)/.installed frontend/dist/index.html

$(VENV)/.installed: requirements/bootstrap.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Tenure needs Python 3.11 or newer; name one: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/bootstrap.txt
	@# uv takes seconds for what takes pip a minute; where it does not find the index that pip is set up for, pip does it.
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt || $(PIP) --require-hashes -r requirements/dev.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

frontend/node_modules/.installed: frontend/package-lock.json frontend/package.json
	cd frontend && npm ci --no-audit --no-fund --loglevel=error
	touch $@

frontend/dist/index.html: frontend/node_modules/.installed $(shell find frontend/src frontend/index.html frontend/vite.config.ts -type f 2>/dev/null)
	cd frontend && npm run --silent build

run: install
	$(BIN)/tenure up --demo

test: install check pytest frontend-test

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src tests
	$(BIN)/lint-imports

pytest: install
	$(BIN)/pytest --numprocesses 2

frontend-test: install
	cd frontend && npm run --silent lint && npm run --silent typecheck && npm test --silent

# The wheel by way of the sdist, so that both are complete.
wheel: install
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

# The wheel in an empty environment: every module imports, and `tenure up --ephemeral` serves.
wheel-check: wheel
	sh tests/packaging/wheel_in_empty_environment.sh dist

# Locks hold hashes and no index addresses.
COMPILE := $(BIN)/uv pip compile --generate-hashes --universal --python-version 3.11 --no-header --no-annotate --quiet
lock: install
	echo 'uv>=0.13' | $(COMPILE) - -o requirements/bootstrap.txt
	$(COMPILE) pyproject.toml --group dev -o requirements/dev.txt
	$(COMPILE) pyproject.toml -o requirements/run.txt

schema: install
	$(BIN)/tenure schema > schema/schema.graphql

clean:
	rm -rf $(VENV) frontend/node_modules frontend/dist dist .mypy_cache .ruff_cache .pytest_cache
