# Every command begins with `make setup`, which builds .venv in the checkout.
SHELL := /bin/bash
PORT ?= 8000
MKB_DATA ?= var
PY := .venv/bin/python
export PORT MKB_DATA

.PHONY: setup run test lint bench clean

setup:
	@.ci/setup

run: setup
	@exec $(PY) -m mkb_site.embedded

test: setup
	@.ci/services
	@.ci/test

lint: setup
	@.ci/lint

bench: setup
	@for script in benchmarks/*.py; do echo "== $$script"; $(PY) "$$script" || exit 1; done

clean:
	rm -rf .venv var build *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
