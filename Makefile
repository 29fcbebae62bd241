# Everything a newcomer types. Each target sets up what it needs by itself.

PYTHON ?= python3
DOCS ?=
PEERS ?=
TESTS ?=
SCREENSHOTS ?=
ARGS ?= --n 2000 --embed hash --repeat 3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup
SETUP_DEV := $(VENV)/.setup-dev

# Some images switch bytecode off; then each process the tests start, some thousands, compiles all our modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help ingest dev test test-servers test-browser planted-bugs check bench bench-search bench-parse bench-state bench-api bench-llm bench-peers lock clean

help:  ## Show the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

ingest: $(SETUP)  ## Ingest samples/ (or DOCS=path) and search in the result.
	@$(BIN)/ingest run $(if $(DOCS),"$(DOCS)") || [ $$? -eq 1 ]
	@echo
	@echo '$$ ingest search "How often is the engine overhauled?" -k 1'
	@$(BIN)/ingest search "How often is the engine overhauled?" -k 1

dev: $(SETUP)  ## Open the Dagster UI with its daemon; the sensors are on.
	@home="$$($(BIN)/ingest dagster-home)" && \
		DAGSTER_HOME="$$home" DAGSTER_EVENT_BATCH_SIZE=1000 PYTHONWARNINGS='ignore:Function `dev_command`' \
		exec $(BIN)/dagster dev -w workspace.yaml

test: $(SETUP_DEV)  ## Run the tests.
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not servers and not browser"

test-servers: $(SETUP_DEV)  ## Run the contract and race tests on real servers: SeaweedFS, DynamoDB Local, PostgreSQL. TESTS=folders: only these.
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m servers $(TESTS)

test-browser: $(SETUP_DEV)  ## Use the page in Chromium (apt-get install chromium). SCREENSHOTS=folder keeps pictures.
	SCREENSHOTS="$(SCREENSHOTS)" $(BIN)/python -m pytest -m browser

planted-bugs: $(SETUP_DEV)  ## Plant twelve bugs one at a time; each must be caught.
	$(BIN)/python -m tests.planted_bugs

check: $(SETUP_DEV)  ## Format, lint, types, import rules, and whether Dagster loads the definitions.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/dagster definitions validate -w workspace.yaml

bench: $(SETUP_DEV)  ## Measure the command line, stores and Dagster's events. Prints ratios.
	$(BIN)/python -m benchmarks.bench_cli
	$(BIN)/python -m benchmarks.bench_events
	$(BIN)/python -m benchmarks.bench_store

bench-search: $(SETUP_DEV)  ## Ask half sentences of what the default store holds, by vectors alone and with words.
	$(BIN)/python -m benchmarks.bench_search

bench-parse: $(SETUP_DEV)  ## Parse PDFs (DOCS=folder) beside the bare library, and small texts. Prints ratios.
	$(BIN)/python -m benchmarks.bench_parse "$(or $(DOCS),samples)"

bench-state: $(SETUP_DEV)  ## Measure the state: a million documents on SQLite, requests and bytes on S3 and DynamoDB.
	$(BIN)/python -m benchmarks.bench_state
	$(BIN)/python -m benchmarks.bench_discovery
	$(BIN)/python -m benchmarks.bench_state_servers

bench-api: $(SETUP_DEV)  ## Ask the HTTP API over 100,000 documents: alone, beside two runs, and on DynamoDB Local.
	$(BIN)/python -m benchmarks.bench_api
	$(BIN)/python -m benchmarks.bench_api --dynamodb

bench-llm: $(SETUP_DEV)  ## Measure calls to a language model beside the bare client libraries.
	$(BIN)/python -m benchmarks.bench_llm

bench-peers: $(SETUP_DEV)  ## Beside other tools: PEERS=folder of the peers' benchmark, ARGS=its arguments.
	PEER_EXTRA="ours=$(abspath $(BIN))/python,$(CURDIR)/benchmarks/peers_adapter.py," \
		$(PYTHON) "$(PEERS)/run_peers.py" --peers cocoindex,ours $(ARGS)

lock: $(SETUP_DEV)  ## Pin the newest versions that fit, with hashes and without any index address.
	$(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-strip-extras --no-emit-index-url --no-emit-find-links \
		--no-header --no-annotate pyproject.toml -o requirements.lock --upgrade
	$(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-strip-extras --no-emit-index-url --no-emit-find-links \
		--no-header --no-annotate pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock --upgrade

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(SETUP): requirements.lock pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(SETUP_DEV): requirements-dev.lock $(SETUP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

clean:  ## Remove what was made here, the data folder included.
	rm -rf $(VENV) .ingest *.egg-info
