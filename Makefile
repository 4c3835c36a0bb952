# Karpenter, rebuilt. Needs Go, make and git; everything else is fetched as Go modules or built from source here.
# `make demo` runs the main job, `make test` passes the tests. `make help` lists the rest.

.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail
GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.release=$(VERSION)
# Without the pages about its calls that gRPC, which the exporter of traces brings along, serves nowhere here: their templates find
# methods by name, so the linker keeps all exported ones, 50 MB (docs/measures.md).
TAGS := grpcnotrace
# Minutes of fuzzing in all, shared by the targets, which FUZZ_PACKAGES have: twins of the algebra, of quantities, sets,
# topology, relaxation, whole plans and histories; what convert, the captures, the providers and migrate read; conversions.
FUZZ_MINUTES ?= 30
FUZZ_PACKAGES ?= ./internal/engine/... ./internal/cluster/... ./cloud/... ./internal/cloud/... ./internal/legacy/... ./internal/testing/sim/... ./plugin/table/...

# The oldest and the newest Kubernetes version that the README and kubectl karpenter doctor name, and all of them but the default, which
# make test runs on.
VERSIONS ?= 1.33 1.37
ALL_VERSIONS ?= 1.33 1.34 1.35 1.37

# client-go compares each object of its caches with a copy, and panics where one has been written to: controllers in tests run so. The
# end-to-end tests set it for the controllers that they start.
TESTED := KUBE_CACHE_MUTATION_DETECTOR=true

# Of make release: the image's name without a tag, and whether the image and the files are published.
IMAGE ?= karpenter-go/karpenter
PUBLISH ?= false

# Numbers of nodes of make scale.
SCALE ?= 100
LOADED ?= 100,1000,5000
FAKE ?=
LIMITED ?= 1000

# Bursts of make latency: numbers of pods, or wide.
LATENCY ?= 1,100,1000,wide

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## watch pods get nodes and nodes leave, on a real control plane on this machine
	@bin/karpenter-sandbox demo

.PHONY: build
build: ## build bin/karpenter, the controller, bin/kubectl-karpenter, the plugin, and bin/karpenter-sandbox
	@echo 'building three programs into bin: minutes the first time, seconds after that' >&2
	@CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/karpenter ./plugin/kubectl-karpenter
	@CGO_ENABLED=0 $(GO) -C sandbox build -trimpath -ldflags '$(LDFLAGS)' -o ../bin/karpenter-sandbox .

# The control plane is built before the tests that use it, so that no test waits for a compiler. It is built also where it could
# be downloaded: what tests say depends on no server. make demo asks for a download first (docs/sandbox.md).
test sandbox versions e2e scale latency nightly: export KARPENTER_SANDBOX_BINARIES ?= build
.PHONY: sandbox
sandbox: build
	@bin/karpenter-sandbox assets > /dev/null

.PHONY: test
test: sandbox bin/gotestsum ## unit tests, API tests and the core end-to-end tests (what CI runs; under 40 minutes cold on 2 cores)
	@# All modules, whatever the first one says: one failure must not hide another.
	@# End-to-end cases share one cluster and two cores with everything else. At most three that fail are run once more, alone:
	@# a real fault fails again, and gotestsum prints both runs of one that does not. -count=1: tests of these modules read
	@# docs, charts and code of others, and the go command takes a result from its cache although those have changed.
	@failed=0; rm -f bin/reruns.txt; \
	$(TESTED) $(GO) test -timeout 20m ./... || failed=1; \
	(cd test && ../bin/gotestsum --format pkgname --rerun-fails=1 --rerun-fails-run-root-test --rerun-fails-max-failures=3 \
		--rerun-fails-report=../bin/reruns.txt --packages ./... -- -count=1 -timeout 25m) || failed=1; \
	$(GO) -C sandbox test -count=1 -timeout 20m ./... || failed=1; \
	$(GO) -C tools test -count=1 -timeout 20m ./... || failed=1; \
	echo "tests that failed once and were rerun: $$(cat bin/reruns.txt 2>/dev/null | wc -l)"; cat bin/reruns.txt 2>/dev/null; \
	exit $$failed

bin/gotestsum: tools/go.mod
	@mkdir -p bin
	$(GO) -C tools build -o ../bin/gotestsum gotest.tools/gotestsum

.PHONY: check
check: generated vet staticcheck lint race test ## everything that must hold before a commit lands

# tools/golangci.mod pins golangci-lint apart from the other tools, whose versions its 200 modules would change.
LANGUAGE_ARGS ?=
.PHONY: lint
lint: bin/misspell bin/golangci-lint ## excluded words, long lines, spelling, doc comments of exported names, imports by layer
	$(GO) -C tools run ./language -root .. -limits language/limits.txt $(LANGUAGE_ARGS)
	@git ls-files '*.md' | xargs bin/misspell -error -locale US -i $$(grep -v '^#' tools/misspell.txt | paste -sd,)
	bin/golangci-lint run ./...
	cd test && ../bin/golangci-lint run -c ../.golangci.yaml ./...
	cd tools && ../bin/golangci-lint run -c ../.golangci.yaml ./...
	cd sandbox && ../bin/golangci-lint run -c ../.golangci.yaml ./...

bin/misspell: tools/go.mod
	@mkdir -p bin
	$(GO) -C tools build -o ../bin/misspell github.com/golangci/misspell/cmd/misspell

bin/golangci-lint: tools/golangci.mod
	@echo 'building golangci-lint: 1,200 packages, several minutes the first time' >&2
	@mkdir -p bin
	$(GO) -C tools build -trimpath -modfile=golangci.mod -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: errorlint
errorlint: bin/golangci-lint ## errors that are compared, asserted or formatted without errors.Is, errors.As and %w
	bin/golangci-lint run --enable-only=errorlint ./...
	cd test && ../bin/golangci-lint run -c ../.golangci.yaml --enable-only=errorlint ./...

# .ci/release says what it writes, and why goreleaser is not used.
.PHONY: release
release: ## archives, charts, image, SBOMs and checksums in bin/release (VERSION=v0.3.0 IMAGE=HOST/NAME; PUBLISH=true)
	@.ci/release $(VERSION) $(IMAGE) $(PUBLISH)

# The image is built without a container engine. IMAGE_ARGS goes to the program, such as '-reference HOST/NAME:TAG -push'.
.PHONY: image
image: ## build the container image for amd64 and arm64 into bin/image
	@echo 'building the image: a minute or two per processor the first time' >&2
	$(GO) -C tools run ./image -source .. -out ../bin/image -release $(VERSION) $(IMAGE_ARGS)

.PHONY: generate
generate: ## write the deep copies, CRDs and the reference of their fields again
	$(GO) generate ./api/...
	cp api/crds/*.yaml charts/karpenter/crds/
	cp api/crds/*.yaml charts/karpenter-crd/files/
	@$(MAKE) --no-print-directory fields

# A page per group version: names of types repeat between versions.
API_PACKAGES := autoscaling/v1beta1 karpenter/v1 karpenter/v1alpha1 karpenter/v1beta1 karpenter/v1alpha5 aws/v1 aws/v1beta1 aws/v1alpha1 kwok/v1alpha1

.PHONY: fields
fields: bin/crd-ref-docs
	@for p in $(API_PACKAGES); do bin/crd-ref-docs --log-level=ERROR --source-path=api/$$p --config=tools/fieldref/config.yaml \
		--templates-dir=tools/fieldref --renderer=markdown --output-path=docs/reference/api/$$(echo $$p | tr / -).md || exit 1; done

bin/crd-ref-docs: tools/go.mod
	@mkdir -p bin
	$(GO) -C tools build -o ../bin/crd-ref-docs github.com/elastic/crd-ref-docs

.PHONY: reference
reference: ## write docs/reference and the texts that docs hold again
	$(GO) test ./internal/gates ./internal/telemetry ./api ./cmd/... ./plugin/kubectl-karpenter -run 'TestReference|TestTopOnce|TestCostPage|TestHistoryPage|TestPricesPage' -count=1 -update
	$(GO) -C sandbox test . -run TestReference -count=1 -update
	$(GO) -C test test ./schemas -run TestSchemas -count=1 -update

.PHONY: generated
generated: generate
	@git diff --exit-code -- api charts docs/reference/api || { echo "make generate changed files: commit what it wrote"; exit 1; }

.PHONY: vet
vet:
	$(GO) vet ./...
	$(GO) -C test vet ./...
	$(GO) -C sandbox vet ./...
	$(GO) -C sandbox/kubernetes vet ./...

.PHONY: staticcheck
staticcheck:
	@mkdir -p bin
	$(GO) -C tools build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	bin/staticcheck ./...
	cd test && ../bin/staticcheck ./...
	cd sandbox && ../bin/staticcheck ./...
	cd sandbox/kubernetes && ../../bin/staticcheck ./...

.PHONY: race
race:
	$(GO) test -race -timeout 20m ./internal/engine/... ./internal/testing/sim/...

# The API tests read KUBEBUILDER_ASSETS, as the end-to-end tests do. One control plane is built per version, 4 to 10 minutes each.
VERSIONED ?= ./api/... ./internal/cluster ./internal/execute ./internal/controller/... ./internal/legacy/webhook ./internal/legacy/nodelabel ./internal/legacy/provisioner ./internal/testing/sandbox/...
.PHONY: versions
versions: build ## core end-to-end cases, API tests and agreement on other Kubernetes versions (VERSIONS="1.33 1.37")
	@failed=0; for version in $(VERSIONS); do \
		assets=$$(bin/karpenter-sandbox assets --kubernetes-version=$$version) || exit 1; \
		echo "Kubernetes $$version: $$assets"; \
		KUBEBUILDER_ASSETS=$$assets $(GO) test -count=1 -timeout 20m $(VERSIONED) || failed=1; \
		KUBEBUILDER_ASSETS=$$assets $(GO) -C test test -count=1 -timeout 40m ./e2e || failed=1; \
	done; exit $$failed

.PHONY: screenshots
screenshots: ## take the pictures of the page in docs/images again (needs Chromium; minutes)
	@KARPENTER_SCREENSHOTS=$(CURDIR)/docs/images $(GO) -C test test ./page -run 'TestScreenshots$$' -count=1

.PHONY: e2e
e2e: sandbox ## all end-to-end tests on the sandbox
	KARPENTER_E2E=all $(GO) -C test test -timeout 60m -v ./e2e/...

# The whole control plane brings up what SCALE lists; clusters of the sizes that LOADED lists are copied into etcd. With FAKE,
# only those that it lists are measured, with a fake API server. Logs, profiles and the table stay in bin/scale.
.PHONY: scale
scale: sandbox ## CPU and memory of the controller by size (SCALE=100 LOADED=100,1000,5000: most of an hour on two quiet cores; FAKE=15000)
ifneq ($(FAKE),)
	KARPENTER_FAKE=$(FAKE) $(GO) -C test test -count=1 -timeout 180m -run 'TestFake$$' -v ./e2e
else
	KARPENTER_SCALE=$(SCALE) $(GO) -C test test -count=1 -timeout 60m -run 'TestScale$$' -v ./e2e
	KARPENTER_LOADED=$(LOADED) $(GO) -C test test -count=1 -timeout 180m -run 'TestLoaded$$' -v ./e2e
	KARPENTER_LOADED=$(LIMITED) $(GO) -C test test -count=1 -timeout 60m -run 'TestLimited$$' -v ./e2e
endif

# From the scale command to the last pod that runs. LATENCY_OTHER is the command of another controller, with its flags. It
# finds the cluster by KUBECONFIG, and its ports in METRICS_PORT and HEALTH_PROBE_PORT.
.PHONY: latency
latency: sandbox ## seconds from the scale command to all pods ready (LATENCY=1,100,1000,wide LATENCY_OTHER="COMMAND"; minutes)
	KARPENTER_BURST=$(LATENCY) LATENCY_OTHER="$(LATENCY_OTHER)" $(GO) -C test test -count=1 -timeout 60m -run 'TestBurst$$' -v ./e2e

.PHONY: nightly
nightly: sandbox ## full matrices, 100 worlds of agreement, 40 minutes of fuzzing, long histories (hours)
	KARPENTER_E2E=nightly KARPENTER_NIGHTLY=1 $(GO) -C test test -timeout 240m -v ./e2e/...
	KARPENTER_NIGHTLY=1 $(GO) test -timeout 120m -v -run 'Histories$$' ./internal/testing/sim # 10,000, 1,000 with preemption
	$(GO) test -timeout 120m ./internal/testing/world -run 'TestHistories$$' -first-history $$(date +%y%m%d)000 -histories 1000
	KARPENTER_NIGHTLY=1 $(GO) test -timeout 120m ./internal/engine/...
	$(GO) test ./internal/testing/sim
	$(GO) -C sandbox/kubernetes test -count=1 . # what the API server refuses, beside plugin/admission/builtin
	$(MAKE) versions VERSIONS="$(ALL_VERSIONS)"
	$(MAKE) fuzz
	$(MAKE) fuzz FUZZ_MINUTES=10 FUZZ_PACKAGES=./internal/legacy/v1beta1 # conversion: nothing may be lost on the way

# Of each fuzzer that is killed 100 MB and more would stay in the folder for temporary files.
.PHONY: fuzz
fuzz: ## 30 minutes of fuzzing, shared by all targets (FUZZ_MINUTES=30)
	@.ci/scratch $(MAKE) --no-print-directory fuzzing

# Every function Fuzz... there is, one after the other. -run: what is in testdata/fuzz is tried by make test already.
.PHONY: fuzzing
fuzzing:
	@targets=$$(for package in $$($(GO) list $(FUZZ_PACKAGES)); do \
		$(GO) test -list '^Fuzz' $$package | awk -v p=$$package '/^Fuzz/ {print p " " $$1}' || exit 1; done) || exit 1; \
	each=$$(( $(FUZZ_MINUTES) * 60 / $$(echo "$$targets" | wc -l) )); \
	echo "$$targets" | while read -r package target; do \
		echo "$$package $$target: $$each s"; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $${each}s $$package < /dev/null || exit 1; \
	done

# BENCH_RUNS=1 is a quick look; BENCH_ARGS goes to the program, for example BENCH_ARGS='-tables price -only spread',
# or BENCH_ARGS='-tables rest -first-seed 1 -seeds 200' for 200 everyday fleets instead of 60.
.PHONY: bench
bench: build ## speed, price, growth and memory of plans, as docs/performance.md reports them (BENCH_RUNS=5)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 0.3s -timeout 30m ./internal/engine/label/ ./internal/engine/placement/ ./internal/cluster/
	@mkdir -p bin
	$(GO) -C test build -o ../bin/bench ./bench
	@for n in 500 2000; do bin/bench workload cluster-$$n bin/workloads/cluster-$$n || exit 1; done
	KARPENTER_WORKLOADS=$(CURDIR)/bin/workloads $(GO) test -run '^$$' -bench 'WhatIf|Sweep|Propose|Naive/cluster-500' -benchmem -benchtime 0.3s -timeout 30m ./internal/engine/disruption/
	bin/bench -binary bin/kubectl-karpenter $(BENCH_ARGS)

# Moving or renaming code changes no answer to a workload and no decision of a history. A change of behavior writes the files again.
.PHONY: digests
digests: build ## compare hashes of plans and of random histories with those in the repository (DIGEST_ARGS=-update writes them)
	$(GO) -C test run ./bench digest -binary $(CURDIR)/bin/kubectl-karpenter $(DIGEST_ARGS) $(CURDIR)/test/bench/testdata/digests
	$(GO) test ./internal/testing/sim -run TestDigests -count=1 -digests testdata/digests $(subst -update,-update-digests,$(DIGEST_ARGS))

# MEASURE_BEFORE is a file with numbers, or a commit, which is checked out for the time of the measurement.
MEASURE_BEFORE ?= measure/before.json
.PHONY: measure
measure: ## sizes, copies of what should exist once, concepts, dependencies; beside those before (MEASURE_BEFORE=COMMIT MEASURE_ARGS=-detail)
	@$(GO) -C tools run ./measure -root .. -before $(MEASURE_BEFORE) $(MEASURE_ARGS)

.PHONY: vuln
vuln: ## known vulnerabilities of the dependencies (optional: needs a network)
	@mkdir -p bin
	$(GO) -C tools build -o ../bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	bin/govulncheck ./...
