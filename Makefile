# Every command runs in a virtual environment inside this folder, installed from constraints/ with hashes.
# A stamp named .ready in each environment makes repeated runs instant. A changed pin or a changed pyproject.toml
# renews the environment.

PYTHON ?= python3
# The browser of `make test-browser`: a name on the PATH, or a path.
CHROMIUM ?= chromium
# Where a version is missing, `tools.chroot` installs it beside the system. 3.14 and newer have no wheels of the
# oldest SDKs' dependencies.
MATRIX_PYTHONS ?= 3.11 3.12 3.13 3.14 3.15
# The tests that depend on the versions of the SDKs; the matrix takes all of tests/_core/formats. constraints/ holds three resolutions: with-litellm (the newest
# versions that litellm allows), highest (no litellm) and lowest (every lower bound of
# pyproject.toml).
SDK_TESTS := tests/end_to_end/test_routes.py tests/conformance tests/tools/test_features.py tests/tools/test_request_fields.py \
	tests/_core/formats/gemini/test_connection.py tests/_core/formats/transport/test_connection.py \
	tests/_core/formats/transport/test_private_entries.py
# The oldest SDKs lack types of today, with which conformance is tested. What asks them for more than headers is tested.
OF_OLD_SDKS := tests/end_to_end/test_routes.py tests/_core/formats/gemini/test_connection.py \
	tests/_core/formats/transport/test_connection.py tests/_core/formats/transport/test_private_entries.py \
	tests/_core/batches/test_delivery.py tests/_core/batches/test_collect.py
# Mixtures of what each test of a single part has, and foreign forms, depend on no version.
OF_NO_SDK := --ignore tests/_core/formats/transport/test_body_size.py --ignore tests/conformance/test_foreign_forms.py \
	--ignore tests/conformance/test_conversations.py -k "not mixture and not combination"

# Half of a test's time is waiting, so four processes keep two processors busy. Each collects all tests and imports the
# SDKs, which takes 10 s. A process that has finished its own tests takes over tests that another has not begun.
PARALLEL := --numprocesses 4 --dist worksteal

# With the rehearsals of the benchmarks, which `make test` leaves out.
WITH_LONG := -m "not integration and not cluster and not plugins and not matrix and not install and not browser"

UV := .venv/bin/uv
RUN := .venv/bin/python
# `make lock UPGRADE=` keeps the pins that still fit.
UPGRADE ?= --upgrade
COMPILE := $(UV) pip compile --quiet $(UPGRADE) --prerelease if-necessary-or-explicit --universal --python-version 3.11 --no-header --no-annotate

# A lock file of npm may name no registry either.
NPM_LOCK := npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --silent

# The extras in .venv. `ray`, which has 300 MB, is in .venv-cluster. dspy, inspect and llm, which bring many packages, are
# in .venv-plugins-3.12.
EXTRAS := --extra azure --extra bedrock --extra litellm --extra markdown --extra mcp --extra otel --extra parquet --extra plot --extra simulator --extra valkey --extra zstd

# The caller's interpreter settings have no effect, and uv never downloads an interpreter.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE VIRTUAL_ENV CONDA_PREFIX UV_PYTHON UV_PROJECT_ENVIRONMENT
export UV_PYTHON_DOWNLOADS := never
# Trust the certificates of the machine, which may include that of a proxy.
export UV_SYSTEM_CERTS := true

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PRECIOUS: .venv-%/.ready
.SECONDEXPANSION:
.PHONY: help setup demo test suite coverage test-matrix test-long test-install test-integration test-cluster test-plugins test-browser matrix \
	sdk-versions fuzz night mutants prices components reliability pictures tree features request-fields witnesses size docs lint types platforms format lock build release-check release-rehearsal bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: .venv/.ready ## create .venv with the development tools and every extra but dspy, inspect, llm and lm_eval

demo: setup ## evaluate four simulated providers, then again from the cache
	@$(RUN) examples/demo.py

test: lint ## lint, types, SDK tests on the newest and oldest versions, full suite
	@$(MAKE) --no-print-directory --jobs suite types sdk-tests-highest sdk-tests-lowest

suite: setup
	@$(RUN) -m pytest $(PARALLEL)

coverage: setup ## the full suite with branch coverage, which must reach the floor of pyproject.toml (takes half as long again)
	@$(RUN) -m pytest $(PARALLEL) $(WITH_LONG) --cov --cov-report=term:skip-covered

# They run beside the suite, so each is one process and prints its output in one piece.
sdk-tests-%: .venv-%/.ready
	@tests="$(if $(findstring lowest,$*),$(OF_OLD_SDKS),$(SDK_TESTS))"; \
	output=$$(.venv-$*/bin/python -m pytest --quiet --no-header $$tests $(OF_NO_SDK) 2>&1); status=$$?; \
	printf '== %s on %s\n%s\n' "$$tests" "$*" "$$output"; exit $$status

sdk-versions: .venv-lowest/.ready ## the tests of the lowest versions on other versions of the SDKs, and what people install beside this library
	@$(RUN) -m tools.sdk_versions $(OF_OLD_SDKS)
	@$(RUN) -m tools.neighbours

test-matrix: .venv/.uv ## the same tests on every Python of MATRIX_PYTHONS
	@missing=""; \
	for version in $(MATRIX_PYTHONS); do \
		if ! PYENV_VERSION=$$version $(UV) python find $$version >/dev/null 2>&1; then \
			missing="$$missing $$version"; continue; \
		fi; \
		case $$version in 3.11|3.12|3.13) lowest=sdk-tests-lowest-$$version;; *) lowest=;; esac; \
		$(MAKE) --no-print-directory --jobs sdk-tests-highest-$$version $$lowest \
			SDK_TESTS="tests/end_to_end/test_routes.py tests/end_to_end/test_failures.py tests/conformance tests/tools/test_features.py tests/_core/formats" || exit 1; \
		$(MAKE) --no-print-directory .venv-with-litellm-$$version/.ready || exit 1; \
		echo "== full suite on python $$version"; \
		.venv-with-litellm-$$version/bin/python -m pytest $(PARALLEL) $(WITH_LONG) || exit 1; \
	done; \
	test -z "$$missing" || $(RUN) -m tools.chroot $$missing

test-long: setup ## tests that take seconds, such as every benchmark with a few calls
	@$(RUN) -m pytest $(PARALLEL) -m long

test-install: setup ## install by the README's lines into empty environments of three Pythons, and run its first example
	@$(RUN) -m pytest -m install tests/end_to_end/test_install.py

test-integration: .venv-integration/.ready .venv-proxy/.ready ## tests against llama.cpp (its wheel compiles for minutes, once), litellm's proxy, foreign servers and clusters
	@.venv-integration/bin/python -m pytest -m integration tests/integration tests/witnesses
	@$(MAKE) --no-print-directory test-cluster

test-cluster: .venv-cluster/.ready ## tests on a local Ray cluster and with a Valkey server that they start
	@.venv-cluster/bin/python -m pytest -m cluster --timeout 600 tests/cluster

test-plugins: .venv-plugins-3.12/.ready ## tests inside inspect_ai, DSPy, llm and lm-eval, and of who reads evidence (on Python 3.12, which one of them needs)
	@.venv-plugins-3.12/bin/python -m pytest $(PARALLEL) -m plugins tests/integrations tests/_features/evidence

test-browser: ## tests of the page of results in CHROMIUM; fails where there is none
	@command -v "$(CHROMIUM)" >/dev/null || { echo "there is no $(CHROMIUM): install Chromium, or name it: make test-browser CHROMIUM=/path/to/chromium" >&2; exit 1; }
	@$(MAKE) --no-print-directory .venv-browser/.ready
	@CHROMIUM="$$(command -v "$(CHROMIUM)")" .venv-browser/bin/python -m pytest -m browser tests/browser

matrix: setup ## every fault and every feature on every route in every way to call; `make test` takes a sample
	@$(RUN) -m pytest $(PARALLEL) -m "" tests/end_to_end/test_fault_matrix.py tests/end_to_end/test_feature_matrix.py

fuzz: setup ## 100,000 changed answers of each wire format; tests/fuzz/corpus keeps examples that fail
	@$(RUN) -m pytest $(PARALLEL) --hypothesis-profile fuzz --timeout 0 tests/fuzz

night: setup ## COUNT programs by seed from FIRST on; the first that breaks a promise is made small, shown and saved
	@$(RUN) -m tests.simulation $(or $(FIRST),0) $(or $(COUNT),100000)

mutants: setup ## COUNT small bugs, drawn by SEED and put into a copy of the library one by one: which does no test find?
	@test -d build/mutants/traces || $(RUN) -m tools.mutants --trace
	@$(RUN) -m tools.mutants $(or $(SEED),0) $(or $(COUNT),50) --jobs $(or $(JOBS),2)

prices: setup ## bring prices.csv and model_limits.csv up to date, with litellm's price map LITELLM=…json
	@$(RUN) -m tools.prices --disagreements docs/prices-disagreements.csv $(if $(LITELLM),--litellm $(LITELLM))

pictures: setup ## draw the pictures of docs/images that the library makes, from simulated providers
	@$(RUN) -m tools.pictures

tree: setup ## write the tree of the package in docs/design.md
	@$(RUN) -m tools.tree

reliability: setup ## write the tables of docs/reliability.md from the tables of faults and of failures
	@PYTHONPATH=tests $(RUN) -m tools.reliability

witnesses: setup ## write benchmarks/results/witnesses.md: what the servers of tests/witnesses can do, and why not the rest
	@PYTHONPATH=tests $(RUN) -m tools.witnesses

components: setup ## renew the JavaScript in src/llm_provider/_features/views/page/vendor from npm
	@$(RUN) -m tools.components

lint: setup ## check style and formatting
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check

types: setup ## check types with mypy and the public API with pyright too
	@.venv/bin/mypy
	@.venv/bin/basedpyright --level error

platforms: setup ## check the types as macOS and Windows have them
	@.venv/bin/mypy --platform darwin --cache-dir .mypy_cache/darwin src
	@.venv/bin/mypy --platform win32 --cache-dir .mypy_cache/win32 --no-warn-unreachable src

format: setup ## format, and fix what can be fixed
	@.venv/bin/ruff format
	@.venv/bin/ruff check --fix

lock: .venv/.uv ## resolve every file of constraints/ anew; UPGRADE= keeps pins that still fit
	@mkdir -p build && cp constraints/*.txt build/
	@$(call lock,with-litellm,pyproject.toml $(EXTRAS) --group build --group lint --group test --group notebook --group telemetry)
	@$(call lock,highest,pyproject.toml --extra azure --extra bedrock --extra simulator --group build --group test)
	@$(COMPILE) pyproject.toml --extra azure --extra bedrock --extra litellm --extra markdown --extra mcp --extra otel --extra parquet --extra plot --extra valkey --extra zstd --no-deps --resolution lowest-direct -o build/floors.txt
	@$(call lock,lowest,pyproject.toml $(EXTRAS) --group build --group test -c build/floors.txt)
	@$(call lock,integration,pyproject.toml --extra simulator --group build --group test --group integration)
	@$(call lock,plugins,pyproject.toml --extra simulator --extra dspy --extra inspect --extra llm --extra lm_eval --group build --group test --group plugins)
	@$(call lock,browser,pyproject.toml --extra simulator --group build --group test --group browser)
	@$(call lock,proxy,--group proxy)
	@$(call lock,docs,--group docs)
	@$(call lock,extras,pyproject.toml $(EXTRAS) --extra dspy --extra llm --extra lm_eval --extra ray)
	@$(call lock,extras-inspect,pyproject.toml $(subst --extra bedrock,,$(EXTRAS)) --extra dspy --extra inspect --extra llm --extra lm_eval --extra ray)
	@$(call lock,no-extras,pyproject.toml -c constraints/extras.txt)
	@$(call lock,release,pyproject.toml --extra simulator --group build --group test --group release --group rehearsal)
	@$(call lock,cluster,pyproject.toml --extra ray --extra simulator --extra valkey --group build --group test --group cluster)
	@$(call lock,bootstrap,--group build -c constraints/with-litellm.txt)
	@for source in benchmarks/requirements/*.in constraints/witnesses/*.in; do $(COMPILE) --generate-hashes $$source -o $${source%.in}.txt || exit 1; done
	@for folder in constraints/witnesses/*/; do (cd $$folder && $(if $(UPGRADE),rm package-lock.json &&) $(NPM_LOCK)) || exit 1; done

build: setup ## build the sdist and the wheel into dist/
	@$(UV) build --quiet --no-build-isolation --python $(RUN) --out-dir dist

release-check: .venv-release/.ready ## build the release of the last commit into build/release, and check it: one table
	@.venv-release/bin/python -m tools.release_check build/release --tag "$$TAG"

release-rehearsal: .venv-release/.ready ## publish, install, yank and upgrade on an index of this machine; options: ARGS=--help
	@.venv-release/bin/python -m tools.release_rehearsal $(ARGS)

features: setup ## write docs/features.md anew from what passes tests/conformance
	@PYTHONPATH=tests $(RUN) -m tools.features

request-fields: setup ## write docs/request-fields.md anew, and list fields of the SDKs that have no reason yet
	@PYTHONPATH=tests $(RUN) -m tools.request_fields

size: setup ## count lines, files, imports of features by the core, and vague words, beside their limits
	@$(RUN) -m tools.size

docs: .venv-docs/.ready ## build the website into build/site; every warning is an error
	@PATH="$(CURDIR)/.venv-docs/bin:$$PATH" NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

bench: setup .venv-highest/.ready ## measure everything (half an hour) and write docs/performance*.md
	@$(RUN) -m benchmarks all --write
	@$(RUN) -m benchmarks report

clean: ## remove environments, builds and caches
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	rm -rf --one-file-system .chroot
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# lock,<resolution>,<sources>: a file that does not change keeps its date, so its environments stay ready.
define lock
$(COMPILE) --generate-hashes $(2) -o build/$(1).txt \
	&& { cmp -s build/$(1).txt constraints/$(1).txt || cp build/$(1).txt constraints/$(1).txt; }
endef

# pip is used only here: it installs uv and the build backend, by hash, into the main environment.
.venv/.uv: constraints/bootstrap.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0] + "; try: make setup PYTHON=python3.12")'
	@$(PYTHON) -m venv --clear .venv
	@$(RUN) -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r constraints/bootstrap.txt
	@touch $@

.venv/.ready: .venv/.uv constraints/with-litellm.txt pyproject.toml
	@$(call install,.venv,with-litellm)

# .venv-<resolution>, or .venv-<resolution>-<python version> for the matrix. pyenv's shims run a version only if
# PYENV_VERSION selects it.
.venv-%/.ready: constraints/$$(firstword $$(subst -3., 3.,$$*)).txt pyproject.toml .venv/.uv
	@PYENV_VERSION=$(word 2,$(subst -3., 3.,$*)) $(UV) venv --quiet --allow-existing --python $(or $(word 2,$(subst -3., 3.,$*)),$(RUN)) .venv-$*
	@$(call install,.venv-$*,$(firstword $(subst -3., 3.,$*)))

# install,<environment>,<resolution>: installs exactly the pinned packages, then this project in editable form. The
# proxy and the website do without it. Only llama-cpp-python and what lm-eval needs have no wheels, so no other
# resolution may build a package.
define install
$(UV) pip sync --quiet --require-hashes $(if $(filter integration plugins,$(2)),,--no-build) --python $(1)/bin/python constraints/$(2).txt \
	$(if $(filter proxy docs,$(2)),,&& $(UV) pip install --quiet --no-deps --no-build-isolation --python $(1)/bin/python --editable .) \
	&& touch $(1)/.ready
endef
