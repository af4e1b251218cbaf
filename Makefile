# Everything installs itself. On a fresh machine:  make demo   and   make test
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
CORES ?= 2

.PHONY: audit demo test test-long mutants reference crash screenshots lint format claims docs pictures bench bench-queries bench-learning bench-curator bench-federated bench-sgd clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	touch $@

# PostgreSQL, Java, Chromium and a C++ compiler, which tests run on, with apt-get where that may be
$(VENV)/system:
	@mkdir -p $(VENV)
	@missing=""; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing="$$missing postgresql"; \
	command -v java >/dev/null || missing="$$missing default-jre-headless"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v g++ >/dev/null || missing="$$missing g++"; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing; \
	  else echo "The tests need:$$missing. Install them (on Debian: sudo apt-get install$$missing) and run make test again."; exit 1; fi; \
	fi
	@touch $@

demo: $(VENV)/installed  ## the main job: a village survey, exact and private, with a picture
	$(BIN)/hubbub demo

lint: $(VENV)/installed  ## style, and strict types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint $(VENV)/system  ## what CI runs: lint, doctests, tests; every branch of privacy and numeric is taken
	$(BIN)/python -m pytest -n $(CORES) -m "not long" --cov --cov-report=term

test-long: $(VENV)/installed $(VENV)/system  ## ten times the draws, slow cases
	HUBBUB_TEST_DRAWS=10000000 $(BIN)/python -m pytest -n $(CORES)

mutants: $(VENV)/installed  ## plants known bugs one at a time; at least 95 % must make their tests fail
	CORES=$(CORES) $(BIN)/python tests/mutants/run.py

reference: $(VENV)/installed  ## the accountant against the truth in thousands of random settings; prints the worst
	$(BIN)/python tests/privacy/reference.py --settings 2200 --seed 1 --jobs $(CORES)

crash: $(VENV)/installed $(VENV)/system  ## 10 000 kills of ledger writers and of servers per database, power lost 2 000 times (some hours)
	$(BIN)/python tests/crash/run.py --database sqlite --database postgres --kills 10000 --servers 10000 --losses 1000

audit: $(VENV)/installed  ## every shipped mechanism audited with a million releases of each input (four for small Gaussians)
	$(BIN)/hubbub audit --samples 1000000 --jobs $(CORES)

format: $(VENV)/installed  ## rewrite files in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

claims: $(VENV)/installed  ## docs/claims.md from the Claim/Proof/Assumes lines
	$(BIN)/python docs/write_claims.py

$(VENV)/docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	touch $@

docs: $(VENV)/docs  ## the site, in site/; every link and anchor is checked. Open site/index.html, or serve it for its search
	$(BIN)/python docs/write_claims.py
	$(BIN)/python docs/write_coverage.py
	$(BIN)/python docs/write_comparison.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

pictures: $(VENV)/installed  ## the pictures of examples/notes, drawn anew by running its pages
	PYTHONPATH=tests $(BIN)/python tests/pages.py

$(PEERS)/installed: benchmarks/peers.txt pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement benchmarks/peers.txt --editable .
	touch $@

screenshots: $(VENV)/installed $(VENV)/system  ## pictures of the web page, phone in the dark and wide in the light, in docs/screenshots
	$(BIN)/python tests/browser/screenshots.py

bench: $(PEERS)/installed  ## hubbub against its peers, in one run (ten minutes); JSON and tables in benchmarks/results
	$(PEERS)/bin/python benchmarks/samplers.py
	$(PEERS)/bin/python benchmarks/accounting.py
	$(PEERS)/bin/python benchmarks/import_time.py
	$(PEERS)/bin/python benchmarks/attacks.py
	$(PEERS)/bin/python benchmarks/audits.py

bench-queries:  ## questions on tables against peers, each in a venv of its own (half an hour, two GB of venvs, Java)
	$(PYTHON) benchmarks/venvs.py
	$(PEERS)-hubbub/bin/python benchmarks/groupby.py
	$(PEERS)-hubbub/bin/python benchmarks/quantiles.py

bench-learning:  ## models against diffprivlib's and plain ones, on the data of ../shared/data (hours)
	$(PYTHON) benchmarks/venvs.py
	$(PEERS)-hubbub/bin/python benchmarks/learning.py

bench-sgd: $(VENV)/installed  ## DP-SGD against plain SGD and Opacus, on the GPU if there is one (Opacus where it is installed beside)
	$(BIN)/python benchmarks/dpsgd.py

bench-federated: $(VENV)/installed  ## central, local and distributed noise under Flower's simulation, on the data of ../shared/data (an hour)
	$(BIN)/python benchmarks/federated.py

bench-curator: $(VENV)/installed $(VENV)/system  ## charges and requests a second, and what time tells of rows (hours: be alone on the machine)
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/curator.py
	$(BIN)/python benchmarks/latency.py

clean:
	rm -rf $(VENV) $(PEERS) $(PEERS)-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist site
