# The front door. `make` lists what there is.

GO       ?= go
FUZZTIME ?= 60s
BENCH    ?= .
PKG      ?= ./...
# The source tree that `make run` stores and reads back.
SOURCE   ?= $(shell $(GO) env GOROOT)/src

TOOL := $(GO) tool -modfile=tools/go.mod
# Every Go file of this module, and none of the modules below it.
SOURCES = $(shell find . -name '*.go' -not -path './.git/*' -not -path './out/*')

.DEFAULT_GOAL := help
.PHONY: help setup run build test check format vet staticcheck lint short race fuzz bench gate gate-selftest generate generate-clean peers peers-codecs browser conformance conformance-full peers-java ci clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing on this machine
	@tools/setup.sh

build: ## build the command line into bin/
	$(GO) build -o bin/ ./cmd/...

run: ## build, store a source tree as messages, read all back, compare each with its file
	$(GO) run ./cmd/stratalog demo --source "$(SOURCE)"

test: setup ## all tests in full, then the short ones under the race detector
	$(GO) test -count=1 -timeout 20m ./...
	$(GO) test -race -short -count=1 -timeout 15m ./...

check: format vet staticcheck generate-clean short ## all quick checks: run this before a commit

format:
	@test -z "$$(gofmt -l $(SOURCES))" || { echo "gofmt would change:"; gofmt -l $(SOURCES); exit 1; }

vet:
	$(GO) vet ./...

staticcheck:
	$(TOOL) staticcheck ./...

lint: ## the layer graph, the injected core, the promises of the documents
	$(GO) test -count=1 ./internal/lint

short:
	$(GO) test -short -count=1 -timeout 5m ./...

race: ## all tests in full under the race detector; takes long
	$(GO) test -race -count=1 -timeout 60m ./...

fuzz: ## each fuzz target for FUZZTIME (60s)
	tools/fuzz.sh $(FUZZTIME)

bench: ## the benchmarks that BENCH (.) names, in PKG (./...)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)

gate: setup ## compare the benchmarks with the baseline, or with those of BASE
	tools/benchstat.sh $(if $(BASE),--base '$(BASE)') $(if $(filter-out .,$(BENCH)),--bench '$(BENCH)') $(if $(filter-out ./...,$(PKG)),--pkg '$(PKG)')

gate-selftest: setup ## prove that the gate works; SHORT=1 tries each thing once
	cd tools && $(GO) test ./...
	SHORT='$(SHORT)' tools/gate-selftest.sh

generate: ## write the codecs anew from their schemas
	$(GO) generate ./...
	cd perf/peers/codecs/plain && $(GO) run ../../../../gen/cmd/layoutgen -in record.layout -out . -package plain

generate-clean:
	tools/generate-clean.sh

peers: setup ## other logs and stores beside ours: tables, out/peers.md, out/peers.html
	mkdir -p out
	cd perf/peers && $(GO) build -o ../../out/peers .
	out/peers -json out/peers.json -markdown out/peers.md
	$(GO) run ./cmd/stratalog bench report out/peers.json -o out/peers.html

conformance: ## take turns with Java's own store, both released versions; some minutes
	tools/setup.sh --java
	tools/conformance/run.sh short

conformance-full: ## the same with 50 alternations and 100 kills of each side
	tools/setup.sh --java
	tools/conformance/run.sh full

peers-java: ## the same workload on Java's store, in turn; ARGS are for conformance/cmd/peersjava
	tools/setup.sh --java
	tools/conformance/build.sh 5.5.1
	$(GO) run ./conformance/cmd/peersjava $(ARGS)

peers-codecs: ## our codec beside vtprotobuf, msgp and FlatBuffers, on one message
	cd perf/peers && $(GO) run ./codecs/compare

browser: setup ## look at the report of the load generators in a headless browser
	cd perf/browser && $(GO) test -count=1 -timeout 10m ./...

ci: ## what continuous integration runs
	.ci/run

clean: ## remove what the other targets made
	rm -rf bin out
	$(GO) clean -testcache
