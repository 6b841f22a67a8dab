# SPDX-License-Identifier: Apache-2.0
# The commands of the project. Each installs what it needs, builds what changed, and can be repeated.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
# some tests wait more than they compute, and each may take a gigabyte
TEST_JOBS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n + 1 : 8)))
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 600
PREFIX ?= /usr/local
CTEST_FLAGS ?=

# A compiler cache serves every checkout alike: paths inside the checkout count relative to it.
export CCACHE_BASEDIR := $(CURDIR)

CONFIGURE = cmake --log-level=WARNING "-DCMAKE_CXX_COMPILER_LAUNCHER=$(CURDIR)/tools/cached-compiler" --preset
CTEST = ctest --no-tests=error --output-on-failure --test-output-size-passed 1048576 -j$(TEST_JOBS) $(CTEST_FLAGS) --test-dir
# Tests labelled `soak` run for as long as one likes: `make soak`.
NO_SOAK = -LE soak

.PHONY: help demo build build-tests configure-tests build-asan configure-asan test test-plain matrix test-all soak install deb release deb-test oci oci-test bench check check-whole configure-tidy fuzz fuzz-chains asan tsan nightly deps-cuda clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /  make \1\t/p' Makefile | expand -t 18

demo: build  ## run firewall -> NIDS -> IPsec -> router on a real capture, on two kinds of processor; writes out/branch-office.pcap
	@tools/demo

build:  ## build build/src/apps/catena/catena
	@tools/install-deps
	@test -f build/build.ninja || $(CONFIGURE) release >/dev/null
	@test -x build/src/apps/catena/catena || echo "compiling Catena: about 6 minutes on two cores, once"
	@cmake --build build -j$(JOBS) --target src/apps/catena/catena

build-tests: configure-tests
	@cmake --build build -j$(JOBS) --target system_tests

configure-tests:
	@tools/install-deps --tests --checks --cuda-compiler
	@$(CONFIGURE) test >/dev/null

build-asan: configure-asan
	@cmake --build build-asan -j$(JOBS) --target asan_tests

test: build-tests build-asan  ## build and run the tests: chains as users build them, units and hostile input with sanitizers; the last line says what was skipped and why
	@status=0; \
	  $(CTEST) build -L '^system$$' $(NO_SOAK) --output-junit tests.xml || status=$$?; \
	  tools/with-sanitizer-options $(CTEST) build-asan -L '^asan$$' $(NO_SOAK) --output-junit tests.xml || status=$$?; \
	  tools/summarize-tests --why build/tests.xml build-asan/tests.xml && exit $$status

test-plain: configure-tests  ## all tests without sanitizers, those of benchmarks too
	@cmake --build build -j$(JOBS)
	@$(CTEST) build $(NO_SOAK) --output-junit tests.xml; status=$$?; tools/summarize-tests --why build/tests.xml && exit $$status

matrix: export PYTHONPATH := tests:tests/service
matrix: export CATENA_BIN := build/src/apps/catena/catena
matrix: export CATENA_DATA := tests/data/chain
matrix: build-tests  ## change running chains in all ways (hours), also at live ports: a line for each NF, number of shards, isolation and change
	@status=0; for run in live_matrix_run matrix_run; do python3 tests/system/$$run.py || status=$$?; done; exit $$status

test-all: export CATENA_SAME_BYTES := full
test-all: test-plain  ## the same with every combination of placement, mode and unit size (hours without a GPU)

soak: configure-tests  ## random device faults and long runs for SOAK_SECONDS (600) each
	@cmake --build build -j$(JOBS)
	@CATENA_SOAK_SECONDS=$(SOAK_SECONDS) $(CTEST) build -L soak --timeout $$(($(SOAK_SECONDS) * 2 + 600))

install: build  ## install program, headers, C library and CMake package to PREFIX (/usr/local)
	@cmake --build build -j$(JOBS) --target installed
	@cmake --install build --prefix $(PREFIX)
	@test -n "$$DESTDIR" || tools/library-hint $(PREFIX)

deb:  ## pack program, C library and headers for Debian 12 into out/packages
	@tools/install-deps --package
	@$(CONFIGURE) package >/dev/null
	@cmake --build build-deb -j$(JOBS) --target installed
	@tools/make-deb

release:  ## make deb, where the newest set of results is of this code
	@tools/index-results --fresh
	@$(MAKE) deb

deb-test: deb  ## install the packages in a clean Debian 12, and try all that they have (root, network)
	@PYTHONPATH=tests python3 tests/package/deb_test.py -v

oci: deb  ## make a container image of the package, out/catena_VERSION_oci.tar (root, network)
	@tools/make-oci

oci-test: oci  ## unpack the image, and try what is in it (root)
	@PYTHONPATH=tests python3 tests/package/oci_test.py -v

bench:  ## build and run the benchmarks; results go to out/bench/
	@tools/install-deps --bench --cuda-compiler
	@$(CONFIGURE) bench >/dev/null
	@cmake --build build-bench -j$(JOBS)
	@tools/run-benches build-bench

check: configure-tidy  ## format, layers, texts, scripts; clang-tidy and headers where the code has changed
	@tools/check-all build-tidy

check-whole: configure-tidy  ## the same, with clang-tidy and headers everywhere
	@tools/check-all build-tidy --all

configure-tidy:
	@tools/install-deps --tests --checks --cuda-compiler
	@cmake --log-level=WARNING --preset tidy >/dev/null

fuzz: configure-asan  ## run each libFuzzer target for FUZZ_SECONDS (60)
	@cmake --build build-asan -j$(JOBS) --target tests/fuzz/all
	@tools/run-fuzzers build-asan $(FUZZ_SECONDS)

fuzz-chains: build-tests  ## run random chains on the CPU and on devices for FUZZ_SECONDS (60), and compare
	@build/tests/chain_fuzz --seconds $(FUZZ_SECONDS)

configure-asan:
	@tools/install-deps --tests --checks --cuda-compiler
	@$(CONFIGURE) asan >/dev/null

asan: configure-asan  ## run the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@cmake --build build-asan -j$(JOBS)
	@tools/with-sanitizer-options $(CTEST) build-asan -LE 'no_asan|soak' --output-junit tests.xml

tsan:  ## run the tests under ThreadSanitizer
	@tools/install-deps --tests --cuda-compiler
	@$(CONFIGURE) tsan >/dev/null
	@cmake --build build-tsan -j$(JOBS)
	@tools/with-sanitizer-options $(CTEST) build-tsan -LE 'no_tsan|soak' --output-junit tests.xml

nightly:  ## what the gate leaves out: all tests in every build, all checks everywhere, ten minutes of fuzzing
	@tools/nightly

deps-cuda:  ## fetch CUDA's headers and NVRTC into .deps/cuda, GPU or not
	@tools/install-deps --cuda-compiler

clean:  ## remove build folders and out/; what was fetched stays
	rm -rf build build-asan build-bench build-deb build-debug build-tidy build-tsan out
