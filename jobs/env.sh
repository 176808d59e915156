# What differs between clusters, and nothing else: every job script and submit.py read this file.
# A variable that is set already wins, so one submission can differ: FLUENTPS_LAUNCHER=mpirun sbatch jobs/train.sbatch
# shellcheck shell=bash

# --- Where jobs go. sbatch reads these from the environment: `. jobs/env.sh` before sbatch (submit.py does it itself). ----
# export SBATCH_PARTITION=compute     # sinfo -s lists them; without: the cluster's default
# export SBATCH_ACCOUNT=project123    # sacctmgr show assoc user=$USER format=account
# export SBATCH_QOS=normal            # only where the site asks for one

# --- Software: one of modules, Spack, Apptainer, or none of them where the system has all. -------------------------------
: "${FLUENTPS_MODULES:=}"             # for `module load`, e.g. "gcc/12.2 openmpi/4.1.6 hdf5/1.14 python/3.11"
: "${FLUENTPS_SPACK:=}"               # folder of the Spack environment, e.g. jobs (jobs/spack.yaml)
: "${FLUENTPS_PREFIX:=}"              # before the program, e.g. "apptainer exec jobs/fluentps.sif"
: "${FLUENTPS_BUILD:=build}"          # where make has put the programs

# --- How ranks are started. -----------------------------------------------------------------------------------------------
: "${FLUENTPS_LAUNCHER:=auto}"        # srun (needs pmix in `srun --mpi=list`), mpirun, or auto: srun where it can
: "${FLUENTPS_SRUN_OPTIONS:=--cpu-bind=verbose,cores}"  # verbose prints the binding of every rank
# Each rank gets the cores of --cpus-per-task, and mpirun prints which.
: "${FLUENTPS_MPIRUN_OPTIONS:=--bind-to core --map-by slot:PE=${SLURM_CPUS_PER_TASK:-1} --report-bindings}"

# --- File systems. ----------------------------------------------------------------------------------------------------------
: "${FLUENTPS_RESULTS:=results}"      # runs, traces, checkpoints: a file system that all nodes see
: "${FLUENTPS_DATA:=}"                # folder of the data set, copied to each node once; empty: the program's own default
: "${FLUENTPS_SCRATCH:=${TMPDIR:-/tmp}}"  # fast and local to the node; some sites: /scratch/local or $SLURM_TMPDIR
# export HDF5_USE_FILE_LOCKING=FALSE  # Lustre mounted without flock: "unable to lock file" in the log

# --- Fabric. Left alone, Open MPI chooses; the run's head says which transport came of it. ---------------------------------
# InfiniBand through UCX (ibstat names the device; ucx_info -d lists what UCX sees):
# export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx    # fail rather than fall back to TCP
# export UCX_NET_DEVICES=mlx5_0:1             # one port only; several with commas
# export UCX_TLS=rc,sm,self                   # rc: reliable connection; dc scales better above some hundred ranks
# Ethernet:
# export OMPI_MCA_btl_tcp_if_include=eth0     # the data network, not the management network

# --- Restarts. ----------------------------------------------------------------------------------------------------------------
: "${FLUENTPS_CHECKPOINT_EVERY:=1000}"  # iterations; a node failure costs at most these. 0: only when time runs out
: "${FLUENTPS_MAX_RESTARTS:=20}"        # a job that was requeued so often is not requeued again
