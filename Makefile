# The commands of this project. Each finds uv, or puts it into .uv/ of this checkout.

UV := scripts/uv.sh
RUN := $(UV) run --no-sync

# The theme announces its successor at every build.
export NO_MKDOCS_2_WARNING := 1

.PHONY: help setup demo test unit lint format site docs-serve errors bench wheels clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: ## Make the environment
	@$(UV) sync --quiet --frozen --all-extras --all-packages --group dev

demo: ## Run code in a real sandbox, and start an engine first where that can be done
	@$(UV) sync --quiet --frozen --inexact --extra docker
	@$(RUN) python scripts/demo.py

test: setup ## Run every test that can run here, for 20 minutes or more, and say what could not
	$(RUN) python scripts/engine_image.py pytest

unit: setup ## Run the tests that need nothing but Python, in a few minutes
	$(RUN) pytest tests/unit tests/contract

lint: setup ## Check style, types and import directions
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy
	$(RUN) pyright
	$(RUN) lint-imports

format: setup ## Format the code
	$(RUN) ruff format
	$(RUN) ruff check --fix

site: setup ## Build the documentation into site/; a broken link fails
	$(RUN) python scripts/gen_error_catalog.py --check
	$(RUN) python scripts/check_doc_links.py
	$(RUN) mkdocs build --strict
	$(RUN) python scripts/check_llms.py site

docs-serve: setup ## Serve the documentation on localhost and rebuild on change
	$(RUN) mkdocs serve

errors: setup ## Write the pages of the error codes from the catalog
	$(RUN) python scripts/gen_error_catalog.py

bench: setup ## Measure, as ratios to the same calls made by hand
	$(RUN) python -m benchmarks

wheels: ## Build all distributions into dist/
	$(UV) build --all-packages --out-dir dist

clean: ## Remove what was built
	rm -rf dist site build .coverage htmlcov
