# What the job scripts share: start ranks, checkpoint before the time is up, requeue, resume. No site's settings: env.sh.
# shellcheck shell=bash

readonly EXIT_USAGE=2 EXIT_RESUMABLE=75

say() { echo "fluentps job: $*"; }
refuse() { say "$*" >&2; exit "$EXIT_USAGE"; }

# set_up: software and launcher; the caller stands in the top folder of the repository.
set_up() {
  [ -n "${SLURM_JOB_ID:-}" ] || refuse "this is a job script; submit it with sbatch"
  # shellcheck source=jobs/env.sh
  . jobs/env.sh
  if [ -n "$FLUENTPS_MODULES" ]; then
    # shellcheck disable=SC2086 # a list of names
    module load $FLUENTPS_MODULES || refuse "module load $FLUENTPS_MODULES failed; mend FLUENTPS_MODULES in jobs/env.sh"
  fi
  if [ -n "$FLUENTPS_SPACK" ]; then
    eval "$(spack env activate --sh "$FLUENTPS_SPACK")" || refuse "spack env activate $FLUENTPS_SPACK failed; see jobs/env.sh"
  fi
  export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
  read -r -a prefix <<<"$FLUENTPS_PREFIX"
  [ "${#prefix[@]}" -gt 0 ] || [ -x "$FLUENTPS_BUILD/bin/fluentps-train" ] ||
    refuse "$FLUENTPS_BUILD/bin/fluentps-train is not there; run make, or set FLUENTPS_BUILD in jobs/env.sh"
  choose_launcher
}

choose_launcher() {
  local has_pmix=no
  srun --mpi=list 2>&1 | grep -qw pmix && has_pmix=yes
  launcher=$FLUENTPS_LAUNCHER
  if [ "$launcher" = auto ]; then
    launcher=mpirun
    [ "$has_pmix" = no ] || launcher=srun
  fi
  case $launcher in
    srun) [ "$has_pmix" = yes ] ||
      refuse "srun has no pmix here (srun --mpi=list), so it would start ranks that do not know of each other;" \
        "set FLUENTPS_LAUNCHER=mpirun in jobs/env.sh" ;;
    mpirun) command -v mpirun >/dev/null || refuse "mpirun was not found; load Open MPI in jobs/env.sh (FLUENTPS_MODULES)" ;;
    *) refuse "FLUENTPS_LAUNCHER is '$launcher'; use auto, srun or mpirun" ;;
  esac
}

# launch PROGRAM [ARGUMENT...]: becomes the launcher. A rank that dies ends the step; servers may outlive workers.
launch() {
  local program="$FLUENTPS_BUILD/bin/$1" options
  shift
  # SIGUSR1 would end a rank that does not listen yet; run_part sends it again.
  # shellcheck disable=SC2016 # for the inner shell
  local rank=(sh -c 'trap "" USR1; exec "$@"' rank "${prefix[@]}")
  if [ "$launcher" = srun ]; then
    read -r -a options <<<"$FLUENTPS_SRUN_OPTIONS"
    # --cpus-per-task: since Slurm 22.05 srun does not take it from the job.
    local srun_command=(srun --mpi=pmix --kill-on-bad-exit=1 --wait=0 "${options[@]}")
    [ -z "${SLURM_HET_SIZE:-}" ] || exec "${srun_command[@]}" --het-group=0 --cpus-per-task="$(cores_per_task 0)" \
      env FLUENTPS_ROLE=server "${rank[@]}" "$program" "$@" : --het-group=1 --cpus-per-task="$(cores_per_task 1)" \
      --kill-on-bad-exit=1 --wait=0 "${options[@]}" env FLUENTPS_ROLE=worker "${rank[@]}" "$program" "$@"
    exec "${srun_command[@]}" --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" "${rank[@]}" "$program" "$@"
  fi
  unset SRUN_CPUS_PER_TASK  # mpirun's own srun would get that many cores for all ranks of a node
  read -r -a options <<<"$FLUENTPS_MPIRUN_OPTIONS"
  exec mpirun -np "$SLURM_NTASKS" "${options[@]}" "${rank[@]}" "$program" "$@"
}

cores_per_task() {  # of a component of a heterogeneous job
  local name=SLURM_CPUS_PER_TASK_HET_GROUP_$1
  echo "${!name:-1}"
}

# stage_data: copies FLUENTPS_DATA to every node's scratch; sets data_options.
stage_data() {
  data_options=()
  [ -n "$FLUENTPS_DATA" ] || return 0
  [ -d "$FLUENTPS_DATA" ] || refuse "FLUENTPS_DATA $FLUENTPS_DATA is no folder; mend it in jobs/env.sh"
  scratch=$FLUENTPS_SCRATCH/fluentps-$SLURM_JOB_ID
  { on_every_node mkdir -p "$scratch" && on_every_node cp -rL "$FLUENTPS_DATA/." "$scratch"; } ||
    refuse "could not copy $FLUENTPS_DATA to $scratch on every node; mend FLUENTPS_SCRATCH in jobs/env.sh"
  data_options=(--data "$scratch")
}
on_every_node() {
  local k nodes
  for ((k = 0; k < ${SLURM_HET_SIZE:-1}; k++)); do
    nodes=SLURM_JOB_NUM_NODES_HET_GROUP_$k
    nodes=${!nodes:-$SLURM_JOB_NUM_NODES}
    srun ${SLURM_HET_SIZE:+--het-group=$k} --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --mpi=none "$@" || return
  done
}
clean_scratch() { [ -z "${scratch:-}" ] || on_every_node rm -rf "$scratch"; }

# open_run FOLDER: the next part of a run. The folder holds, per part N: command-N, environment-N, exit-N and the trace
# part-N; and log (all parts) and checkpoints.
open_run() {
  run=$1 part=0
  mkdir -p "$run/checkpoints" || refuse "$run cannot be made; mend FLUENTPS_RESULTS in jobs/env.sh"
  while [ -e "$run/command-$part" ]; do part=$((part + 1)); done
  {
    env | grep -E '^(FLUENTPS|HDF5|MPI|NCCL|OMP|OMPI|OPENBLAS|PMIX|SLURM|SRUN|UCX)_' | sort
    echo "modules: ${LOADEDMODULES:-none}"
    echo "git: $(git describe --always --dirty 2>/dev/null || echo unknown)"
  } >"$run/environment-$part"
  # All that is printed from here on goes to the job's output and to the run's log.
  exec > >(trap '' USR1 TERM; exec tee -a "$run/log") 2>&1
  log_writer=$!
}

# run_part COMMAND...: runs it in the background, so that the shell can hear Slurm's signal, and gives SIGUSR1 on to it.
run_part() {
  local code heard=0
  printf '%q ' "$@" >"$run/command-$part"
  say "job $SLURM_JOB_ID, part $part of $run: ${SLURM_NTASKS:-?} ranks on ${SLURM_JOB_NODELIST:-?} with $launcher"
  "$@" &  # launch becomes the launcher, so this is the process to signal
  local step=$!
  trap 'heard=1; say "signal: the time is nearly up, ranks are asked to write a checkpoint"; ask "$step"' USR1
  while true; do
    heard=0
    wait "$step"
    code=$?
    [ "$heard" = 1 ] || break
  done
  trap '' USR1
  if [ -n "${asking:-}" ]; then
    kill "$asking" 2>/dev/null
    # srun may kill ranks that end a little later than the first, and then tells of that; the manifest is a checkpoint's last file.
    if [ "$code" != 0 ] && [ "$code" != "$EXIT_RESUMABLE" ] &&
      [ -n "$(find "$run/checkpoints" -name manifest.json -newer "$run/asked-$part")" ]; then
      say "ranks ended with exit code $code, but the checkpoint is whole"
      code=$EXIT_RESUMABLE
    fi
  fi
  echo "$code" >"$run/exit-$part"
  return "$code"
}

ask() {  # again and again: ranks that only start do not listen yet
  [ -z "${asking:-}" ] || return 0
  : >"$run/asked-$part"
  (while kill -USR1 "$1" 2>/dev/null; do sleep 5; done) &
  asking=$!
}

# train_part [OPTION...]: one part of a training run, from the last whole checkpoint where there is one.
train_part() {
  local option resume=() every=(--checkpoint-every "$FLUENTPS_CHECKPOINT_EVERY")
  for option in "$@"; do
    case $option in
      --checkpoint-every | --checkpoint-every=*) every=() ;;
      --out | --out=* | --run-id | --run-id=* | --checkpoint-dir | --checkpoint-dir=* | --resume | --resume=*)
        refuse "$option is given by the job script; FLUENTPS_RESULTS and FLUENTPS_RUN (jobs/env.sh) choose the folder" ;;
    esac
  done
  if compgen -G "$run/checkpoints/*/manifest.json" >/dev/null; then resume=(--resume "$run/checkpoints"); fi
  run_part launch fluentps-train "$@" "${data_options[@]}" --out "$run" --run-id "part-$part" \
    --checkpoint-dir "$run/checkpoints" "${every[@]}" "${resume[@]}"
}

# finish CODE: ends the job, or puts it back into the queue where ranks have stopped at a checkpoint.
finish() {
  local code=$1 restarts=${SLURM_RESTART_COUNT:-0} job=$SLURM_JOB_ID
  [ -z "${SLURM_ARRAY_TASK_ID:-}" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
  if [ "$code" != "$EXIT_RESUMABLE" ]; then
    say "ended with exit code $code; log and traces: $run"
    end "$code"
  fi
  if [ "$restarts" -lt "$FLUENTPS_MAX_RESTARTS" ]; then
    say "stopped at a checkpoint; goes back into the queue, restart $((restarts + 1))"
    clean_scratch
    scontrol requeue "$job" && sleep 60  # Slurm ends this shell
    say "Slurm did not requeue"
  else
    say "stopped at a checkpoint after $restarts restarts, the limit (FLUENTPS_MAX_RESTARTS)"
  fi
  say "to go on: FLUENTPS_RUN=$run sbatch ..., with the same options"
  end "$code"
}
end() {
  clean_scratch
  exec >&- 2>&-
  wait "$log_writer"  # Slurm would end it with the shell, before the last lines are written
  exit "$1"
}
