# The same commands here, on your machine and in CI.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One release, taken by pip, which finds a build for the CPU where one is offered; the rest by uv.
TORCH  := torch==2.13.0
COMPILERS := iree,keras,onnxruntime,openvino,tinygrad,torch,tvm

.PHONY: install demo containers test check format bench clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/uv pip install --quiet --python $(BIN)/python -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[$(COMPILERS)]' --group dev
	@touch $@

install: $(VENV)/.core ## make .venv with what the service needs

demo: $(VENV)/.core ## from a signed webhook to a rendered issue, on two real OpenVINO releases
	$(BIN)/assay demo

containers: ## build and start the service with PostgreSQL; needs docs/deployment/.env and environment
	docker compose -f docs/deployment/compose.yaml up --build --wait
	curl --fail --silent --show-error http://127.0.0.1:8000/readyz

# Most tests start processes of ours, which read bytecode sooner than they compile it.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.dev ## run the tests on the real compilers, on all cores; ARGS=--slow: the slow ones too
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(VENV)/.dev ## lint, types, import laws
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev ## measure speed; prints ratios
	$(BIN)/python -m tests.benchmarks $(ARGS)

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
