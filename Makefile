# The main targets; each does the setup that it needs (see setup.sh).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test nightly fuzz build lint bench docs dist image rehearse clean

ENV := source ./setup-env.sh;
export ARGS ?=
export SYSTEM BASE
define REHEARSE_USAGE
{ echo "usage: make rehearse SYSTEM=NAME [ARGS='arguments for ReFrame']"; \
  echo "       make rehearse FS=ceph [ARGS='--list | CASE...']"; \
  echo "       make rehearse FS=slow [ARGS='--list | STORAGE...']"; } >&2; exit 2
endef

help:  ## list the targets
	@sed -nE 's/^([a-z]+):  ## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

run:  ## describe, replay, check and show example applications
	@./setup.sh run
	@$(ENV) understudy run $(ARGS)

test:  ## run all tests; the last line counts them
	@./setup.sh test
	@$(ENV) PYTHONPATH=. python -m tests.run $(ARGS)

nightly:  ## run what takes long or needs services: the rehearsals, recordings under Darshan, the container image
	@./setup.sh test
	@for kind in rehearse-slurm rehearse-ceph rehearse-slow image; do ./setup.sh "$$kind"; done
	@$(ENV) PYTHONPATH=. python -m pytest nightly $(ARGS)

fuzz:  ## describe damaged logs for a minute, others each time
	@./setup.sh test
	@$(ENV) python -m tests.fuzz_describe --seconds 60 --seed "$$(date +%s)" $(ARGS)

build:  ## setup only: packages, .venv, the player in build/bin
	@./setup.sh run

lint:  ## check formatting, style and types
	@./setup.sh test
	@$(ENV) ruff format --check . && ruff check . && mypy
	@$(ENV) find proxies studies -path '*/templates' -prune -o -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror

bench:  ## compare the speed with other programs
	@./setup.sh test
	@$(ENV) for bench in benchmarks/*.py; do echo "== $$bench"; PYTHONPATH=. python "$$bench"; done

docs:  ## make the site of the documentation in build/site/, and check its links
	@./setup.sh test
	@$(ENV) NO_MKDOCS_2_WARNING=1 mkdocs build

dist:  ## make of HEAD the source distribution, the wheels, those of the studies too, and a bill of materials in dist/
	@./setup.sh run
	@rm -f dist/understudy-*
	@$(ENV) python packaging/release.py dist
	@$(ENV) python packaging/sbom.py dist/understudy-*.whl

image:  ## make the container image localhost/understudy of Debian 13, or on BASE=IMAGE
	@./setup.sh image
	@rm -f dist/understudy-*.tar.gz
	@$(ENV) hatchling build -t sdist -d dist
	@packaging/make-image.sh

rehearse:  ## run the checks of SYSTEM on a batch system of four nodes on this host, or cases on FS=ceph, or replicas on FS=slow
	@$(if $(or $(filter ceph slow,$(FS)),$(if $(FS),,$(SYSTEM))),,$(REHEARSE_USAGE))
	@./setup.sh rehearse-$(or $(FS),slurm)
	@$(ENV) PYTHONPATH=. python -m nightly.rehearsal.$(if $(FS),$(FS) $(ARGS),slurm "$$SYSTEM" --more "$$ARGS")

clean:  ## remove build/ and .venv/
	rm -rf build .venv python/understudy.egg-info
