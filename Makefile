# The one door: what a developer or CI runs is a target here, and a target does its own set-up.
.DEFAULT_GOAL := help

# Where the environment is; make test-versions names one for each Python.
ROPEWALK_VENV ?= .venv
PYTHON_IN_VENV := $(ROPEWALK_VENV)/bin/python
# Tests start hundreds of processes: what they import is compiled once, and not again by each.
unexport PYTHONDONTWRITEBYTECODE
CHECKS := check-lint check-format check-basedpyright check-mypy check-layers check-dependencies
# All tests run side by side, two processes a core (tests/conftest.py); a choice of them at once in one, which is there
# sooner.
WORKERS = $(if $(ARGS),0,auto)
BUDGET = 10
COVERED_PERCENT_MIN = 90
SIDE_BY_SIDE = --numprocesses $(WORKERS) --dist loadgroup
COMPILE = $(PYTHON_IN_VENV) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make $@" $(if $(UPGRADE),--upgrade)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s  %s\n", $$1, $$2 }' Makefile

demo: runtime ## see it work: a queue in one file, a worker that is killed, nothing lost
	@$(PYTHON_IN_VENV) -m ropewalk demo

test: development ## run the tests (ARGS="-k retry" chooses)
	@$(PYTHON_IN_VENV) -m pytest -m "not system and not planted" $(SIDE_BY_SIDE) $(ARGS)

test-system: development ## run the tests that need more than pip brings
	@$(PYTHON_IN_VENV) -m pytest -m system $(SIDE_BY_SIDE) $(ARGS)

test-versions: development ## run the tests on every Python of this machine, and the stores on every PostgreSQL (needs npm)
	@sh tests/servers/versions/run

coverage: development ## measure which branches tests reach, against a floor (with ARGS= as for test, without it)
	@rm -rf .coverage && mkdir .coverage
	@$(PYTHON_IN_VENV) -m coverage run -m pytest -m "not (system or planted or torture or drawn or hypothesis)" \
		$(SIDE_BY_SIDE) $(ARGS)
	@$(PYTHON_IN_VENV) -m coverage combine --quiet
	@$(PYTHON_IN_VENV) -m coverage report $(if $(ARGS),,--fail-under $(COVERED_PERCENT_MIN))

verify: development ## check the floor of coverage, and try what is drawn at random BUDGET=10 times as often (ARGS= as for test)
	@$(if $(ARGS),,$(MAKE) --no-print-directory coverage)
	@ROPEWALK_BUDGET=$(BUDGET) ROPEWALK_EXAMPLES=$$((60 * $(BUDGET))) \
		$(PYTHON_IN_VENV) -m pytest -m "(hypothesis or drawn or torture or planted) and not system" $(SIDE_BY_SIDE) $(ARGS)

check: development ## lint, format, types (twice), layers, dependencies
	@$(MAKE) --no-print-directory --keep-going --jobs $(if $(filter output-sync,$(.FEATURES)),--output-sync) $(CHECKS)

api: development ## write the snapshots of the public API and of the HTTP API anew
	@$(PYTHON_IN_VENV) -m tests.project.public_api
	@$(PYTHON_IN_VENV) -m tests.http.openapi_copy

bench: development ## measure (ARGS= goes to the benchmarks)
	@$(PYTHON_IN_VENV) -m benchmarks $(ARGS)

bench-workflows: development ## measure groups, fan-ins and chains beside plain jobs (ARGS= goes to it)
	@$(PYTHON_IN_VENV) -m benchmarks.workflows $(ARGS)

bench-overhead: development ## measure what metrics, traces, events and kept log lines cost (ARGS= goes to it)
	@$(PYTHON_IN_VENV) -m benchmarks.overhead $(ARGS)

bench-peers: development ## measure beside other queues, which are installed first (needs Node; ARGS= as for bench)
	@sh benchmarks/peers/install
	@$(PYTHON_IN_VENV) -m benchmarks --peers $(ARGS)

bench-statistics: development ## measure statistics over a week of a million jobs (ARGS= goes to it)
	@$(PYTHON_IN_VENV) -m benchmarks.statistics $(ARGS)

bench-growth: development ## measure with a million finished jobs and with a transaction held open (ARGS= goes to it)
	@$(PYTHON_IN_VENV) -m benchmarks.growth $(ARGS)

lock: development ## write requirements/*.txt anew (UPGRADE=1 takes newer versions)
	@$(COMPILE) --group bootstrap -o requirements/bootstrap.txt
	@$(COMPILE) pyproject.toml --extra cli --extra sqlite -o requirements/runtime.txt
	@$(COMPILE) pyproject.toml --all-extras --group dev -c requirements/bootstrap.txt -c requirements/runtime.txt \
		-o requirements/dev.txt

lock-peers: development ## write the locks of the queues measured beside this one anew (UPGRADE=1 as for lock)
	@$(COMPILE) --group peers -o requirements/peers.txt
	@cd benchmarks/peers/node && npm $(if $(UPGRADE),update,install) --package-lock-only --no-audit --no-fund --silent

release: development ## build sdist and wheel, try both in fresh environments, print the notes
	@$(PYTHON_IN_VENV) -m release

clean: ## remove the environments and every cache
	@rm -rf .venv .venv-* tests/servers/versions/node_modules benchmarks/peers/node/node_modules .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .coverage dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

runtime:
	@ROPEWALK_VENV=$(ROPEWALK_VENV) sh requirements/install runtime

development:
	@ROPEWALK_VENV=$(ROPEWALK_VENV) sh requirements/install dev

check-lint: RUN = ruff check --quiet .
check-format: RUN = ruff format --quiet --check .
check-basedpyright: RUN = basedpyright
check-mypy: RUN = mypy
check-layers: RUN = lint-imports
check-dependencies: RUN = deptry src

# One line when all is well, everything it said when not.
$(CHECKS):
	@said=$$($(ROPEWALK_VENV)/bin/$(RUN) 2>&1) && echo "ok    $(RUN)" || { printf '%s\n' "$$said"; echo "FAIL  $(RUN)"; exit 1; }

.PHONY: help demo test test-system test-versions coverage verify check api bench bench-workflows bench-overhead bench-peers bench-statistics bench-growth lock lock-peers release clean runtime development $(CHECKS)
