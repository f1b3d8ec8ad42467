# make demo   sets everything up and shows what kafkashark makes of a capture that ships with it
# make test   sets everything up and runs the fast tests: the same, with the same examples, each time
# make check  all that CI runs: lint, types, imports, the fast tests, then the long ones, Spark's,
#             those with a real broker, and a part of them in other environments
# make fuzz   looks for examples that fail for MINUTES=10, prints them and keeps them in .hypothesis

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
WARM := .venv/.warm

MINUTES ?= 10

# Tests start some hundred processes: none of them compiles Python's own files anew.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache

# What `make test` leaves to `make check`.
FAST := not (broker or long or spark)

.PHONY: env demo test check long spark broker versions fuzz lint bench clean

env: $(READY)

# Without ensurepip, which a bare Debian lacks; the pip outside installs into the environment.
$(READY): pyproject.toml
	$(PYTHON) -m venv --without-pip .venv
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check -e '.[spark,dev]'
	touch $(READY)

# The loops are compiled once, so that no test waits for a compiler.
$(WARM): $(READY)
	$(BIN)/python -m tools.warm
	touch $(WARM)

demo: env
	$(BIN)/python -m tools.demo

test: env $(WARM)
	$(BIN)/python -m pytest -n auto --dist worksteal -m '$(FAST)'

# In the order of how soon they fail.
check: lint test long spark broker versions

# All captures in each comparison, and all examples of the property tests.
long: env $(WARM)
	$(BIN)/python -m pytest -n auto --dist worksteal --hypothesis-profile=long \
		-m '(long or hypothesis) and not (broker or spark)'

# Needs Java; one process, as a session of Spark takes all cores.
spark: env $(WARM)
	$(BIN)/python -m pytest -m spark

fuzz: env
	$(BIN)/python -m tools.fuzz --minutes $(MINUTES)

# Needs Maven and Java 17; says so and skips where they are missing.
broker: env
	$(BIN)/python -m pytest -m broker

# The lowest versions that pyproject.toml allows, and other Pythons that are installed here.
versions: env
	$(BIN)/python -m tools.versions

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: env
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .venvs build dist *.egg-info
