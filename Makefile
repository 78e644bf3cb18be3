# Every target sets up what it needs. `make test` and the checks share .venv; the demo, the core alone
# and the lowest versions have environments of their own. They are rebuilt when pyproject.toml or the
# constraints change.

PYTHON ?= python3
WORKERS ?= 2
FUZZ_SECONDS ?= 3600
TESTS ?=
# A plain pytest leaves out what is slow, too, by pyproject.toml.
MOST := -m "not long and not product"
THE_LONG := -m "long and not product"
BOTH := -m "not product"
ALL := -m ""
ONE_IN ?= 1
# The data of `make experiments`: OUTPUTS, TOP_FIVE, APIS, LOGITS, DATA, as `python -m experiments --help` says.
EXPERIMENT_DATA := $(if $(OUTPUTS),--outputs $(OUTPUTS)) $(if $(TOP_FIVE),--top-five $(TOP_FIVE)) \
	$(if $(APIS),--apis $(APIS)) $(if $(LOGITS),--logits $(LOGITS)) $(if $(DATA),--data $(DATA))

BIN := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
TOOLS := .venv/$(BIN)/python -m
STAMP := .installed
INSTALL := -m pip install -qq --disable-pip-version-check
# The first pip to know --group.
ABLE_PIP := "pip>=25.1"

# Compiled modules are kept, whatever the machine's default: tests start hundreds of processes, and each
# would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all test-core test-lowest coverage fuzz fuzz-atheris words lint format docs bench \
	experiments experiments-quick dist clean

help:
	@echo "make demo         six steps on predictions and simulated rollouts, into demo-output/"
	@echo "make test         tests, doctests and documentation snippets, in random order"
	@echo "make test-slow    the long ones: Spark, processes, simulations, the rest of products"
	@echo "make test-all     both, with every case of every product, as every night"
	@echo "make test-core    what needs no extra, with numpy and scipy alone"
	@echo "make test-lowest  with the lowest versions that pyproject.toml allows"
	@echo "make coverage     which lines the tests run, into htmlcov/"
	@echo "make fuzz         damaged files for FUZZ_SECONDS (an hour); make fuzz-atheris: by coverage"
	@echo "make lint         style, types, layers and spelling"
	@echo "make docs         the documentation, into site/"
	@echo "make words        words of the README and of each page, with their limits"
	@echo "make bench        speed and tightness against other packages"
	@echo "make experiments  the paper's tables and figures, into experiments/runs/; -quick: small ones"
	@echo "make dist         wheel and source distribution, checked and installed, into dist/"
	@echo "make format       rewrite the sources in the one style"
	@echo "make clean        remove everything that make made"

demo: .venv-demo/$(STAMP)
	.venv-demo/$(BIN)/pacbound demo -o demo-output

test: .venv/$(STAMP)
	$(TOOLS) pytest -n $(WORKERS) $(MOST)

test-slow: .venv/$(STAMP)
	$(TOOLS) pytest -n $(WORKERS) $(THE_LONG)

test-all: .venv/$(STAMP)
	$(TOOLS) pytest -n $(WORKERS) $(ALL)

# The fast tests. What needs an extra that is not there is skipped, and the summary says what and why.
# Left out: the words of docstrings.
ELSEWHERE := --skip-missing --ignore=tests/surface/test_docstrings.py

# `make test-core ONE_IN=4` runs a quarter of them, always the same.
test-core: .venv-core/$(STAMP)
	.venv-core/$(BIN)/python -m pytest -n $(WORKERS) $(ELSEWHERE) --one-in $(ONE_IN)

test-lowest: .venv-lowest/$(STAMP)
	.venv-lowest/$(BIN)/python -m pytest -n $(WORKERS) $(ELSEWHERE) --one-in $(ONE_IN)

# `make coverage TESTS=tests/tally` for a part.
coverage: .venv/$(STAMP)-coverage
	$(TOOLS) pytest -n $(WORKERS) $(BOTH) --cov --cov-report=term:skip-covered --cov-report=html $(TESTS)

fuzz: .venv/$(STAMP)
	$(TOOLS) tests.fuzz --seconds $(FUZZ_SECONDS)

# Guided by coverage, for the readers that are written in Python. Linux only.
fuzz-atheris: .venv-fuzz/$(STAMP)
	.venv-fuzz/$(BIN)/python -m tests.fuzz.with_atheris -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096

words:
	@$(PYTHON) tools/words.py

lint: .venv/$(STAMP)
	$(TOOLS) ruff check .
	$(TOOLS) ruff format --check .
	$(TOOLS) mypy
	.venv/$(BIN)/lint-imports
	.venv/$(BIN)/codespell

format: .venv/$(STAMP)
	$(TOOLS) ruff check --fix .
	$(TOOLS) ruff format .

docs: .venv/$(STAMP)
	NO_MKDOCS_2_WARNING=1 $(TOOLS) mkdocs build --strict
	@! grep -rE '<(script|link|img|iframe)[^>]* (src|href)="?(https?:)?//' site --include='*.html' || \
		{ echo "The site loads something from elsewhere; it must work without a network." >&2; exit 1; }

bench: .venv/$(STAMP)-bench
	$(TOOLS) benchmarks

# What is done is not run again. `make experiments OUTPUTS=... TOP_FIVE=...` names the data.
experiments: .venv/$(STAMP)
	$(TOOLS) experiments $(EXPERIMENT_DATA)

# Generated data and what ships with the package; always from the start.
experiments-quick: .venv/$(STAMP)
	rm -rf experiments/runs/quick
	$(TOOLS) experiments --quick --out experiments/runs/quick

# The wheel goes into an empty environment outside the repository, and must be whole without it. Its demo
# runs as the README has it, with uvx.
dist: .venv-dist/$(STAMP)
	rm -rf dist
	.venv-dist/$(BIN)/python -m build --no-isolation
	.venv-dist/$(BIN)/python -m twine check --strict dist/*
	rm -rf .venv-wheel && $(PYTHON) -m venv .venv-wheel
	.venv-wheel/$(BIN)/python $(INSTALL) -c constraints.txt dist/*.whl
	cd dist && ../.venv-wheel/$(BIN)/python -I -c "import pacbound, pydoc; \
		pydoc.render_doc(pacbound); print(pacbound.__version__, pacbound.__file__); \
		from pacbound.data import fashion_mnist; fashion_mnist(); \
		assert pacbound.calibrate([0.9] * 60, [True] * 60, delta=0.05).verify()"
	.venv-dist/$(BIN)/uvx --quiet --isolated --no-config --python $(PYTHON) --constraints constraints.txt \
		--from "$$(ls dist/*.whl)[cli,report]" pacbound demo -o .venv-wheel/demo-output

clean:
	rm -rf .venv .venv-* demo-output site dist htmlcov .coverage* .hypothesis fuzz-failures
	rm -rf .mypy_cache .ruff_cache .import_linter_cache
	find src tests experiments benchmarks -name __pycache__ -prune -exec rm -rf {} +

.venv-demo/$(STAMP): pyproject.toml constraints.txt
	test -x .venv-demo/$(BIN)/python || $(PYTHON) -m venv .venv-demo
	.venv-demo/$(BIN)/python $(INSTALL) --upgrade $(ABLE_PIP)
	.venv-demo/$(BIN)/python $(INSTALL) -c constraints.txt -e ".[cli,report]"
	touch $@

.venv-core/$(STAMP): pyproject.toml constraints.txt
	test -x .venv-core/$(BIN)/python || $(PYTHON) -m venv .venv-core
	.venv-core/$(BIN)/python $(INSTALL) --upgrade $(ABLE_PIP)
	.venv-core/$(BIN)/python $(INSTALL) -c constraints.txt --group test -e .
	touch $@

# Without torch and Spark, which are large and pinned by nothing here but their API.
.venv-lowest/$(STAMP): pyproject.toml constraints-lowest.txt
	test -x .venv-lowest/$(BIN)/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/$(BIN)/python $(INSTALL) --upgrade $(ABLE_PIP)
	.venv-lowest/$(BIN)/python $(INSTALL) -c constraints-lowest.txt --group test \
		-e ".[cli,frames,polars,report,sklearn]" gymnasium joblib
	touch $@

# torch first: the constraint picks a local CPU build where there is one, and what comes after it is then satisfied.
.venv/$(STAMP): pyproject.toml constraints.txt
	test -x .venv/$(BIN)/python || $(PYTHON) -m venv .venv
	.venv/$(BIN)/python $(INSTALL) --upgrade $(ABLE_PIP)
	.venv/$(BIN)/python $(INSTALL) -c constraints.txt torch
	.venv/$(BIN)/python $(INSTALL) -c constraints.txt --group test --group peers --group lint --group docs -e ".[all]"
	touch $@

.venv-dist/$(STAMP): pyproject.toml constraints.txt
	test -x .venv-dist/$(BIN)/python || $(PYTHON) -m venv .venv-dist
	.venv-dist/$(BIN)/python $(INSTALL) --upgrade $(ABLE_PIP)
	.venv-dist/$(BIN)/python $(INSTALL) -c constraints.txt --group dist
	touch $@

.venv-fuzz/$(STAMP): pyproject.toml constraints.txt
	test -x .venv-fuzz/$(BIN)/python || $(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/$(BIN)/python $(INSTALL) --upgrade $(ABLE_PIP)
	.venv-fuzz/$(BIN)/python $(INSTALL) -c constraints.txt --group test --group fuzz -e ".[frames]"
	touch $@

.venv/$(STAMP)-coverage: .venv/$(STAMP)
	.venv/$(BIN)/python $(INSTALL) -c constraints.txt --group coverage
	touch $@

.venv/$(STAMP)-bench: .venv/$(STAMP)
	.venv/$(BIN)/python $(INSTALL) -c constraints.txt --group bench
	touch $@
