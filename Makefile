# FluentPS. `make help` lists the targets; everything is written below build/.
# A job per core unless -j is given. Only in the first make: in the ones it calls the flag would override the user's.
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
SHELL := /bin/bash
.DEFAULT_GOAL := all

DEBUG ?= 0
SAN ?=
CUDA ?= 0
NCCL ?= 0
BUILD := build$(if $(SAN),/san-$(SAN))$(if $(filter 1,$(DEBUG)),/debug)
# With CUDA=1 the same objects are linked with those of src/gpu, so only what is linked lies apart.
OUT := $(BUILD)$(if $(filter 1,$(CUDA)),/cuda)

comma := ,

# --- Dependencies: found here, each overridable on the command line ----------------------------------------------------
MPICXX ?= mpicxx
CXX_WRAP := $(shell command -v ccache 2>/dev/null)
MPI_CFLAGS ?= $(shell $(MPICXX) --showme:compile 2>/dev/null) -DOMPI_SKIP_MPICXX
MPI_LIBS ?= $(shell $(MPICXX) --showme:link 2>/dev/null)
HDF5_CFLAGS ?= $(shell pkg-config --cflags hdf5-serial 2>/dev/null || pkg-config --cflags hdf5 2>/dev/null)
HDF5_LIBS ?= $(shell pkg-config --libs hdf5-serial 2>/dev/null || pkg-config --libs hdf5 2>/dev/null || echo -lhdf5)
BOOST_CFLAGS ?=
BOOST_LIBS ?= -lboost_program_options
FMT_CFLAGS ?=
FMT_LIBS ?= -lfmt
ZLIB_LIBS ?= -lz
TORCH_DIR ?= /usr
TORCH_CFLAGS ?= $(if $(filter /usr,$(TORCH_DIR)),,-isystem $(TORCH_DIR)/include) -isystem $(TORCH_DIR)/include/torch/csrc/api/include
TORCH_LIBS ?= -L$(TORCH_DIR)/lib -Wl,-rpath,$(TORCH_DIR)/lib -ltorch -ltorch_cpu -lc10 \
  $(if $(wildcard $(TORCH_DIR)/lib/libtorch_cuda.so),-Wl$(comma)--no-as-needed -ltorch_cuda -lc10_cuda -Wl$(comma)--as-needed)
CUDA_HOME ?= /usr/local/cuda
NVCC ?= $(CUDA_HOME)/bin/nvcc
NCCL_HOME ?= $(CUDA_HOME)
ifneq ($(filter 1,$(CUDA) $(NCCL)),)
$(if $(filter 0,$(CUDA)),$(error NCCL=1 needs CUDA=1 too))
$(if $(wildcard $(NVCC)),,$(error CUDA=1 needs nvcc, and $(NVCC) is not there; set CUDA_HOME, the folder of the CUDA toolkit))
endif
PYTHON ?= /usr/bin/python3
FIND_DEPS = MPICXX='$(MPICXX)' CXX='$(CXX)' NVCC='$(NVCC)' PYTHON='$(PYTHON)' \
  DEP_CFLAGS='$(HDF5_CFLAGS) $(TORCH_CFLAGS) $(BOOST_CFLAGS) $(FMT_CFLAGS) $(CXXFLAGS)' tests/find_deps

PACKAGES := g++ make git ca-certificates pkg-config openmpi-bin libopenmpi-dev libucx-dev libhdf5-dev hdf5-tools \
  libboost-program-options-dev libtorch-dev libopenblas0-serial libfmt-dev zlib1g-dev libgtest-dev libbenchmark-dev dataset-fashion-mnist \
  python3 python3-h5py python3-matplotlib python3-numpy python3-pandas python3-pytest python3-pytest-xdist libsimgrid-dev ccache procps

# --- Flags --------------------------------------------------------------------------------------------------------------
OPTIMIZE := $(if $(filter 1,$(DEBUG)),-O0,-O3)
# GCC 12 with sanitizers sees uninitialized members in std::regex that are none.
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-maybe-uninitialized)
CXXFLAGS ?= -g1
# Paths in debug information begin at the project's folder, so that ccache serves several checkouts.
PREFIX_MAP := -ffile-prefix-map='$(CURDIR)'=.
# GCC 12 sees an overflow in fmt 9's format specs that is none (-Wstringop-overflow).
ALL_CXXFLAGS = -std=c++20 $(OPTIMIZE) $(CXXFLAGS) -Wall -Wextra -Wpedantic -Wno-stringop-overflow -ffp-contract=off $(PREFIX_MAP) $(SANFLAGS) -Iinclude -Isrc \
  $(MPI_CFLAGS) $(HDF5_CFLAGS) $(BOOST_CFLAGS) $(FMT_CFLAGS) -MMD -MP
# Every operation rounds by itself, as on the host (src/shard/elementwise.hpp).
NVCCFLAGS ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
ALL_NVCCFLAGS = -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr $(NVCCFLAGS) -ccbin $(CXX) -Xcompiler -Wall,-Wextra -Iinclude -Isrc
GPU_CFLAGS = -isystem $(CUDA_HOME)/include -isystem $(NCCL_HOME)/include
GPU_LIBS = $(if $(filter 1,$(NCCL)),-L$(NCCL_HOME)/lib64 -L$(NCCL_HOME)/lib -Wl$(comma)-rpath$(comma)$(NCCL_HOME)/lib64 -lnccl) \
  -L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt
LDLIBS_CORE = $(if $(filter 1,$(CUDA)),$(GPU_LIBS)) $(HDF5_LIBS) $(FMT_LIBS) $(MPI_LIBS) -pthread
LDLIBS_TRAIN = $(TORCH_LIBS) $(ZLIB_LIBS)

# --- Sources ------------------------------------------------------------------------------------------------------------
ROOMS := text sync shard net ps trace
CORE_OBJ := $(patsubst %.cpp,$(BUILD)/obj/%.o,$(foreach room,$(ROOMS),$(wildcard src/$(room)/*.cpp)))
GPU_SOURCES := $(if $(filter 1,$(NCCL)),src/gpu/nccl_group_nccl.cpp,src/gpu/nccl_group_cpu.cpp) \
  $(if $(filter 1,$(CUDA)),src/gpu/kernels.cu $(addprefix src/gpu/,cuda_error.cpp cuda_device.cpp open_device_cuda.cpp),src/gpu/open_device_cpu.cpp)
CORE_OBJ += $(patsubst %,$(BUILD)/obj/%.o,$(basename $(GPU_SOURCES)))
TRAIN_OBJ := $(patsubst %.cpp,$(BUILD)/obj/%.o,$(wildcard src/train/*.cpp))
CORE := $(OUT)/lib/libfluentps.a
TRAIN := $(OUT)/lib/libfluentps-train.a
APPS := $(patsubst src/apps/fluentps_%.cpp,%,$(wildcard src/apps/fluentps_*.cpp))
PROGRAMS := $(foreach app,$(APPS),$(OUT)/bin/fluentps-$(app))
EXAMPLES := $(patsubst examples/%.cpp,$(OUT)/examples/%,$(wildcard examples/*.cpp))
UNIT_ROOMS := $(notdir $(patsubst %/,%,$(dir $(wildcard tests/unit/*/*_test.cpp))))
UNIT_TESTS := $(foreach room,$(sort $(UNIT_ROOMS)),$(OUT)/tests/unit-$(room))
MPI_TESTS := $(patsubst tests/mpi/%_test.cpp,$(OUT)/tests/mpi/%,$(wildcard tests/mpi/*_test.cpp))
TEST_PROGRAMS := $(patsubst tests/system/programs/%.cpp,$(OUT)/tests/programs/%,$(wildcard tests/system/programs/*.cpp))
FUZZERS := $(patsubst tests/fuzz/%_fuzz.cpp,%,$(wildcard tests/fuzz/*_fuzz.cpp))
REPLAYS := $(foreach name,$(FUZZERS),$(OUT)/tests/unit-fuzz-$(name))
BENCHES := $(patsubst bench/%.cpp,$(OUT)/bench/%,$(wildcard bench/*.cpp))
objects = $(patsubst %.cpp,$(BUILD)/obj/%.o,$(wildcard $(1)))

.PHONY: all gpu-tests check-cuda-build sim sim-study figures help deps slurm-deps status require programs tests demo check lint format bench fuzz soak check-san clean
.SECONDARY:

all: require programs $(CORE) ## build the programs into build/bin and the library into build/lib
programs: $(PROGRAMS)
LEAK_CHECK := $(BUILD)/tests/libleak_check.so
tests: $(UNIT_TESTS) $(MPI_TESTS) $(EXAMPLES) $(TEST_PROGRAMS) $(REPLAYS) $(LEAK_CHECK)

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1|/' | column -t -s '|'
	@echo "  switches: V=1 (show commands), DEBUG=1, SAN=address|undefined, CUDA=1, NCCL=1, CUDA_HOME=..., PYTHON=..., MPICXX=..., TORCH_DIR=..., HDF5_LIBS=..."

deps: ## install what is needed (Debian, Ubuntu); elsewhere: list it
	@tests/install_deps $(PACKAGES)

slurm-deps: ## install Slurm and shellcheck, for the tests of the job scripts (skipped without)
	@tests/install_deps slurm-wlm munge shellcheck

status: ## show which dependencies were found
	@$(FIND_DEPS) --status

# Names what is missing, and the package that brings it, before anything is compiled.
require:
	@$(FIND_DEPS)

# One line per step; V=1 shows the commands.
Q := $(if $(V),,@)
SAY := $(if $(V),@true,@echo)

# --- Rules --------------------------------------------------------------------------------------------------------------
FLUENTPS_GIT := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
$(BUILD)/git-version: FORCE
	@mkdir -p $(@D); echo '$(FLUENTPS_GIT)' | cmp -s - $@ || echo '$(FLUENTPS_GIT)' >$@
FORCE:
$(BUILD)/obj/src/trace/provenance.o: $(BUILD)/git-version
$(BUILD)/obj/src/trace/provenance.o: EXTRA = -DFLUENTPS_GIT='"$(FLUENTPS_GIT)"'
$(BUILD)/obj/src/train/%.o: OPTIMIZE := $(if $(filter 1,$(DEBUG)),-O0,-O2)
$(BUILD)/obj/src/train/%.o: EXTRA = $(TORCH_CFLAGS)
$(BUILD)/obj/tests/%.o: OPTIMIZE := $(if $(filter 1,$(DEBUG)),-O0,-O1)
$(BUILD)/obj/tests/unit/train/%.o: EXTRA = $(TORCH_CFLAGS)
$(BUILD)/obj/tests/mpi/%.o: EXTRA = -Itests/mpi

$(BUILD)/obj/src/gpu/%.o $(BUILD)/obj/tests/gpu/%.o: EXTRA = $(if $(filter 1,$(CUDA)),$(GPU_CFLAGS))

$(BUILD)/obj/%.o: %.cpp | require
	@mkdir -p $(@D)
	$(SAY) compile $<
	$(Q)$(CXX_WRAP) $(CXX) $(ALL_CXXFLAGS) $(EXTRA) -c $< -o $@

$(BUILD)/obj/%.o: %.cu
	@mkdir -p $(@D)
	$(SAY) compile $<
	$(Q)$(CXX_WRAP) $(NVCC) $(ALL_NVCCFLAGS) -MMD -MP -c $< -o $@

$(CORE): $(CORE_OBJ)
$(TRAIN): $(TRAIN_OBJ)
$(OUT)/lib/%.a:
	@mkdir -p $(@D)
	$(SAY) archive $@
	$(Q)rm -f $@ && ar rcs $@ $^

LINK = $(Q)mkdir -p $(@D); $(if $(V),,echo link $@;) $(CXX) $(SANFLAGS) $(filter %.o,$^) $(filter %.a,$^)
define program
$(OUT)/bin/fluentps-$(1): $(BUILD)/obj/src/apps/fluentps_$(1).o $(call objects,src/apps/$(1)/*.cpp) \
    $(if $(filter train,$(1)),$(TRAIN)) $(CORE)
	$$(LINK) $(if $(filter train,$(1)),$(LDLIBS_TRAIN)) $(BOOST_LIBS) $(LDLIBS_CORE) -o $$@
endef
$(foreach app,$(APPS),$(eval $(call program,$(app))))
define unit_test
$(OUT)/tests/unit-$(1): $(call objects,tests/unit/$(1)/*.cpp) $(if $(filter apps,$(1)),$(BUILD)/obj/src/apps/train/ini_file.o) \
    $(if $(filter train,$(1)),$(BUILD)/obj/tests/unit/gpu/fake_device.o $(TRAIN)) $(CORE)
	$$(LINK) -lgtest -lgtest_main $(if $(filter train,$(1)),$(LDLIBS_TRAIN)) $(BOOST_LIBS) $(LDLIBS_CORE) -o $$@
endef
$(foreach room,$(sort $(UNIT_ROOMS)),$(eval $(call unit_test,$(room))))
$(OUT)/tests/mpi/training: $(TRAIN)
$(OUT)/tests/mpi/training: LDLIBS_EXTRA = $(LDLIBS_TRAIN)
$(OUT)/tests/mpi/device: $(BUILD)/obj/tests/unit/gpu/fake_device.o
$(OUT)/tests/mpi/%: $(BUILD)/obj/tests/mpi/%_test.o $(BUILD)/obj/tests/mpi/mpi_main.o $(CORE)
	$(LINK) $(filter %/libfluentps.a,$^) -lgtest $(LDLIBS_EXTRA) $(LDLIBS_CORE) -o $@
# Needs neither MPI nor HDF5, so it is linked without what it does not use.
$(OUT)/tests/gpu/%: $(BUILD)/obj/tests/gpu/%.o $(CORE)
	$(LINK) -Wl,--as-needed $(LDLIBS_CORE) -o $@
$(OUT)/examples/%: $(BUILD)/obj/examples/%.o $(CORE)
	$(LINK) $(LDLIBS_CORE) -o $@
$(OUT)/tests/programs/%: $(BUILD)/obj/tests/system/programs/%.o $(CORE)
	$(LINK) $(LDLIBS_CORE) -o $@
# Counts what a program makes and frees of MPI (tests/system/test_mpi_leaks.py).
$(LEAK_CHECK): tests/system/leak_check.cpp | require
	@mkdir -p $(@D)
	$(SAY) link $@
	$(Q)$(CXX_WRAP) $(CXX) -std=c++20 -O1 -g1 -Wall -Wextra -fPIC -shared $(MPI_CFLAGS) $< $(MPI_LIBS) -o $@
# The corpus goes through each fuzz target in make check; make fuzz searches on with clang's libFuzzer and both sanitizers.
$(BUILD)/obj/tests/fuzz/replay-%.o: tests/fuzz/replay_test.cpp | require
	@mkdir -p $(@D)
	$(Q)$(CXX_WRAP) $(CXX) $(ALL_CXXFLAGS) -DFLUENTPS_CORPUS='"tests/fuzz/corpus/$*"' -c $< -o $@
$(OUT)/tests/unit-fuzz-%: $(BUILD)/obj/tests/fuzz/replay-%.o $(BUILD)/obj/tests/fuzz/%_fuzz.o $(BUILD)/obj/src/apps/train/ini_file.o $(TRAIN) $(CORE)
	$(LINK) $(filter %/libfluentps.a,$^) -lgtest -lgtest_main $(LDLIBS_TRAIN) $(LDLIBS_CORE) -o $@
FUZZ_SOURCES := $(wildcard src/text/*.cpp src/sync/*.cpp src/shard/*.cpp src/trace/*.cpp) src/apps/train/ini_file.cpp \
  $(addprefix src/train/,dataset.cpp idx_reader.cpp cifar_reader.cpp synthetic_images.cpp)
$(BUILD)/fuzz/obj/%.o: %.cpp
	@mkdir -p $(@D)
	$(SAY) compile for fuzzing $<
	$(Q)clang++ -std=c++20 -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -Iinclude -Isrc \
	  $(MPI_CFLAGS) $(HDF5_CFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/%_fuzz.o $(patsubst %.cpp,$(BUILD)/fuzz/obj/%.o,$(FUZZ_SOURCES))
	$(SAY) link $@
	$(Q)clang++ -fsanitize=fuzzer,address,undefined $^ $(ZLIB_LIBS) $(HDF5_LIBS) $(FMT_LIBS) -o $@
$(OUT)/bench/%: $(BUILD)/obj/bench/%.o $(CORE)
	$(LINK) -lbenchmark -lbenchmark_main $(LDLIBS_CORE) -o $@

# --- Simulated clusters: the same sources as shared objects that SimGrid loads (docs/simulation.md) ---------------------
SMPICXX ?= smpicxx
SIM := $(BUILD)/sim
SIM_PROGRAMS := $(SIM)/bin/fluentps-train $(SIM)/bin/fluentps-bench
SIM_CXXFLAGS = $(filter-out $(MPI_CFLAGS),$(ALL_CXXFLAGS)) -DFLUENTPS_SIMULATED -DSMPI_NO_OVERRIDE_MALLOC
SIM_CORE_OBJ := $(filter-out $(BUILD)/obj/src/gpu/%,$(CORE_OBJ)) $(call objects,src/gpu/*_cpu.cpp)
sim_objects = $(patsubst $(BUILD)/obj/%,$(SIM)/obj/%,$(1))
$(SIM)/obj/src/trace/provenance.o: $(BUILD)/git-version
$(SIM)/obj/src/trace/provenance.o: EXTRA = -DFLUENTPS_GIT='"$(FLUENTPS_GIT)"'
$(SIM)/obj/src/train/%.o: OPTIMIZE := $(if $(filter 1,$(DEBUG)),-O0,-O2)
$(SIM)/obj/src/train/%.o: EXTRA = $(TORCH_CFLAGS)
$(SIM)/obj/%.o: %.cpp
	@mkdir -p $(@D)
	$(SAY) compile for simulation $<
	$(Q)$(CXX_WRAP) $(SMPICXX) $(SIM_CXXFLAGS) $(EXTRA) -c $< -o $@
$(SIM)/bin/fluentps-train: $(call sim_objects,$(TRAIN_OBJ))
$(SIM)/bin/fluentps-train: EXTRA_LIBS = $(LDLIBS_TRAIN)
$(SIM)/bin/fluentps-%: $(call sim_objects,$(SIM_CORE_OBJ))
	@mkdir -p $(@D)
	$(SAY) link $@
	$(Q)$(SMPICXX) $^ $(EXTRA_LIBS) $(BOOST_LIBS) $(HDF5_LIBS) $(FMT_LIBS) -pthread -o $@
define sim_program
$(SIM)/bin/fluentps-$(1): $(call sim_objects,$(BUILD)/obj/src/apps/fluentps_$(1).o $(call objects,src/apps/$(1)/*.cpp))
endef
$(foreach app,train bench,$(eval $(call sim_program,$(app))))

# --- What people call ---------------------------------------------------------------------------------------------------
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
demo check check-san soak: OMPI_ALLOW_RUN_AS_ROOT = 1
demo check check-san soak: OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1
demo check check-san soak: OMPI_MCA_rmaps_base_oversubscribe = 1

sim: $(SIM_PROGRAMS) ## build the programs for simulated clusters into build/sim/bin; run them with bin/fluentps-sim

sim-study: sim programs ## measure large simulated clusters, and small ones beside live runs (about 15 minutes; root)
	@tests/sim_study

demo: ## set up, train lenet on fashion-mnist with 2 servers and 4 workers, draw the picture
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory programs
	mpirun -np 6 $(OUT)/bin/fluentps-train --config configs/quickstart.cfg
	@run=$$(ls -td results/*/ | head -n 1); $(OUT)/bin/fluentps-trace info "$$run" && $(PYTHON) analysis/plot_run.py "$$run"

check: ## set up, build everything, run all tests; ends with N passed, N failed, N skipped
	@$(MAKE) --no-print-directory deps
	@$(FIND_DEPS) --tests
	@$(MAKE) --no-print-directory programs tests $(if $(shell command -v $(SMPICXX) 2>/dev/null),sim)
	@$(if $(wildcard $(NVCC)),$(MAKE) --no-print-directory check-cuda-build,echo "skipped: the build with CUDA ($(NVCC) is not there; CUDA_HOME names the toolkit)")
	@$(PYTHON) tests/run_tests --build $(OUT)

SCALE ?= quick
FIGURE_JOBS ?= 2
FIGURE_RUNS := results/figures/runs
FIGURE_SWEEPS := $(foreach each,timeline slicing accuracy equivalence delays sensitivity scale scaling,configs/sweeps/$(each).toml)
figures: ## the paper's figures and claims, on simulated clusters, into results/figures (docs/reproduction.md; SCALE=full: paper scale)
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory programs sim $(BUILD)/bench/controller_bench
	@mkdir -p $(FIGURE_RUNS)
	$(BUILD)/bench/controller_bench --benchmark_min_time=0.1 --benchmark_repetitions=3 --benchmark_out=$(FIGURE_RUNS)/controller.json \
	  --benchmark_out_format=json >/dev/null
	FLUENTPS_RESULTS=$(FIGURE_RUNS) FLUENTPS_BUILD=$(BUILD) $(PYTHON) jobs/submit.py $(FIGURE_SWEEPS) --local --jobs $(FIGURE_JOBS) --scale $(SCALE)
	$(PYTHON) analysis/figures.py all --results $(FIGURE_RUNS) --out results/figures --scale $(SCALE)
	$(PYTHON) analysis/claims.py --figures results/figures --out results

check-cuda-build: ## build the programs with CUDA=1 NCCL=1 into build/cuda: compiled and linked, not run
	@$(MAKE) --no-print-directory CUDA=1 NCCL=1 programs gpu-tests
gpu-tests: $(if $(filter 1,$(CUDA)),$(OUT)/tests/gpu/harness)

SOURCES = $(shell git ls-files '*.cpp' '*.hpp' '*.cu')
LINT_FILES ?= $(shell git diff --name-only --diff-filter=d HEAD~1 -- 'src/*.cpp' 2>/dev/null)
lint: ## clang-format on all sources, clang-tidy on the files changed last (LINT_FILES=...)
	@for each in clang-format clang-tidy; do command -v $$each >/dev/null || { echo "missing: $$each (Debian package $$each)"; exit 2; }; done
	clang-format --dry-run -Werror $(SOURCES)
	$(if $(LINT_FILES),clang-tidy --quiet $(LINT_FILES) -- -std=c++20 -Iinclude -Isrc $(MPI_CFLAGS) $(HDF5_CFLAGS) $(TORCH_CFLAGS) $(if $(wildcard $(NVCC)),$(GPU_CFLAGS)))
format: ## apply clang-format
	clang-format -i $(SOURCES)

bench: $(BENCHES) $(OUT)/bin/fluentps-bench ## build and run the benchmarks
	@for each in $(BENCHES); do "$$each" || exit 1; done

SOAK_SECONDS ?= 600
soak: $(OUT)/bin/fluentps-train ## 8 ranks with random stragglers and model switches for ten minutes: memory must stay flat
	@$(PYTHON) tests/soak $(SOAK_SECONDS)

SAN_DIR := build/san-address,undefined/tests
SAN_UNIT := $(foreach room,text sync shard net ps trace,$(SAN_DIR)/unit-$(room))
SAN_MPI := $(foreach name,session local_group,$(SAN_DIR)/mpi/$(name))
check-san: ## unit tests and the session's tests under MPI with the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory SAN=address,undefined $(SAN_UNIT) $(SAN_MPI)
	@for each in $(SAN_UNIT); do LSAN_OPTIONS=suppressions=tests/leaks.supp:print_suppressions=0 "$$each" --gtest_brief=1 || exit 1; done
	@for each in $(SAN_MPI); do ASAN_OPTIONS=detect_leaks=0 mpirun -np 5 "$$each" --gtest_brief=1 || exit 1; done

# Leaks are not looked for: HDF5 1.10.8 leaks a few buffers of its own when it refuses a damaged file.
FUZZ_SECONDS ?= 60
fuzz: $(addprefix $(BUILD)/fuzz/,$(FUZZERS)) ## search for crashes with libFuzzer (clang, libclang-rt-14-dev), FUZZ_SECONDS=60 in all
	@for each in $(FUZZERS); do mkdir -p $(BUILD)/fuzz/found/$$each; \
	  ASAN_OPTIONS=detect_leaks=0 $(BUILD)/fuzz/$$each -max_total_time=$$(( $(FUZZ_SECONDS) / $(words $(FUZZERS)) )) -max_len=100000 -timeout=10 -rss_limit_mb=4000 \
	    -artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/found/$$each tests/fuzz/corpus/$$each >$(BUILD)/fuzz/$$each.log 2>&1 \
	    || { tail -n 30 $(BUILD)/fuzz/$$each.log; exit 1; }; tail -n 1 $(BUILD)/fuzz/$$each.log; done

clean: ## remove build/
	rm -rf build

# Not made by themselves: replay-%.o and make's own rules would link replay-specs.d from replay-specs.d.o.
%.d: ;
-include $(shell find $(BUILD)/obj $(SIM)/obj $(BUILD)/fuzz/obj -name '*.d' 2>/dev/null)
