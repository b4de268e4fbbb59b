# SPDX-License-Identifier: Apache-2.0
# Everything that can be done with Torpor's sources. Each target installs what it needs by itself and says so.

SHELL := /bin/bash
SWIFT ?= swift
ARGS ?=
FILTER ?=
ROUNDS ?= 300
SEED ?=
QUICK ?=
SHORT ?=
CHECK ?=
WRITE ?=
MINUTES ?= 3
TARGET ?=
KEY ?=
BASE ?=
SECONDS ?= 60
SEEDS ?= 300
STEPS ?= 1000
PACKAGES := libsystemd-dev libtomlplusplus-dev libsqlite3-dev pkg-config python3 python3-venv curl systemd tzdata elfutils \
	dbus python3-dbusmock umockdev gir1.2-umockdev-1.0 gcc mypy python3-prometheus-client python3-jsonschema libmicrohttpd-dev libmosquitto-dev libnats-dev libyaml-dev libncurses-dev libcurl4-openssl-dev libssl-dev libsodium-dev tmux

# What runs containers, and finds them by name.
CONTAINERS := podman crun netavark aardvark-dns iptables uidmap slirp4netns

# A desktop without a screen: what opens apps, notifications, badges, the focus and sound.
DESKTOP := desktop-file-utils xdg-utils libgtk-3-bin libglib2.0-bin python3-gi shared-mime-info \
	dunst mako-notifier xvfb sway foot i3-wm xterm pipewire pipewire-bin wireplumber

# Servers that tests start by themselves.
SERVERS := minisign fsverity avahi-daemon avahi-utils nats-server mosquitto mosquitto-clients gpsd python3-flask docker-registry nftables nginx-light lighttpd caddy haproxy postgresql redis-server redis-tools resource-agents libxml2-utils openssl iproute2 \
	openssh-server openssh-client $(CONTAINERS)

# The browser in which the dashboard is tested, and which takes its pictures.
BROWSER := chromium chromium-driver fonts-inter

# What looks at sources without building them.
CHECKS := shellcheck gcc g++ libtomlplusplus-dev python3

# Modules in which more than one thread works.
THREADED := ^(StoreTests|PathWatchTests|SupervisorTests|VarlinkTests|LinuxTests|TorporAppTests|GatewayTests)\.

# What makes the Debian package and looks at it.
DEB := dpkg-dev binutils chrpath lintian man-db python3 shellcheck

# The supervisors and log programs that the benchmarks measure beside Torpor.
PEERS := gcc s6 runit supervisor daemontools mmdebstrap systemd-container $(CONTAINERS)

# What many apps in little memory need: the load, and a container for it.
DENSITY := gcc mmdebstrap systemd-container

# What makes machines and boots them.
MACHINES := dpkg-dev binutils chrpath mmdebstrap systemd-container

.PHONY: help build release check test test-audit test-stress test-sanitize fuzz test-parts test-systemd test-vm test-podman5 test-cluster recordings chaos simulate fuzz-sockets deb apt-repo dist site test-site image test-image test-deb test-reproducible test-demonstrations demo demo-containers demo-memory recordings-demonstrations bench bench-density bench-micro format lint deps screenshots-web clean

help: ## List the targets
	@grep -E '^[a-z0-9%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9%-]+):.*## /  make \1|/' | column -t -s '|'

deps: ## Install the packages that are missing (apt)
	@scripts/install-packages $(PACKAGES)

build: deps ## Debug build, with all tests, in .build/debug
	@scripts/run-tests --only-build

release: deps ## Release build, in .build/release
	$(SWIFT) build -c release

check: ## Check sources, commits and documents, without a build (under a minute)
	@scripts/install-packages $(CHECKS)
	@scripts/check-sources

test: deps ## Build with warnings as errors and run every test (FILTER=… for some)
	@scripts/install-packages $(SERVERS) $(DESKTOP) $(BROWSER)
	@scripts/run-tests $(if $(FILTER),'$(FILTER)')

test-audit: deps ## The tests of what the kernel denies, with its audit enabled for the whole machine meanwhile (root)
	@scripts/with-audit scripts/run-tests DenialTests

test-stress: deps ## Run every test three times beside stress-ng, which wants all processors, disks and memory
	@scripts/install-packages $(SERVERS) $(DESKTOP) $(BROWSER) stress-ng
	@scripts/run-tests --stress --times 3 $(if $(FILTER),'$(FILTER)')

test-sanitize: deps ## Run the modules that have threads under the thread sanitizer
	@scripts/run-tests --sanitize thread $(if $(FILTER),'$(FILTER)','$(THREADED)')

fuzz: deps ## Run libFuzzer on every parser (MINUTES=3 for all together; TARGET=json for one)
	@scripts/fuzz --minutes $(MINUTES) $(addprefix --target ,$(TARGET))

screenshots-web: deps ## Take the pictures of docs/web.md and docs/top.md of a fleet of apps (six minutes)
	@scripts/install-packages $(BROWSER)
	@for product in torpord torpor-keeper torpor torpor-verbs torpor-web; do $(SWIFT) build --product $$product || exit 1; done
	scripts/screenshots-web

test-parts: ## Make the trees in which test-deb, test-demonstrations, test-systemd, test-vm and test-cluster run (root)
	@scripts/install-packages $(DEB) $(DENSITY) $(MACHINES) qemu-system-x86 cpio
	@mkdir -p .build/bench .build/machines
	@scripts/systemd-container make density .build/bench/density-root
	@scripts/systemd-container make test .build/machines/root
	@scripts/systemd-container make cluster .build/machines/cluster-root || echo "make test-cluster cannot run here: see above"

test-systemd: release ## The package on a booted systemd, in a container (root; FILTER=… for some)
	@scripts/install-packages $(MACHINES)
	@scripts/run-machine-tests systemd $(FILTER)

test-vm: release ## The package on Debian's own kernel with every cgroup controller, in emulation (root; FILTER=… for some)
	@scripts/install-packages $(MACHINES) qemu-system-x86 cpio
	@scripts/run-machine-tests vm $(FILTER)

test-podman5: build ## The tests of containers with the podman 5 of Debian trixie, in a tree made once (root; FILTER=… for some)
	@scripts/install-packages mmdebstrap
	@scripts/test-podman5 $(FILTER)

test-cluster: release ## A cluster of three nodes from which everything is taken away, with Pacemaker (root; SHORT=1; ARGS=--stay)
	@scripts/install-packages $(DEB) $(MACHINES) iproute2
	@mkdir -p .build/machines
	@scripts/systemd-container make cluster .build/machines/cluster-root || \
		{ echo "The cluster was not tested: there is no tree of a Debian with Pacemaker, for the reason above"; exit 1; }
	@rm -rf .build/machines/packages-cluster
	@for build in build build-pacemaker; do \
		TORPOR_DEB_FOLDER=.build/machines/packages-cluster TORPOR_DEB_LEVEL=0 packaging/deb/$$build >/dev/null || exit 1; \
	done
	@scripts/test-cluster $(if $(SHORT),--short) $(ARGS) .build/machines/cluster-root .build/machines/packages-cluster/*.deb

recordings: deps ## Record real apps in every language and draw what they went through (docs/lifecycles.md)
	@rm -rf .build/recordings && mkdir -p .build/recordings
	TORPOR_RECORDINGS=$(CURDIR)/.build/recordings scripts/run-tests '\.ConformanceTests/'
	scripts/draw-lifecycles .build/recordings >docs/lifecycles.md

chaos: deps ## Take torpord and its keeper away again and again (ROUNDS=300, SEED=… repeats a run)
	TORPOR_CHAOS_ROUNDS=$(ROUNDS) TORPOR_CHAOS_SEED=$(SEED) scripts/run-tests --hang 3600 '\.ChaosTests/'

simulate: deps ## Run torpord over a simulated kernel that fails and kills it (SEEDS=300, STEPS=1000; SEED=7 repeats one, and tells all of it)
	TORPOR_SIMULATION=1 $(SWIFT) build -c release --product torpor-simulate
	@.build/release/torpor-simulate --jobs $$(nproc) --steps $(STEPS) $(if $(SEED),--seed $(SEED) --trace,--seeds $(SEEDS))

fuzz-sockets: ## Attack the sockets of the built torpord and keeper at random (SECONDS=60, SEED=… repeats a run; ARGS="--only notify")
	@test -x .build/debug/torpord || test -x .build/release/torpord || $(MAKE) build
	@scripts/fuzz-sockets --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

deb: release ## Make the Debian packages in .build/deb
	@scripts/install-packages $(DEB)
	@rm -f .build/deb/*.deb
	@packaging/deb/all
	@packaging/deb/lint .build/deb/*.deb

apt-repo: deb ## Make a signed apt repository of them in .build/apt (KEY=… is the maker's, as gpg knows it)
	@scripts/install-packages $(DEB) gpg
	@packaging/apt-repo --key '$(KEY)' .build/apt .build/deb/*.deb

dist: deb ## Make the archive of the sources, packages, wheel and lists of what is in them, with checksums, in .build/dist
	@packaging/dist

site: ## Build the documentation as a web site in .build/site/html (MkDocs, from PyPI)
	@scripts/install-packages python3 python3-venv git
	@packaging/site/build

test-site: ## Build the site and open each of its pages in a browser
	@scripts/install-packages python3 python3-venv git $(BROWSER)
	@packaging/site/build && packaging/site/check

image: deb ## Make an OCI image with Torpor in it, localhost/torpor and a file in .build/dist (BASE=… instead of debian:bookworm-slim)
	@scripts/install-packages buildah crun
	@packaging/image/build $(BASE)

test-image: release ## Make the image on a Debian made here, and do in a container what docs/containers.md says (root)
	@scripts/install-packages $(DEB) mmdebstrap buildah crun podman curl
	@packaging/image/test

test-deb: deb ## Install, upgrade, remove and purge the packages of make deb on a bare Debian 12
	@scripts/install-packages $(DEB) mmdebstrap gpg
	@packaging/deb/test

test-reproducible: release ## Build everything a second time in another folder and compare the packages (as long as a release build)
	@scripts/install-packages $(DEB)
	@scripts/check-reproducible

demo: release ## Watch real programs go through the states (ARGS=--stay leaves it running)
	@config/demo/demo.sh .build/release $(ARGS)

demo-%: release ## Play a page of docs/demonstrations (demo-asleep, demo-kill-stop), about a minute each
	@scripts/follow-page --show docs/demonstrations/$*.md

demo-containers: release ## Play docs/demonstrations/containers.md: twenty containers of a compose file (root; half a minute)
	@scripts/install-packages $(CONTAINERS)
	@scripts/follow-page --show docs/demonstrations/containers.md

demo-memory: release ## Play docs/demonstrations/memory.md: earlyoom and Torpor beside each other (root; a minute and a half)
	@scripts/install-packages $(DENSITY)
	@scripts/demo-memory

test-demonstrations: release ## Follow the pages of docs/demonstrations
	@[ $$(id -u) != 0 ] || scripts/install-packages $(DENSITY) $(CONTAINERS) || true
	@for page in docs/demonstrations/*.md; do \
		script=scripts/demo-$$(basename $$page .md); \
		if [ -x $$script ]; then set -- $$script --seconds 10; else set -- scripts/follow-page $$page; fi; \
		echo "$$page"; "$$@"; status=$$?; \
		if [ $$status = 1 ]; then \
			"$$@" || exit 1; \
			echo "FLAKY: $$page failed once, then passed"; \
			status=0; \
		fi; \
		[ $$status = 3 ] && echo "$$page is left out"; \
		[ $$status = 0 ] || [ $$status = 3 ] || exit 1; \
	done

recordings-demonstrations: release ## Record the demonstrations and draw their moving pictures (root, on a machine that does nothing else)
	@scripts/install-packages $(DENSITY) $(CONTAINERS)
	@mkdir -p .build/bench .build/demonstrations
	@scripts/systemd-container make density .build/bench/density-root
	@for page in asleep containers kill-stop; do \
		scripts/record-terminal .build/demonstrations/$$page.cast scripts/follow-page --show docs/demonstrations/$$page.md || exit 1; \
		scripts/draw-recording --title "make demo-$$page" .build/demonstrations/$$page.cast >docs/demonstrations/$$page.svg || exit 1; \
	done
	scripts/record-terminal .build/demonstrations/memory.cast scripts/demo-memory
	scripts/draw-recording --title "make demo-memory, twice as fast" --speed 2 .build/demonstrations/memory.cast \
		>docs/demonstrations/memory.svg

bench: release ## Measure Torpor beside its peers (QUICK=1: three minutes; ARGS="--only scale --peers floor,torpor")
	@scripts/install-packages $(PEERS)
	$(SWIFT) build -c release --package-path Benchmarks --product bench
	$(SWIFT) build -c release --package-path Benchmarks --product hello
	@mkdir -p .build/bench
	-@scripts/systemd-container make bench .build/bench/systemd-root
	Benchmarks/.build/release/bench $(if $(QUICK),--quick) --json .build/bench/results.json \
		--svg .build/bench/results.svg --markdown .build/bench/results.md $(ARGS)

bench-density: release ## Measure how many apps fit into little memory (QUICK=1: three minutes; ARGS="--peers torpor,systemd")
	@scripts/install-packages $(DENSITY)
	$(SWIFT) build -c release --package-path Benchmarks --product bench
	@mkdir -p .build/bench
	@scripts/systemd-container make density .build/bench/density-root
	Benchmarks/.build/release/bench --only density $(if $(QUICK),--quick) --json .build/bench/density.json \
		--svg .build/bench/density.svg --markdown .build/bench/density.md $(ARGS)

bench-micro: release ## Count the instructions of the inner parts (CHECK=1 fails on a regression, WRITE=1 takes them as the baseline)
	@scripts/install-packages gcc valgrind binutils
	$(SWIFT) build -c release --package-path Benchmarks --product micro
	Benchmarks/.build/release/micro --root .build/release --baseline Benchmarks/micro-baseline.json \
		$(if $(CHECK),--check) $(if $(WRITE),--write) $(ARGS)

format: ## Format the sources
	$(SWIFT) format format --in-place --parallel $$(git ls-files -co --exclude-standard '*.swift')

lint: ## Complain about formatting
	@scripts/check-sources format

clean: ## Remove what was built
	$(SWIFT) package clean
