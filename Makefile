# make setup      an isolated environment in .venv with the command .venv/bin/firstlight
# make packages   the Debian packages that tests and Linux hosts need (apt-get, with sudo unless root)
# make kernel     set up, then the kernel of Linux hosts, unless it is there already
# make kernel-wheel  set up, then the kernel as a wheel in dist/ (GPL-2.0), beside which Linux hosts need no build
# make hadoop     Hadoop for HDFS on Linux hosts, by Maven; the hash of each artifact is compared
# make wheel      set up, then a wheel in dist/ that installs without Rust, and the source archive
# make reproduce  set up, then the quick set of all papers' figures: scoreboard and results/report.html
# make test       set up, the kernel if it can be built here, then every test and check
# make soak       set up, then an hour of kills at random moments, many runs, and any text for every reader
# make differential  set up, then N (200) invented experiments of SEED (7) on both kinds of hosts: what parts them
# make bench      set up, then our engine and its peers side by side (needs libns3-dev for the peer)
# make lock       pin the Python packages anew from pyproject.toml
# make docs       write into the documents what the code, the examples and results/ say, then make site
# make site       the manual as a site in site/, to be read offline; a broken link is an error
# make clean      remove what was built; results/ stays
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
# The core and what runs in a kernel are built side by side: each is linked by one thread for minutes. Recipes do not
# get these flags, or cargo and a kernel's build would take them for theirs.
MAKEFLAGS += --jobs=2
unexport MAKEFLAGS MFLAGS
.PHONY: setup packages kernel kernel-wheel hadoop wheel reproduce test soak differential bench lock docs site clean

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
MADE := $(VENV)/.made
PACKAGES := $(VENV)/.packages
CORE := python/firstlight/_core.abi3.so
ENGINE := python/firstlight/libfirstlight_uml.so
GUEST := python/firstlight/firstlight-guest
DILATED := python/firstlight/firstlight-dilated
LIBVT := python/firstlight/libvt.so
LIBADU := python/firstlight/libadu.so
SHARE := python/firstlight/share
HADOOP := hadoop/target/class-path
DEBIAN := bc bison bpftool build-essential ca-certificates chromium chromium-driver clang default-jdk-headless flex \
  iperf3 iproute2 iputils-ping libbpf-dev libelf-dev libssl-dev maven netcat-openbsd python3-venv tcpdump xz-utils
RUST := Cargo.toml Cargo.lock pyproject.toml $(shell find crates -name '*.rs' -o -name Cargo.toml)
BUILT := $(or $(CARGO_TARGET_DIR),target)
# Tests of programs whose time passes with the wall clock's: nothing runs beside them.
WALL_CLOCK := python/tests/wall_clock
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
export PYO3_PYTHON := $(CURDIR)/$(PY)

# An environment that is half made, was moved, or lost its interpreter is made anew.
ifneq ($(shell cat $(MADE) 2>/dev/null && $(PY) -c 'print("works")' 2>/dev/null),$(CURDIR) works)
$(shell rm -f $(MADE))
endif

setup: $(CORE) $(ENGINE) $(GUEST) $(DILATED) $(LIBVT) $(LIBADU)

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "error: Python 3.11 or newer is needed as '$(PYTHON)' (another one: make PYTHON=/path/to/python3.12)" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: Python's venv module is missing: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@echo "$(CURDIR)" > $@

$(PACKAGES): requirements.lock $(MADE)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(CORE): $(PACKAGES) $(RUST)
	@command -v cargo >/dev/null || { \
	  echo "error: cargo is missing: install a Rust toolchain (rustup, or Debian's rustup package)" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "error: a C linker is missing: apt install build-essential" >&2; exit 1; }
	PIP_QUIET=1 VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(VENV)/bin/maturin develop --release --locked
	@touch $@

# What a kernel loads and what runs in it: one build, two files, each put in its place whole.
$(ENGINE) $(GUEST) &: $(PACKAGES) $(RUST)
	@command -v cargo >/dev/null || { \
	  echo "error: cargo is missing: install a Rust toolchain (rustup, or Debian's rustup package)" >&2; exit 1; }
	cargo build --quiet --locked --profile guest -p firstlight-uml -p firstlight-guest
	@install -m 755 $(BUILT)/guest/libfirstlight_uml.so $(ENGINE).part && mv $(ENGINE).part $(ENGINE)
	@install -m 755 $(BUILT)/guest/firstlight-guest $(GUEST).part && mv $(GUEST).part $(GUEST)

# The engine of hosts in dilated time, after the core: both are of one profile and share what is compiled.
$(DILATED): $(PACKAGES) $(RUST) | $(CORE)
	cargo build --quiet --locked --release -p firstlight-dilated
	@install -m 755 $(BUILT)/release/firstlight-dilated $@.part && mv $@.part $@

# What stands before the C library of programs on hosts in dilated time.
$(LIBVT): $(wildcard linux/libvt/*.[ch])
$(LIBADU): $(wildcard linux/libadu/*.[ch])
$(LIBVT) $(LIBADU):
	cc -O2 -std=gnu11 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -shared -o $@.part $(filter %.c,$^) -ldl
	@mv $@.part $@

packages:
	$(SUDO) apt-get update -q
	$(SUDO) apt-get install -y -q --no-install-recommends $(DEBIAN)

kernel: setup
	$(VENV)/bin/firstlight kernel build

kernel-wheel: kernel
	$(PY) linux/wheel/build.py

hadoop: $(HADOOP)

$(HADOOP): hadoop/build.py hadoop/artifacts.sha256 hadoop/pom.xml $(shell find hadoop/src -name '*.java')
	$(PYTHON) hadoop/build.py

# A wheel has copies of the folders that a checkout has beside the package.
wheel: setup
	@rm -rf $(SHARE) && mkdir -p $(SHARE)
	@tar -c --exclude-vcs --exclude=__pycache__ --exclude='*.o' --exclude=linux/wheel \
	  experiments linux Cargo.toml crates/cc crates/units | tar -x -C $(SHARE)
	@trap 'rm -rf $(SHARE)' EXIT; rm -f dist/firstlight-*; $(VENV)/bin/maturin build --release --locked --out dist; \
	  $(VENV)/bin/maturin sdist --out dist

reproduce: setup
	$(VENV)/bin/firstlight reproduce --quick

test: setup
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || { \
	  echo "error: rustfmt or clippy is missing: rustup component add rustfmt clippy" >&2; exit 1; }
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo test --locked --workspace
	@{ $(VENV)/bin/firstlight kernel build && $(PY) linux/wheel/build.py; } || \
	  echo "no kernel for Linux hosts (see above): the tests that need one are skipped" >&2
	@if command -v javac >/dev/null && command -v mvn >/dev/null; then $(PYTHON) hadoop/build.py --test; \
	  else echo "no JDK or no Maven (make packages): tests of HDFS are skipped" >&2; fi
	$(VENV)/bin/ruff check python benches docs hadoop linux
	$(VENV)/bin/ruff format --check python benches docs hadoop linux
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo
	@$(MAKE) --no-print-directory wheel
	$(PY) -m pytest -n logical --dist loadfile --ignore=$(WALL_CLOCK)
	$(PY) -m pytest $(WALL_CLOCK)

soak: setup
	PROPTEST_CASES=100000 cargo test --locked -p firstlight-lab --test any_text
	$(PY) python/tests/soak.py

N ?= 200
SEED ?= 7
differential: setup
	PYTHONPATH=python/tests $(PY) -m differential --cases $(N) --seed $(SEED)

bench: setup
	$(PY) benches/bench.py

lock: $(PACKAGES)
	$(VENV)/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --no-header \
	  --no-emit-find-links --no-emit-index-url --extra dev --output-file requirements.lock pyproject.toml

docs: setup
	FIRSTLIGHT_WRITE=1 cargo test -q -p firstlight-spec -p firstlight-lab --test reference
	$(PY) docs/refresh.py
	@$(MAKE) --no-print-directory site

site: setup
	$(PY) -m sphinx -q -n -W --keep-going -b html -c docs/site . site
	@echo "site/docs/index.html"

clean:
	rm -rf $(VENV) dist site jupyter_execute $(SHARE) target hadoop/target .mypy_cache .ruff_cache .pytest_cache \
	  $(CORE) $(ENGINE) $(GUEST) $(DILATED) $(LIBVT) $(LIBADU)
