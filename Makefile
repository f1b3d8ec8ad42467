# make demo   sets everything up and shows what kafkashark makes of a capture that ships with it
# make test   sets everything up and runs the tests: the same ones, with the same examples, each time
# make fuzz   looks for examples that fail for MINUTES=10, prints them and keeps them in .hypothesis

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

MINUTES ?= 10

.PHONY: env demo test fuzz lint broker bench clean

env: $(READY)

# Without ensurepip, which a bare Debian lacks; the pip outside installs into the environment.
$(READY): pyproject.toml
	$(PYTHON) -m venv --without-pip .venv
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check -e '.[spark,dev]'
	touch $(READY)

demo: env
	$(BIN)/python -m tools.demo

test: env
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not broker'

fuzz: env
	$(BIN)/python -m tools.fuzz --minutes $(MINUTES)

# Needs Maven and Java 17; says so and skips where they are missing.
broker: env
	$(BIN)/python -m pytest -m broker

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: env
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv build dist *.egg-info
