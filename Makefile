# Heddle's commands; `make help` lists them.

GO       ?= go
DURATION ?= 60s
# Packets a second of the stream that the soak kills and exchanges the agent under.
RATE     ?= 100000
# What to test in the test targets: flags of testkit/cmd/runtests (-run, -skip) and packages, such as TESTFLAGS='-run TestS14 ./internal/model'.
TESTFLAGS ?= ./...
# DEPS=no installs nothing; tests whose programs are missing are then skipped.
DEPS     ?= yes
ROOT     := $(filter 0,$(shell id -u))

# As root, with everything installed, no test has a reason to be skipped: a missing requirement is a failure.
ifneq ($(ROOT),)
ifeq ($(DEPS),yes)
export HEDDLE_REQUIRE_ALL ?= 1
endif
endif

.DEFAULT_GOAL := build
.PHONY: help build check-go deps deps-all quick test test-all test-busy cleanroom soak soak-frames soak-controllers soak-hostile race kernels verifier-budget contract fuzz deb demo bench generate lint format clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: check-go ## build bin/heddle, heddle-controller and heddle-vsphere (needs only Go: the kernel programs are in the repository)
	@echo "building the programs: some minutes on a new machine, where Go fetches and compiles their modules first"
	CGO_ENABLED=0 $(GO) build -buildvcs=auto -trimpath -o bin/heddle ./cmd/heddle
	CGO_ENABLED=0 $(GO) build -buildvcs=auto -trimpath -o bin/heddle-controller ./cmd/heddle-controller
	CGO_ENABLED=0 $(GO) build -buildvcs=auto -trimpath -o bin/heddle-vsphere ./cmd/heddle-vsphere

check-go:
	@scripts/check-go $(GO)

deps: ## install, by package name, what the commands and tests use (root; Debian, Ubuntu)
	@scripts/deps run test bench

deps-all: ## the same, and the C compiler that `make generate` uses
	@scripts/deps run test bench generate

# What a test target does first. Each step says what it does: on a new machine the first takes minutes.
define prepare
$(if $(and $(ROOT),$(filter yes,$(DEPS))),@scripts/deps run test)
endef
RUNTESTS = bin/runtests
define runtests
@$(GO) build -trimpath -o $(RUNTESTS) ./internal/test/testkit/cmd/runtests
@$(RUNTESTS) $(if $(HEDDLE_UNSTEADY),-kept $(HEDDLE_UNSTEADY))
endef

BASE ?=
quick: check-go ## between two edits: test what depends on the change, the nearest packages first, for a minute (BASE=commit to compare with)
	@CGO_ENABLED=0 $(GO) run -trimpath ./internal/dev/quick/cmd/quick $(if $(BASE),-base $(BASE))

test: build ## build and pass the tests that a change needs, in ten minutes: each feature once, as root on real namespaces; without root, those that need none
	$(prepare)
	$(runtests) $(TESTFLAGS)

test-all: build ## the same, and what takes long: guests with other kernels, QEMU, packages, kills, all faults (root; half an hour)
	$(prepare)
	$(runtests) -all $(TESTFLAGS)

BUSY ?= 6
BUSY_TARGET ?= test
test-busy: build ## make test (or BUSY_TARGET=test-all) beside BUSY busy loops (default 6): no test may claim what holds on a quiet machine only
	$(prepare)
	@scripts/beside-loops $(BUSY) $(MAKE) $(BUSY_TARGET)

# SUITES are Debian releases that mmdebstrap knows.
SUITES ?= bookworm trixie
cleanroom: check-go ## run the README's commands in bare Debian roots with nothing but make and Go: SUITES="bookworm trixie" (root)
	scripts/cleanroom $(SUITES)

soak: soak-frames soak-controllers soak-hostile ## all soaks, of which each test takes DURATION (default 60s; root)

soak-frames: check-go ## hold the kernel program against the model for DURATION, then kill the agent 120 times, and exchange it, under RATE packets a second (root)
	HEDDLE_SOAK=$(DURATION) $(GO) test -count=1 -timeout 0 -v -run '^TestSoak' ./internal/test/difftest
	HEDDLE_SOAK=$(DURATION) HEDDLE_RATE=$(RATE) $(GO) test -count=1 -timeout 0 -v -run '^(TestKilledAtRandom|TestUpgradeAndDowngrade)' ./internal/test/host

soak-controllers: check-go ## for DURATION each, kill and cut off controllers, agents and members of etcd while the definition changes and VMs move: SEED=n repeats the faults of a run (root)
	HEDDLE_SOAK=$(DURATION) HEDDLE_SEED=$(SEED) $(GO) test -count=1 -timeout 0 -v -run '^TestS83_S100_S103_' ./internal/test/chaos

soak-hostile: check-go ## for DURATION, attack a controller in all ways at once while an admin works: it stays below 300 MB and answers within a second (root)
	HEDDLE_SOAK=$(DURATION) $(GO) test -count=1 -timeout 0 -v -run '^TestS135_S136_S137_' ./internal/test/siege

# RACES are packages with much that runs side by side. Tests with agents and controllers run those with the detector too: one that finds
# a race ends, and its log says where.
RACES ?= ./internal/agent/... ./internal/controller/... ./internal/platform/... ./internal/fabric/... ./internal/binding/... ./internal/slice/... \
	./internal/uplinks/... ./internal/observe/... ./internal/test/chaos
race: check-go ## run tests under Go's race detector, which needs a C compiler: RACES="./internal/agent/..." (root for most)
	@scripts/deps race
	CGO_ENABLED=1 GORACE=halt_on_error=1 $(GO) test -race -count=1 -p 1 -timeout 30m $(RACES)

# KERNELS are kernel series that apt knows, or paths of .deb files.
KERNELS ?= 6.12
kernels: check-go ## run the tests on other kernels, in QEMU guests: KERNELS="6.12 /path/linux-image.deb" (root)
	HEDDLE_KERNELS="$(KERNELS)" HEDDLE_KERNELS_ALL=1 HEDDLE_REQUIRE_ALL=1 $(GO) test -count=1 -timeout 30m -v ./internal/test/kernels

verifier-budget: check-go ## write bpf/verifier-budget.yaml anew: what the programs cost the verifiers of KERNELS and this kernel (root)
	CGO_ENABLED=0 $(GO) run ./internal/dev/verifier/cmd/verifier-budget -write -kernels "$(KERNELS)"

fuzz: check-go ## run every fuzz target for DURATION
	@scripts/fuzz $(DURATION)

deb: check-go ## make the Debian packages, bin/heddle_VERSION_amd64.deb and bin/heddle-controller_VERSION_amd64.deb
	@GO=$(GO) scripts/deb bin

demo: build ## the nested-lab experiment on real traffic (root), or on the model alone
	@scripts/demo

bench: build ## measure the switch against a veth pair, a bridge, macvlan and Open vSwitch (root)
	@scripts/deps run bench
	bin/heddle bench switch
	bin/heddle bench frame

generate: check-go ## make the committed generated files again: kernel programs, tables, reference pages
	@scripts/deps generate
	$(GO) generate ./...

contract: ## take the schema in api/ as released: later ones are held against it, and must not break it
	scripts/buf lint
	scripts/buf breaking
	scripts/buf build --exclude-source-info -o contract.binpb

lint: check-go ## gofmt, go vet, staticcheck, clang-format
	@GO=$(GO) scripts/lint

format: check-go ## format the Go and C sources
	$(GO) fmt ./...
	clang-format-19 -i $(wildcard bpf/*.c bpf/*/*.h)

clean: ## remove what was built
	rm -rf bin
