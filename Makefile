VENV := .venv
PYTHON := $(VENV)/bin/python
# What running takes, what developing takes beside it, and what building the site takes beside both.
RUNNING := $(VENV)/.running
INSTALLED := $(VENV)/.installed
SITED := $(VENV)/.sited
PIP := $(PYTHON) -m pip --disable-pip-version-check --no-input --quiet
COMPILE := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command "make lock"
# Locks that are installed into one environment name the same versions.
LIKE_DEV := --constraint requirements/dev.lock

BROWSER := src/penstock/server/dashboard/browser
SHIPPED := agents events fast postgres recorder redis remote server

# A name on PATH may be a stub that cannot run, so each candidate is tried.
CANDIDATES := python3.13 python3.12 python3.11 python3
SUPPORTED := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test test-all outside long times check fix docs contract site bench bench-events bench-recorder bench-agents compare torture lock clean

# The tests start hundreds of processes: each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(RUNNING) ## Set up if needed, then start a live demonstration with its dashboard (ARGS="..." is passed on)
	$(VENV)/bin/penstock up penstock.demo.live:app --open --log-level error $(ARGS)

# Tests that wait on real clocks leave cores idle: four workers fill two.
PYTEST := $(PYTHON) -m pytest -n 4 --dist worksteal

test: $(INSTALLED) ## Run the tests of every subject on every store (ARGS="tests/model -k retry" narrows them)
	@tools/install_chromium.sh $(VENV)/.chromium-tried
	$(PYTEST) --durations 10 --durations-min 0.5 $(ARGS)

test-all: $(INSTALLED) ## Run every deterministic test, then `make test` on the other supported Pythons
	@tools/install_chromium.sh $(VENV)/.chromium-tried
	PENSTOCK_TIER=all $(PYTEST) $(ARGS)
	tools/other_pythons.sh $(PYTHON) '$(ARGS)'

outside: $(INSTALLED) ## Run other people's tools and clients against Penstock (may need Node and half an hour)
	@tools/get_promtool.sh $(VENV)/prometheus
	PATH="$(abspath $(VENV))/prometheus/usr/bin:$$PATH" PENSTOCK_TIER=outside $(PYTHON) -m pytest --timeout 1800 $(ARGS)

long: $(INSTALLED) ## Run the tests with random input, on every store and every flavour of it
	@tools/install_chromium.sh $(VENV)/.chromium-tried
	PENSTOCK_TIER=long $(PYTHON) -m pytest -n 3 --dist worksteal --timeout 1800 $(ARGS)

times: $(INSTALLED) ## Show the processor time of the tests by folder and tier (ARGS="--tier test")
	$(PYTHON) tools/test_times.py $(ARGS)

check: $(SITED) ## Check format, lint, types, import arrows, docs, their site and deployment files
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(PYTHON) -m mypy --strict src proof
	$(VENV)/bin/basedpyright
	$(VENV)/bin/lint-imports
	$(PYTHON) tools/check_docs.py
	$(PYTHON) tools/check_deploy.py
	$(PYTHON) tools/check_scripts.py
	$(PYTHON) tools/draw_dst.py --check
	$(PYTHON) tools/build_site.py

fix: $(INSTALLED) ## Format the code and apply safe lint fixes
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs: $(INSTALLED) ## Regenerate the docs that are made from code
	$(PYTHON) tools/generate_docs.py
	$(PYTHON) tools/draw_dst.py

contract: $(INSTALLED) ## Compile the registry that learnings are published to (uv brings the compiler)
	$(PYTHON) tools/build_contract.py

site: $(SITED) ## Build the documentation as a site, into build/site (VERSION=1.2 names its folder)
	$(PYTHON) tools/build_site.py $(VERSION)

bench: $(INSTALLED) ## Measure speed against the raw limit and a peer
	$(PYTHON) -m proof.bench $(ARGS)

bench-events: $(INSTALLED) ## Measure how fast events are appended, applied and compressed
	$(PYTHON) -m proof.bench.events $(ARGS)

bench-recorder: $(INSTALLED) ## Measure the hook, the sanitiser, sessions, imports and the recorder's jobs
	$(PYTHON) -m proof.bench.applications recorder

bench-agents: $(INSTALLED) ## Measure the agent workers' jobs, vectors, memory, webhooks and quotas
	$(PYTHON) -m proof.bench.applications agents

compare: $(INSTALLED) ## Measure speed beside other job systems, installed for it
	$(PYTHON) -m proof.bench --compare $(ARGS)

torture: $(INSTALLED) ## Kill workers and servers over 10,000 jobs on every store, and account for each
	for store in sqlite postgres redis postgres+redis; do \
		$(PYTHON) -m proof.torture --store $$store --jobs 10000 --kills 200 $(ARGS) || exit 1; \
	done
	PENSTOCK_TIER=all PENSTOCK_TORTURE=1 $(PYTHON) -m pytest tests/faults tests/server/api/test_schema.py -n 2 --timeout 1800

lock: $(INSTALLED) ## Rewrite the lock files (ARGS=--upgrade takes newer versions)
	$(COMPILE) $(ARGS) pyproject.toml requirements/dev.in --output-file requirements/dev.lock
	$(COMPILE) $(ARGS) $(LIKE_DEV) requirements/build.in --output-file requirements/build.lock
	$(COMPILE) $(ARGS) $(LIKE_DEV) pyproject.toml $(SHIPPED:%=--extra %) --output-file requirements/deploy.lock
	$(COMPILE) $(ARGS) $(LIKE_DEV) requirements/site.in --output-file requirements/site.lock
	for peer in requirements/bench/*.in; do \
		$(COMPILE) $(ARGS) $$peer --output-file $${peer%.in}.lock || exit 1; \
	done
	! command -v npm >/dev/null || for folder in benchmarks/peers/bullmq_node $(BROWSER) docs/site; do \
		npm install --prefix $$folder --package-lock-only --omit-lockfile-registry-resolved \
			--ignore-scripts --no-audit --no-fund || exit 1; \
	done

clean: ## Remove the environment, caches and build output
	rm -rf $(VENV) .venv-3.* benchmarks/.venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	rm -rf src/penstock/server/dashboard/static/vendor
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment that works is kept, so a changed lock installs only what changed.
$(RUNNING): pyproject.toml hatch_build.py requirements/build.lock requirements/deploy.lock $(BROWSER)/package-lock.json
	@if ! { $(PYTHON) -c '$(SUPPORTED)' && $(PYTHON) -m pip --version; } >/dev/null 2>&1; then \
		found=; \
		for candidate in $(CANDIDATES); do \
			if $$candidate -c '$(SUPPORTED)' >/dev/null 2>&1; then found=$$candidate; break; fi; \
		done; \
		if [ -z "$$found" ]; then \
			echo "Penstock needs Python 3.11 or newer with its venv module, and none of these works: $(CANDIDATES)." >&2; \
			exit 1; \
		fi; \
		echo "Making $(VENV) with $$found; this happens once and takes about half a minute."; \
		$$found -m venv --clear $(VENV); \
	fi
	@$(PIP) install --require-hashes -r requirements/build.lock -r requirements/deploy.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(INSTALLED): $(RUNNING) requirements/dev.lock
	@$(PIP) install --require-hashes -r requirements/dev.lock
	@touch $@

$(SITED): $(INSTALLED) requirements/site.lock
	@$(PIP) install --require-hashes -r requirements/site.lock
	@touch $@
