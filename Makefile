# Every target sets up what it needs. `make test` and the checks share .venv; the demo has an environment of its own, as small
# as a user's. Both are rebuilt when pyproject.toml or constraints.txt changes.

PYTHON ?= python3
WORKERS ?= 2

TOOLS := .venv/bin/python -m
STAMP := .installed
INSTALL := -m pip install -qq --disable-pip-version-check
# The first pip to know --group.
ABLE_PIP := "pip>=25.1"

.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs bench clean

help:
	@echo "make demo    the whole story on real predictions that ship with the package, into demo-output/"
	@echo "make test    all tests, doctests and documentation snippets"
	@echo "make lint    style, types and layers"
	@echo "make docs    the documentation, into site/"
	@echo "make bench   speed and tightness against other packages"
	@echo "make format  rewrite the sources in the one style"
	@echo "make clean   remove everything that make made"

demo: .venv-demo/$(STAMP)
	.venv-demo/bin/pacbound demo -o demo-output

test: .venv/$(STAMP)
	$(TOOLS) pytest -n $(WORKERS)

lint: .venv/$(STAMP)
	$(TOOLS) ruff check .
	$(TOOLS) ruff format --check .
	$(TOOLS) mypy
	.venv/bin/lint-imports

format: .venv/$(STAMP)
	$(TOOLS) ruff check --fix .
	$(TOOLS) ruff format .

docs: .venv/$(STAMP)
	NO_MKDOCS_2_WARNING=1 $(TOOLS) mkdocs build --strict
	@! grep -rE '<(script|link|img|iframe)[^>]* (src|href)="?(https?:)?//' site --include='*.html' || \
		{ echo "The site loads something from elsewhere; it must work without a network." >&2; exit 1; }

bench: .venv/$(STAMP)-bench
	$(TOOLS) benchmarks

clean:
	rm -rf .venv .venv-demo demo-output site dist .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find src tests experiments benchmarks -name __pycache__ -prune -exec rm -rf {} +

.venv-demo/$(STAMP): pyproject.toml constraints.txt
	test -x .venv-demo/bin/python || $(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python $(INSTALL) --upgrade $(ABLE_PIP)
	.venv-demo/bin/python $(INSTALL) -c constraints.txt -e ".[cli,report]"
	touch $@

# torch first: the constraint picks a local CPU build where there is one, and what comes after it is then satisfied.
.venv/$(STAMP): pyproject.toml constraints.txt
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python $(INSTALL) --upgrade $(ABLE_PIP)
	.venv/bin/python $(INSTALL) -c constraints.txt torch
	.venv/bin/python $(INSTALL) -c constraints.txt --group test --group peers --group lint --group docs -e ".[all]"
	touch $@

.venv/$(STAMP)-bench: .venv/$(STAMP)
	.venv/bin/python $(INSTALL) -c constraints.txt --group bench
	touch $@
