# SPDX-License-Identifier: Apache-2.0
#
# Needs Go, git and make. What a target needs beyond them it fetches with apt-get when run as root, and says so;
# a plain user is told what is missing. clang is needed by "generate" and "check-generated" only.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
MAKEFLAGS += --no-builtin-rules

# sudo drops the PATH that finds Go and a plain user's PATH lacks sbin.
export PATH := $(PATH):/usr/local/go/bin:/usr/local/sbin:/usr/sbin:/sbin
export GO ?= go

# The version is what Go records in the binary (debug.ReadBuildInfo): tag and commit where git can read the
# repository, "(devel)" in a tarball or a checkout of somebody else's. -buildvcs is given in full, because
# GOFLAGS of the machine may say false, and because "auto" fails where git refuses to read.
BUILDVCS := $(if $(shell git rev-parse --verify HEAD 2>/dev/null),auto,false)
BUILD := CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=$(BUILDVCS)

# What the tests use beside Go: package:command.
TEST_PACKAGES := iproute2:ip ethtool:ethtool iperf3:iperf3 iputils-ping:ping systemd:systemd-analyze
RACE_PACKAGES := gcc:gcc libc6-dev:/usr/include/stdlib.h
# The object is compared byte for byte, so the compiler is one version, that of Debian 12.
BPF_PACKAGES := clang-14:clang-14 llvm-14:llvm-strip-14 libbpf-dev:/usr/include/bpf/bpf_helpers.h \
	linux-libc-dev:/usr/include/linux/bpf.h

ROOT := $(filter 0,$(shell id -u))
# Root has no excuse: a privileged test that cannot run fails. A plain user sees at the end what was skipped.
REQUIRE_PRIVILEGED := $(if $(ROOT),XSKFWD_REQUIRE_PRIVILEGED=1)
# -count=1: a cached pass says nothing about this kernel.
GOTEST := $(REQUIRE_PRIVILEGED) .ci/gotest -count=1

# What "generate" writes, all of it committed.
GENERATED := $(wildcard bpf/*_bpfel.go bpf/*_bpfel.o internal/bench/*_bpfel.go internal/bench/*_bpfel.o configs/xskfwd.toml)

BENCH ?= .
BENCHCOUNT ?= 10
FUZZTIME ?= 30s
ROUNDS ?= 7
SIZE ?= 64
PKGS ?= ./...

PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=

.PHONY: build
build: ## build bin/xskfwd, a static binary (default)
	$(BUILD) -o bin/ ./cmd/xskfwd

.PHONY: demo
demo: build ## run the daemon between namespaces of its own and show a live table (root)
	bin/xskfwd demo

.PHONY: test
test: ## run all tests; those that need root run if you are root, else they are listed
	.ci/need --optional $(TEST_PACKAGES)
	$(GOTEST) $(PKGS)

.PHONY: race
race: ## run all tests under the race detector (needs gcc)
	.ci/need $(RACE_PACKAGES)
	.ci/need --optional $(TEST_PACKAGES)
	CGO_ENABLED=1 $(GOTEST) -race $(PKGS)

.PHONY: e2e
e2e: ## run the end-to-end scenarios only (root)
	.ci/need $(TEST_PACKAGES)
	$(GOTEST) ./internal/e2e/...

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (30s) each
	$(GO) list $(PKGS) | while read -r pkg; do \
		for target in $$($(GO) test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg"; \
		done; \
	done

.PHONY: bench
bench: ## run benchmarks BENCH (.) BENCHCOUNT (10) times and summarise them
	@mkdir -p bin
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) $(PKGS) | tee bin/bench.txt
	$(GO) tool benchstat bin/bench.txt

.PHONY: compare
compare: build ## measure xskfwd against asavie/xdp's l2fwd, as root: ROUNDS (7), SIZE (64, 1514, imix), XSKFWD_ARGS
	$(GO) build -o bin/l2fwd github.com/asavie/xdp/examples/l2fwd
	$(GO) run ./internal/bench/compare -rounds $(ROUNDS) -size $(SIZE) \
		'l2fwd=bin/l2fwd -inlink dut0 -outlink dut1' \
		'xskfwd=bin/xskfwd run --metrics= -p dut0 -p dut1 --wire dut0=dut1 $(XSKFWD_ARGS)' $(CONTESTANTS)

.PHONY: cover
cover: ## measure test coverage into coverage.out and print the total
	$(REQUIRE_PRIVILEGED) $(GO) test -count=1 -coverpkg ./... -coverprofile coverage.out $(PKGS)
	$(GO) tool cover -func coverage.out | tail -n 1

.PHONY: lint
lint: ## check formatting, vet, staticcheck, and golangci-lint where it is installed
	@files=$$(gofmt -l $$(find . -name '*.go' -not -path './.git/*')); \
		[[ -z $$files ]] || { echo "gofmt differs: $$files"; exit 1; }
	$(GO) vet $(PKGS)
	$(GO) tool staticcheck $(PKGS)
	$(GO) test ./internal/archtest
	@if command -v golangci-lint >/dev/null; then golangci-lint run; fi

.PHONY: arm64
arm64: ## cross-compile everything for arm64, tests included
	CGO_ENABLED=0 GOARCH=arm64 $(GO) build -buildvcs=false $(PKGS)
	CGO_ENABLED=0 GOARCH=arm64 $(GO) vet $(PKGS)
	@mkdir -p bin/arm64
	CGO_ENABLED=0 GOARCH=arm64 $(GO) test -c -o bin/arm64/ $(PKGS)

.PHONY: generate
generate: ## regenerate the BPF objects and the sample configuration (needs clang)
	.ci/need $(BPF_PACKAGES)
	$(GO) generate $(PKGS)

.PHONY: check-generated
check-generated: ## fail if generated files are not what their sources give (needs clang)
	@mkdir -p bin
	@sha256sum $(GENERATED) >bin/generated.sum
	$(MAKE) generate
	@sha256sum --check --quiet bin/generated.sum || { echo "generated files changed: commit them"; exit 1; }

.PHONY: man
man: build ## write the man page to bin/man
	@mkdir -p bin/man
	bin/xskfwd man bin/man

.PHONY: install
install: build man ## install binary, man page, systemd unit and sample under DESTDIR and PREFIX (/usr/local)
	install -D -m 0755 bin/xskfwd $(DESTDIR)$(PREFIX)/sbin/xskfwd
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 bin/man/*.8
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system configs/systemd/*.service
	[[ -e $(DESTDIR)$(SYSCONFDIR)/xskfwd/xskfwd.toml ]] || \
		install -D -m 0644 configs/xskfwd.toml $(DESTDIR)$(SYSCONFDIR)/xskfwd/xskfwd.toml

.PHONY: uninstall
uninstall: ## remove what install put there, except the configuration; stop and disable the service first
	rm -f $(DESTDIR)$(PREFIX)/sbin/xskfwd $(DESTDIR)$(PREFIX)/share/man/man8/xskfwd.8
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/lib/systemd/system/,$(notdir $(wildcard configs/systemd/*.service)))

.PHONY: check
check: ## run what CI runs
	.ci/run

.PHONY: clean
clean: ## remove what the targets above wrote into the tree
	rm -rf bin coverage.out

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
