#!/bin/bash
# Builds and runs every check that needs a GPU; ends with a table and the line `N passed, N failed, N skipped`.
# Needs a GPU and the CUDA toolkit (CUDA_HOME), or a harness that was built elsewhere; with make and Open MPI also whole runs
# are checked. Without a GPU it says so and exits 0.
cd "$(dirname "$0")/../.." || exit 2
CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
nvcc=${NVCC:-$CUDA_HOME/bin/nvcc}
harness=build/cuda/tests/gpu/harness
train=build/cuda/bin/fluentps-train
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0
table=()

note() {  # name, passed|failed|skipped, detail
  case $2 in
    passed) passed=$((passed + 1)) ;;
    skipped) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
  esac
  table+=("$(printf '%-22s %-8s %s' "$1" "$2" "$3")")
}
finish() {
  printf '%s\n' "${table[@]}"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
  exit
}
there() { command -v "$1" >/dev/null 2>&1; }
step() {  # name, command...: its output is shown where it fails
  local name=$1
  shift
  if "$@" >"$scratch/log" 2>&1; then note "$name" passed "$(tail -n 1 "$scratch/log" | cut -c -100)"; return 0; fi
  note "$name" failed "$(tail -n 1 "$scratch/log" | cut -c -100)"
  cat "$scratch/log"
  return 1
}

gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
if [ "$gpus" = 0 ]; then
  echo "There is no GPU on this machine (nvidia-smi lists none), so none of the checks was run."
  for each in build kernels norms apply staging nccl compute-sanitizer "train staged" "train auto"; do
    note "$each" skipped "no GPU"
  done
  finish
fi

# --- Build ------------------------------------------------------------------------------------------------------------------
nccl=0
if [ -e "${NCCL_HOME:-$CUDA_HOME}/include/nccl.h" ]; then nccl=1; fi
build_harness() {  # without MPI: what the harness is made of, and no more
  local include=(-Iinclude -Isrc "-I$CUDA_HOME/include" "-I${NCCL_HOME:-$CUDA_HOME}/include") libraries=()
  local sources=(tests/gpu/harness.cpp src/shard/{device_memory,kernels,shard_memory,shard_path,shard_path_device,wire_format}.cpp
    src/gpu/{cuda_error,cuda_device,open_device_cuda}.cpp src/gpu/nccl_group_cpu.cpp)
  if [ "$nccl" = 1 ]; then
    sources[-1]=src/gpu/nccl_group_nccl.cpp
    libraries=("-L${NCCL_HOME:-$CUDA_HOME}/lib64" -lnccl "-Wl,-rpath,${NCCL_HOME:-$CUDA_HOME}/lib64")
  fi
  mkdir -p "$(dirname "$harness")"
  "$nvcc" -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr -arch=native "${include[@]}" -c src/gpu/kernels.cu -o "$scratch/kernels.o" &&
    "${CXX:-g++}" -std=c++20 -O2 -ffp-contract=off -DFMT_HEADER_ONLY "${include[@]}" "${sources[@]}" "$scratch/kernels.o" \
      "${libraries[@]}" "-L$CUDA_HOME/lib64" -lcudart_static -ldl -lrt -pthread -o "$harness"
}
if [ -x "$nvcc" ] && there make && there mpicxx; then
  step build make CUDA=1 NCCL="$nccl" CUDA_HOME="$CUDA_HOME" programs gpu-tests || finish
elif [ -x "$nvcc" ]; then
  step "build without MPI" build_harness || finish
elif [ -x "$harness" ]; then
  note build skipped "$nvcc is not there; the harness that is there is used"
else
  note build failed "$nvcc is not there and no harness either; set CUDA_HOME"
  finish
fi

# --- One process -------------------------------------------------------------------------------------------------------------
if ! timeout 600 "$harness" >"$scratch/harness" 2>"$scratch/errors"; then
  note harness failed "it ended with an error: $(tail -n 1 "$scratch/errors")"
fi
while IFS='|' read -r name outcome detail; do note "$name" "$outcome" "$detail"; done <"$scratch/harness"

sanitizer=$(command -v compute-sanitizer || echo "$CUDA_HOME/bin/compute-sanitizer")
if [ -x "$sanitizer" ]; then
  for tool in memcheck racecheck; do
    step "$tool" timeout 900 "$sanitizer" --tool "$tool" --error-exitcode 9 "$harness" short kernels norms
  done
else
  note compute-sanitizer skipped "it is not installed"
fi

# --- Whole runs: bsp over GPUs has the bits of bsp on the host ------------------------------------------------------------------
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
ranks=3
if [ "$gpus" -lt "$ranks" ]; then export FLUENTPS_SHARE_GPUS=1; fi
weights() {  # transfer
  timeout 300 mpirun -np $ranks "$train" --model quadratic --sync bsp --iterations 30 --optimizer momentum --optimizer-at server \
    --out '' --gpu-transfer "$1" --save-weights "$scratch/$1.h5"
}
for transfer in staged auto; do
  if ! [ -x "$train" ] || ! there mpirun || ! there h5diff; then
    note "train $transfer" skipped "it needs MPI and h5diff"
    continue
  fi
  [ -e "$scratch/off.h5" ] || weights off >/dev/null 2>&1
  step "train $transfer" weights $transfer || continue
  step "bits of $transfer" h5diff "$scratch/off.h5" "$scratch/$transfer.h5"
done
finish
