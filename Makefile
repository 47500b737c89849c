# Every target installs what it needs by itself (with sudo when not root).
BUILD ?= build$(if $(SAN),-$(SAN))
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
SEEDS ?= 1000
SECONDS_EACH ?= 20
comma := ,
CMAKE_FLAGS = -G Ninja -DSAN=$(SAN) -DCMAKE_INSTALL_PREFIX=$(PREFIX)

.PHONY: demo test test-more conformance build install setup bench soak crash sandboxes machines sim mutants fuzz check format clean

demo: build
	@tools/demo.sh $(BUILD)/stint

build: $(BUILD)/.set-up
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) -DBUILD_TESTING=OFF >/dev/null
	@tools/timed build cmake --build $(BUILD) -j $(JOBS)

test: $(BUILD)/.set-up-tests
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) -DBUILD_TESTING=ON >/dev/null
	@tools/timed build cmake --build $(BUILD) -j $(JOBS)
	@GTEST_BRIEF=1 tools/timed tests ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j 2 \
	  $(if $(SAN),-L 'unit|conformance|sim|history|server',-LE 'bench|soak|more|sandbox')

# What takes long, or needs more than Debian's packages (npm).
test-more: $(BUILD)/.set-up-tests
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) -DBUILD_TESTING=ON >/dev/null
	@tools/timed build cmake --build $(BUILD) -j $(JOBS)
	@GTEST_BRIEF=1 tools/timed tests ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -L more

# The store contract at a server of the store protocol, with STINT_KEY: STORE=do://host or do+http://127.0.0.1:8787.
conformance: $(BUILD)/.set-up-tests
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) -DBUILD_TESTING=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target conformance_tests 1>&2
	@STINT_CONFORMANCE_STORE='$(STORE)' GTEST_BRIEF=1 $(BUILD)/tests/conformance_tests --gtest_filter='*/do'

install: build
	DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

bench: $(BUILD)/.set-up-bench
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) -DBUILD_TESTING=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target all benches
	@bench/run.sh $(BUILD)

soak crash sim: $(BUILD)/.set-up-tests
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) -DBUILD_TESTING=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) $(if $(filter sim,$@),--target sim) 1>&2
	@tools/$@.sh $(BUILD) $(SEEDS)

# `run` in every kind of sandbox: without pidfd, without /proc, with another's, in a chroot, under bubblewrap ...
sandboxes: $(BUILD)/.set-up-tests
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) -DBUILD_TESTING=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target sandbox_tests 1>&2
	@tools/timed sandboxes tools/sandboxes.sh $(BUILD)

# Whole machines in qemu: clocks that are set, NFS, power cuts. PLAYS="clock nfs power": some of them.
machines: $(BUILD)/.set-up-tests
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) -DBUILD_TESTING=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target machines_player 1>&2
	@tools/machines.sh $(BUILD) $(PLAYS)

# Takes one rule out at a time: a test must fail. ONLY=id,id: these rows (tools/mutants/*.txt).
mutants: $(BUILD)/.set-up-tests
	@tools/mutants.py $(subst $(comma), ,$(ONLY))

# Every reader of outside bytes under libFuzzer, SECONDS_EACH long.
fuzz: $(BUILD)/.set-up-tests
	@tools/setup.sh fuzz
	@JOBS=$(JOBS) tools/fuzz.sh $(SECONDS_EACH)

check: $(BUILD)/.set-up-tests
	@tools/check.sh $(BUILD)

format:
	@clang-format -i $$(git ls-files '*.cc' '*.h')

setup: $(BUILD)/.set-up-tests

$(BUILD)/.set-up: tools/setup.sh
	@mkdir -p $(BUILD) && tools/timed set-up tools/setup.sh build && touch $@

$(BUILD)/.set-up-tests: tools/setup.sh
	@mkdir -p $(BUILD) && tools/timed set-up tools/setup.sh build tests && touch $@

# What is measured against.
$(BUILD)/.set-up-bench: $(BUILD)/.set-up-tests
	@tools/timed set-up tools/setup.sh bench && touch $@

clean:
	rm -rf build build-address build-thread build-mutants build-fuzz
