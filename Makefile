# Allocator's commands; `make help` lists them. What is longer than a line or two stands in tools/ and .ci/.

callers_path := $(PATH)
# Where Go's own installer puts it, for a PATH that does not say so. Distributions pin GOTOOLCHAIN=local, with which a
# somewhat older go refuses this module instead of fetching the version that go.mod names.
export PATH := $(CURDIR)/bin:$(PATH):/usr/local/go/bin
export GOTOOLCHAIN ?= auto

VERSION    := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BUILDFLAGS := -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)"
PKG        := ./...
# Two packages at a time: each race needs a PostgreSQL and cores of its own. The bound is against hanging alone.
TESTFLAGS  := -race -tags gates -p 2 -timeout 20m

.DEFAULT_GOAL := help
.PHONY: help run test prove soak mutants build lint fmt vet generate verify ci clean FORCE

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# With the caller's PATH: the commands it shows are for a terminal whose PATH may have no bin/.
run: ## install what is missing, build, and run Allocator with a database of its own (ARGS="--listen 127.0.0.1:8080")
	@tools/setup.sh run
	@$(MAKE) --no-print-directory build
	@exec env PATH='$(callers_path)' bin/allocator up $(ARGS)

test: ## install what is missing and run every test with the race detector (PKG=./allocation/... ARGS="-run Name")
	@tools/setup.sh test
	-@$(MAKE) --no-print-directory --silent bin/gotestsum
	@if [ -x bin/gotestsum ]; then run="bin/gotestsum --format pkgname --format-hide-empty-pkg --"; else run="go test"; fi; \
	exec $$run $(TESTFLAGS) $(ARGS) $(PKG)

mutants: ## take out each line that keeps a promise and see its test go red (ARGS="-only savepoint")
	@tools/setup.sh test
	@go run ./tools/mutants $(ARGS)

prove: ## install what is missing and run what proves the promises beyond the tests, with a table (ARGS="-only model")
	@tools/setup.sh prove
	@go run ./tools/prove $(ARGS)

soak: ## run the long forms of what `make prove` runs, again and again, for SOAK (1h)
	@tools/setup.sh prove
	@go run ./tools/prove -soak $(or $(SOAK),1h) $(ARGS)

build: bin/allocator ## build bin/allocator
bin/allocator: FORCE
	@CGO_ENABLED=0 go build $(BUILDFLAGS) -o $@ ./cmd/allocator

lint: bin/golangci-lint ## run every linter of .golangci.yml
	@bin/golangci-lint run $(PKG)

fmt: bin/golangci-lint ## format the Go files as the linters want them
	@bin/golangci-lint fmt

vet: ## go vet, with and without the gates that tests build in
	@go vet $(PKG)
	@go vet -tags gates $(PKG)

generate: bin/oapi-codegen ## write the generated files anew
	@go generate $(PKG)

verify: bin/oapi-codegen ## fail if a generated file, go.mod or go.sum is not current
	@tools/verify.sh

ci: ## everything that a change must pass
	@.ci/run

clean: ## remove what was built
	@rm -rf bin

# The tools are built once per version, each from a module of its own.
bin/golangci-lint: tool := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
bin/gotestsum:     tool := gotest.tools/gotestsum
bin/govulncheck:   tool := golang.org/x/vuln/cmd/govulncheck
bin/oapi-codegen:  tool := github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
bin/golangci-lint bin/gotestsum bin/govulncheck bin/oapi-codegen: bin/%: tools/%/go.mod tools/%/go.sum
	@echo "building $@ (once)" >&2
	@go -C tools/$* build -buildvcs=false -trimpath -o $(CURDIR)/$@ $(tool)
