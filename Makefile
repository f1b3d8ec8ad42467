# make demo   sets up what the demo needs, and shows what kafkashark makes of a capture that ships with it
# make test   sets everything up and runs the fast tests: the same, with the same examples, each time
# make check  all that CI runs, side by side: lint, types, imports, the fast tests, and a share of the
#             long ones, Spark's, those with a real broker, and those in other environments; the
#             commits of seven days in a row run all of them. Prints what each part took
# make full   the same, with all tests: before a change is called done, and once a week
# make site   builds the pages of docs/, and of each command, rule, advice and API, in build/site
# make gallery   asks brokers by `conform --target`, and writes docs/gallery.md; needs Java, Maven, kfakeserver
# make wheel  builds dist/kafkashark-*.whl, with compiled kernels
# make fuzz   looks for examples that fail for MINUTES=10, prints them and keeps them in .hypothesis
# make mutants ROOM=timeline/groups   prints small faults in its code that its tests do not notice

PYTHON ?= python3
BIN := .venv/bin

# Empty without a C compiler. It is part of the stamps' names: once there is one, all is set up anew.
COMPILED := $(shell $(PYTHON) -B -m tools.kernels.compiler && echo -compiled)
DEMO := .venv/.demo$(COMPILED)
READY := .venv/.ready$(COMPILED)

# Files with kernels: an older build of them is of no use to the demo.
KERNELS := $(shell grep -rlx --include='*.py' '@Kernel\|@device_function' dissector replay pipeline timeline)

MINUTES ?= 10
ROOM ?= timeline/groups

# Tests in several processes; those of a share (SHARE=3/7), or all.
WORKERS ?= auto
SPREAD := -n $(WORKERS) --dist worksteal
SHARED := $(if $(SHARE),--share $(SHARE))
PYTEST := $(BIN)/python -m pytest

# The parts of `make check`: a lane's one after the other, those that fail soon first, beside the
# other lane. Each of the second lane is one process that waits much.
LANES := lint,test,long,checked,versions,wheel-test broker,spark

# Tests start some hundred processes: none of them compiles Python's own files anew.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache

# What runs with checked kernels.
CHECKED := tests/dissector/kernel tests/dissector/capture tests/dissector/engine tests/dissector/view \
	tests/dissector/query/contents tests/dissector/values/steps \
	tests/dissector/protocol/records tests/dissector/redaction/windows \
	tests/dissector/redaction/compression tests/dissector/redaction/packets \
	tests/dissector/test_repro.py tests/dissector/test_spoiled.py \
	tests/conform/test_mutations.py tests/replay/templates tests/pipeline/split tests/timeline/output

# What `make test` runs without a C compiler: all tests would take some two hours.
UNCOMPILED := tests/dissector/protocol tests/conform/rules tests/cluster/fields
NO_COMPILER := Without a C compiler only $(UNCOMPILED) are run. For all tests: \
	apt-get install gcc python3-dev (macOS: xcode-select --install).

# What `make test` leaves to the other parts. No test asks for log records, and catching them costs
# a tenth of what a small test takes.
FAST := not (broker or long or spark)

.PHONY: env kernels demo test check full long checked spark broker versions wheel-test fuzz mutants lint bench wheel \
	site gallery clean

env: $(READY)

$(DEMO): EXTRAS := mock
$(DEMO): $(KERNELS)
$(READY): EXTRAS := spark,dev

# Without ensurepip, which a bare Debian lacks; the pip outside installs into the environment.
$(DEMO) $(READY): pyproject.toml setup.py
	$(PYTHON) -m venv --without-pip .venv
	$(PYTHON) -m pip --python $(BIN)/python install --disable-pip-version-check -e '.[$(EXTRAS)]'
	touch $(DEMO) $@

# Builds the kernels whose sources have changed; `make env` has built all of them.
kernels: env
	$(if $(COMPILED),$(BIN)/python -m tools.kernels,@echo "$(NO_COMPILER)")

demo: $(DEMO)
	$(BIN)/kafkashark demo

test: kernels
	$(PYTEST) $(SPREAD) -p no:logging -m '$(FAST)' $(if $(COMPILED),,$(UNCOMPILED))

check: kernels
	$(BIN)/python -m tools.checks --share $(LANES)

full: kernels
	$(BIN)/python -m tools.checks $(LANES)

# All captures in each comparison, and all examples of the property tests.
long: kernels
	$(PYTEST) $(SPREAD) $(SHARED) --hypothesis-profile=long \
		-m '(long or hypothesis) and not (broker or spark)'

# Kernels that check every index, on hostile bytes, the corpus and damaged captures.
checked: env
	$(BIN)/python -m tools.kernels --checked
	KAFKASHARK_CHECKED=1 $(PYTEST) $(SPREAD) $(SHARED) -m 'not (broker or spark)' $(CHECKED)

# Needs Java; one process, as a session of Spark takes all cores.
spark: kernels
	$(PYTEST) $(SHARED) -m spark

fuzz: kernels
	$(BIN)/python -m tools.fuzz --minutes $(MINUTES)

mutants: kernels
	$(BIN)/python -m tools.mutants $(ROOM)

# Needs Maven and Java 17; says so and skips where they are missing.
broker: kernels
	$(PYTEST) $(SHARED) -m broker

# The lowest versions that pyproject.toml allows, and other Pythons that are installed here.
versions: kernels
	$(BIN)/python -m tools.versions $(SHARED)

# The wheel as it is installed, with and without extras.
wheel-test: env
	$(BIN)/python -m tools.wheel --test

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# `make bench NAMES="start commands"` runs some groups.
bench: kernels
	$(BIN)/python -m benchmarks $(NAMES)

wheel: env
	$(BIN)/python -m tools.wheel

# Strictly: a link that leads nowhere is an error.
site: env
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

gallery: kernels
	$(BIN)/python -m tools.gallery --write

clean:
	rm -rf .venv .venvs build dist *.egg-info
	find dissector replay pipeline timeline tests -name "_kernels*.so" -delete
