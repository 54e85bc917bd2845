# The verbs of the project; each does all the set-up it needs (see setup.sh).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test build lint bench clean

ENV := source ./setup-env.sh;

help:  ## say what can be made
	@sed -nE 's/^([a-z]+):  ## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

run:  ## learn, replay, check and show: the whole way on this machine
	@./setup.sh run
	@$(ENV) understudy run $(ARGS)

test:  ## run every test; the last line counts them
	@./setup.sh test
	@$(ENV) python tests/run.py $(ARGS)

build:  ## set up only: packages, .venv, the player in build/bin
	@./setup.sh run

lint:  ## formatting, static checks and types
	@./setup.sh test
	@$(ENV) ruff format --check . && ruff check . && mypy
	@$(ENV) find proxies python/understudy/skel/runtime -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror

bench:  ## side-by-side timings against other programs
	@./setup.sh test
	@$(ENV) for bench in benchmarks/*.py; do echo "== $$bench"; PYTHONPATH=. python "$$bench"; done

clean:  ## remove what the build and the set-up made: build/ and .venv/
	rm -rf build .venv python/understudy.egg-info
