# cluster-kit: local clusters for distributed TensorFlow. `make` lists what there is.

CLUSTER   ?= quickstart
VARIANT   ?= cpu
PYTHON    ?= python3
KIT       := .venv/bin/cluster-kit
DEV       := .venv/.dev
RECIPE    := images/trainer/recipe
LOCKED    := PYTHONPATH=.venv/installers .venv/bin/python $(RECIPE)/install.py
OWN       := .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
ENGINE    ?= auto
# Processes of tests: for those with containers, each of which keeps a core busy or two, and for the others,
# a third of whose time is spent waiting.
JOBS      ?= 2
UNIT_JOBS ?= 4
export ENGINE

# On WSL the host's name, in every environment.
ifeq ($(origin NAME),environment)
NAME :=
endif

define newline


endef
# A value as one word of the shell's, apostrophes and all; a line of its own would be a command.
quoted = '$(subst ','\'',$(subst $(newline), ,$(1)))'

# --$(1) with the value of the variable $(2). Only what is given overrides the manifest.
option = $(if $($(2)),--$(1)=$(call quoted,$($(2))))

# The value of the variable $(1); nothing if it is 0, or another word that switches off.
on = $(filter-out 0 no off false,$($(1)))

# Each key that can be overridden, as option=VARIABLE; cluster_kit/manifest/command_line.py says
# what they mean, and a test compares the two.
PAIRS := chief=N_CHIEF workers=N_WORKERS ps=N_PS data-workers=N_DATA_WORKERS style=STYLE name=NAME engine=BACKEND \
  program=PROGRAM args=ARGS requirements=REQUIREMENTS data=DATA gpus=GPUS
# Those that are on or not: 1 or nothing.
SWITCHES := tf1=TF1
halves = $(subst =, ,$(pair))
OVERRIDES = $(foreach pair,$(PAIRS),$(call option,$(firstword $(halves)),$(lastword $(halves)))) \
  $(foreach pair,$(SWITCHES),$(if $(call on,$(lastword $(halves))),--$(firstword $(halves)))) \
  $(foreach pair,$(SET),--set=$(call quoted,$(pair)))

# What is random in a drill.
DRAWN = $(call option,seed,SEED) $(call option,faults,FAULTS)

# Cells of the matrix: several roles, and one kind of fault or "freeze 10 s".
CELLS = $(foreach role,$(ROLE),--role=$(call quoted,$(role))) $(call option,fault,FAULT) \
  $(if $(call on,AGAIN),--again)

# Reject unknown variables; Make ignores them silently.
OF_ONE := CLUSTER $(foreach pair,$(PAIRS) $(SWITCHES),$(lastword $(halves))) SET
# Those that only some targets read, with the targets.
READ_BY := KEEP/cluster/up/smoke RESUME/cluster/up/smoke PORTABLE/render CHECK/render PICTURE/pictures \
  $(foreach name,SCENARIO SEED FAULTS ROLE FAULT AGAIN,$(name)/drill)
parts = $(subst /, ,$(pair))
KNOWN := $(OF_ONE) $(foreach pair,$(READ_BY),$(firstword $(parts))) VARIANT PYTHON ENGINE JOBS UNIT_JOBS SHELL
# The loop's own variable would hide one that was given with the same name.
GIVEN := $(foreach -each,$(.VARIABLES),$(if $(filter command%,$(origin $(-each))),$(-each)))
UNKNOWN := $(filter-out $(KNOWN) MAKE% -%,$(GIVEN))
NEAREST = $(shell $(PYTHON) -c 'import difflib, sys; \
  print(*difflib.get_close_matches(sys.argv[1].upper(), sys.argv[2:], 1))' $(call quoted,$(1)) $(KNOWN) 2>/dev/null)
$(if $(UNKNOWN),$(error no such variable: $(UNKNOWN)$(foreach name,$(UNKNOWN),$(foreach \
  nearest,$(call NEAREST,$(name)),; did you mean $(nearest)?)); there are: $(KNOWN)))
$(foreach pair,$(READ_BY),$(if $(and $(MAKECMDGOALS),$(filter $(firstword $(parts)),$(GIVEN))),$(if \
  $(filter $(parts),$(MAKECMDGOALS)),,$(error only `make $(word 2,$(parts))` reads $(firstword $(parts))))))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Messages of the kit name Make's variables then, not options.
cluster drill render new tensorboard serve status logs down doctor gpus engine image compare speedup: \
  export CLUSTER_KIT_CALLED_BY := make

##@ Run a cluster
.PHONY: cluster
cluster: engine ## Run CLUSTER to its end   [CLUSTER N_WORKERS N_PS NAME PROGRAM ARGS DATA GPUS KEEP RESUME]
#  and N_CHIEF, N_DATA_WORKERS, STYLE, TF1, REQUIREMENTS, SET="key=value …"
	@$(KIT) up $(call quoted,$(CLUSTER)) $(OVERRIDES) $(if $(call on,KEEP),--keep$(if $(filter failed,$(KEEP)),=failed)) $(if $(call on,RESUME),--resume)

.PHONY: up
up: cluster ## The same as cluster

.PHONY: smoke
smoke: ## The smallest cluster with every role, CPU only
	@$(MAKE) --no-print-directory cluster CLUSTER=smoke

# What is given says whether it is one drill, or cells of the matrix.
OF_CELLS := $(filter ROLE FAULT AGAIN,$(GIVEN))
ONE_DRILL := $(filter $(if $(OF_CELLS),$(filter-out CLUSTER,$(OF_ONE)),$(OF_ONE)) SCENARIO SEED FAULTS,$(GIVEN))
$(if $(and $(OF_CELLS),$(ONE_DRILL)),$(error $(OF_CELLS) choose cells of the matrix, which takes no $(ONE_DRILL)))
.PHONY: drill
drill: $(DEV) engine ## Break every role of every system   [ROLE FAULT AGAIN]; or one CLUSTER as SCENARIO says   [SCENARIO, or FAULTS SEED]
ifeq ($(ONE_DRILL),)
	@$(KIT) matrix $(if $(filter CLUSTER,$(GIVEN)),$(call quoted,$(CLUSTER))) $(CELLS)
else
	@$(KIT) drill $(call quoted,$(CLUSTER)) $(if $(SCENARIO),$(call quoted,$(SCENARIO))) $(OVERRIDES) $(DRAWN)
endif

.PHONY: new
new: $(KIT) ## Begin a cluster of your own: compose/NAME.toml, programs/NAME/train.py   [NAME STYLE]
	@$(KIT) new $(call quoted,$(NAME)) $(call option,style,STYLE)

.PHONY: render
render: $(KIT) ## Write compose/CLUSTER/compose.yaml, for plain `docker compose up`   [PORTABLE CHECK]
	@$(KIT) render $(call quoted,$(CLUSTER)) $(OVERRIDES) $(if $(call on,PORTABLE),--portable) $(if $(call on,CHECK),--check)

# Without a name the command takes the only cluster that is up.
NAMED = $(or $(NAME),$(if $(filter-out file,$(origin CLUSTER)),$(CLUSTER)))
ONE_NAMED = $(if $(NAMED),$(call quoted,$(NAMED)))

.PHONY: tensorboard
tensorboard: $(KIT) engine ## Show CLUSTER's newest run in TensorBoard until Ctrl-C, also while it trains
	@$(KIT) tensorboard $(call quoted,$(NAMED))

.PHONY: serve
serve: $(KIT) ## Show CLUSTER, or all clusters and runs, as live pages in a browser until Ctrl-C
	@$(KIT) serve $(ONE_NAMED)

.PHONY: status logs down doctor gpus
status: $(KIT) ## Show the tasks of all clusters that are up, or of one   [NAME]
	@$(KIT) status $(ONE_NAMED)
logs: $(KIT) ## Print the logs of CLUSTER's tasks
	@$(KIT) logs $(ONE_NAMED)
down: $(KIT) ## Remove CLUSTER's containers and network
	@$(KIT) down $(ONE_NAMED)
gpus: $(KIT) ## Show this host's GPUs, and which cluster has them
	@$(KIT) gpus
doctor: $(KIT) ## Check this host, with a fix for each problem
	@$(KIT) doctor

##@ Prepare
.PHONY: engine
engine: $(KIT) ## Install and start a Docker engine if none answers   [ENGINE=never]
	@$(KIT) engine --quiet

# Tests of pages need one; where none can be installed they are skipped, and say so.
.PHONY: browser
browser: ## Install a headless Chromium if there is none, as root on Debian or Ubuntu
	@command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing Chromium" \
	    && apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends chromium >/dev/null; } \
	  || echo "no Chromium here: the tests of pages are skipped"

# Unpacked, not installed: the package would start a service where there is an init.
.PHONY: prometheus
prometheus: ## Unpack Debian's Prometheus into build/ if there is none, for the tests of metrics
	@{ command -v prometheus && command -v promtool || command -v build/prometheus/usr/bin/promtool; } >/dev/null \
	  || { command -v apt-get dpkg-deb >/dev/null && echo "unpacking Prometheus" && mkdir -p build/prometheus && cd build/prometheus \
	    && { [ "$$(id -u)" != 0 ] || apt-get update -q >/dev/null; } && apt-get download -q prometheus >/dev/null \
	    && dpkg-deb -x prometheus_*.deb . \
	    && { [ -x usr/bin/promtool ] || { apt-get download -q promtool >/dev/null && dpkg-deb -x promtool_*.deb .; }; } \
	    && rm -f *.deb; } \
	  || echo "no Prometheus here: its tests are skipped"

.PHONY: image
image: $(KIT) engine ## Build the shared training image if it is missing or stale   [VARIANT=cpu|gpu]
	@$(KIT) image build --variant $(call quoted,$(VARIANT)) --quiet

# The environment is made anew when the dependencies change. Byte code is written here, since many
# images and CI jobs forbid Python to write it: each command would compile all that it imports.
$(KIT): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "cluster-kit needs Python 3.11 or newer; this is $$($(PYTHON) --version). Set PYTHON=…"; exit 3; }
	@echo "installing cluster-kit into .venv"
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	    && apt-get update -q >/dev/null && apt-get install -y -q python3-venv >/dev/null; } \
	  || { echo "no venv module: install it (apt-get install python3-venv)"; exit 3; }
	@$(PYTHON) -m venv --without-pip .venv || { echo "no environment in .venv: remove what is there (rm -r .venv)"; exit 3; }
	@{ .venv/bin/python $(RECIPE)/installers.py .venv/installers $(RECIPE)/locked-uv.txt \
	    && PYTHONDONTWRITEBYTECODE= $(LOCKED) --compile requirements.lock && $(OWN) \
	    && .venv/bin/python -m compileall -q -j 0 cluster_kit images/trainer/trainer; } \
	  2>.venv/pip.log || { cat .venv/pip.log; rm -f $(KIT); exit 3; }
	@touch $(KIT)

# What only tests, checks and benchmarks need: half a GB, of which they compile what they import.
$(DEV): $(KIT) requirements-dev.lock
	@echo "installing the tools of tests and checks into .venv"
	@$(LOCKED) requirements-dev.lock 2>.venv/pip.log || { cat .venv/pip.log; exit 3; }
	@touch $(DEV)

##@ Develop
# Tests start hundreds of Pythons, each of which would compile all modules again.
test test-more test-unit fuzz: export PYTHONDONTWRITEBYTECODE :=

# Those without containers first, each file of tests in one process.
WITHOUT_ENGINE := tests/unit tests/docs tests/golden tests/trainer tests/ci tests/predict
SPREAD = --numprocesses=$(UNIT_JOBS) --dist=loadfile --no-loadscope-reorder $(WITHOUT_ENGINE)

.PHONY: test
test: $(DEV) engine image browser prometheus ## Run the tests, including those on real containers; print what was skipped and why   [JOBS]
	@.venv/bin/pytest $(SPREAD); first=$$?; \
	  .venv/bin/pytest --numprocesses=$(JOBS) --dist=loadgroup --durations=40 $(WITHOUT_ENGINE:%=--ignore=%) && exit $$first

.PHONY: test-failed
test-failed: $(DEV) engine image ## Run the tests that failed last time again, one at a time
	@.venv/bin/pytest --last-failed --last-failed-no-failures=none --durations=10

.PHONY: test-more
test-more: $(DEV) engine image browser ## Run the tests that `make test` leaves to CI: further ways to train, to break and to stop   [JOBS]
	@.venv/bin/pytest -m more --numprocesses=$(JOBS) --dist=loadgroup --durations=40 tests/e2e

.PHONY: test-more-failed
test-more-failed: $(DEV) engine image ## Run those that failed last time again, one at a time
	@.venv/bin/pytest -m more --last-failed --last-failed-no-failures=none --durations=10 tests/e2e

.PHONY: test-slow
test-slow: $(DEV) engine image ## Run the tests that take minutes each: models at their real sizes
	@.venv/bin/pytest -m slow tests/e2e tests/slurm --durations=10

.PHONY: test-versions
test-versions: $(DEV) engine ## Run three systems on the oldest, a middle and the newest TensorFlow: an image for each
	@.venv/bin/python -m tests.versions

.PHONY: test-unit
test-unit: $(DEV) ## Run only the tests that need no Docker, no TensorFlow and no processes of their own   [UNIT_JOBS]
	@.venv/bin/pytest -m "not processes and not draws" $(SPREAD)

.PHONY: fuzz
fuzz: $(DEV) ## Test properties with up to a thousand random examples each (at most 11 minutes)
	@.venv/bin/pytest --numprocesses=$(JOBS) --dist=worksteal --hypothesis-profile=thorough \
	  -m hypothesis tests/unit tests/hostile tests/trainer/agent/beacon

.PHONY: mutate
mutate: $(DEV) ## Change 60 places of cluster_kit at random, one at a time, and count how many the unit tests notice (an hour)   [ARGS]
	@.venv/bin/python -m tests.mutate $(ARGS)

.PHONY: check
check: $(DEV) ## Check lint, formatting, types, import rules, generated files, known vulnerabilities
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@PYTHONPATH=images/trainer .venv/bin/lint-imports --no-cache
	@$(KIT) schema | cmp -s - compose/schema.json \
	  || { echo "compose/schema.json is stale: run \`make schema\`"; exit 1; }
	@.venv/bin/python -m docs.generate --check
	@.venv/bin/python -m tests.lock --check
	@.venv/bin/python -m tests.audit

.PHONY: lock
lock: $(DEV) ## Lock versions and hashes of what image and .venv install; run it after changing images/trainer/recipe/requirements-*.txt or pyproject.toml
	@.venv/bin/python -m tests.lock

.PHONY: docs
docs: $(DEV) ## Regenerate the parts of the documentation made from code and data
	@.venv/bin/python -m docs.generate

.PHONY: pictures
pictures: $(DEV) engine browser ## Make the pictures of README and docs from real runs   [PICTURE]
	@.venv/bin/python -m docs.pictures $(PICTURE)

.PHONY: schema
schema: $(KIT) ## Write the manifest's JSON Schema, for editors, to compose/schema.json
	@$(KIT) schema > compose/schema.json

.PHONY: bench
bench: $(DEV) engine image ## Compare the speed with a hand-written Compose file: table, JSON and PNG in build/bench/   [ARGS="quick --against FILE"]
	@.venv/bin/python -m tests.bench $(ARGS)

.PHONY: compare
compare: $(DEV) engine image ## Train one model in every way, one after the other: table, JSON and PNG in build/compare/   [ARGS]
	@$(KIT) compare $(ARGS)

.PHONY: predict-here
predict-here: $(DEV) engine image ## Compare predictions with runs on emulated machines, kept in build/predict-here/   [ARGS]
	@.venv/bin/python -m tests.predict.here $(ARGS)

.PHONY: speedup
speedup: engine image ## Measure how more workers speed up training, on machines of 2 vCPU, 8 GB, 100 Mbit/s: a table   [ARGS]
	@$(KIT) speedup $(ARGS)

.PHONY: wheel
wheel: $(KIT) ## Build dist/cluster_kit-*.whl, to be installed in projects of your own
	@rm -f dist/cluster_kit-*.whl
	@.venv/bin/pip --quiet --disable-pip-version-check wheel --no-deps --wheel-dir dist . && ls dist/cluster_kit-*.whl

# Measurements of minutes to hours, below build/.
MEASURED := bench compare drill predict-here speedup
# What `render` and `up` write into compose/NAME/, for each engine.
RENDERED := compose.yaml secrets.yaml stack.yaml kubernetes.yaml cluster.json sbatch.sh sbatch.json .gitignore
.PHONY: clean
clean: ## Remove generated files of clusters, and caches; results, measurements and what you wrote are kept
	@rm -rf .pytest_cache .mypy_cache .ruff_cache
	@find cluster_kit images tests docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	@rm -f $(RENDERED:%=compose/*/%)
	@find build -mindepth 1 -maxdepth 1 $(MEASURED:%=! -name %) -exec rm -rf {} + 2>/dev/null || true
	@find build compose -mindepth 1 -type d -empty ! -path '*/output/*' -delete 2>/dev/null || true

.PHONY: help
help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z][a-z-]*:.*## / {printf "  make %-16s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)
