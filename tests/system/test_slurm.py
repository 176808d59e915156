"""The job scripts on a real Slurm: an emulated cluster of four nodes (slurm_cluster.py); skipped where it cannot be started."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import BUILD, MPI_ENVIRONMENT, ROOT, as_text, flat, mpirun, ranks_of, trace_tool
from slurm_cluster import Cluster, Unavailable

SCRIPTS = sorted((ROOT / "jobs").glob("*.sbatch"))
SUBMIT = ROOT / "jobs" / "submit.py"
QUICK = ["--model", "softmax", "--iterations", 20, "--eval-images", 200]
LONG = ["--model", "softmax", "--iterations", 2000, "--compute-model", "constant:ms=50", "--eval-images", 200]
DATA = Path("/usr/share/datasets/fashion-mnist")
# Longer than the job's one minute allows: Slurm, which looks every 30 s, signals 30 to 60 s after its start.
INTERRUPTED = ["--model", "lenet", "--sync", "bsp", "--servers", 2, "--iterations", 300, "--batch-size", 8, "--optimizer",
               "momentum", "--lr", "0.02", "--eval-images", 200]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """Arrays of four tasks at most, so that six runs need two."""
    folder = tmp_path_factory.mktemp("slurm")
    for parent in (folder, *folder.parents):
        if parent != Path("/tmp") and os.stat(parent).st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)  # munge refuses sockets that not all can reach
    try:
        cluster = Cluster(folder / "c", max_array=4)
    except Unavailable as reason:
        pytest.skip(str(reason))
    yield cluster
    cluster.stop()


def settings(results, launcher="auto", **extra):
    """What jobs/env.sh would say on this cluster: declared cores are not there, so no binding."""
    return {**MPI_ENVIRONMENT, "FLUENTPS_RESULTS": str(results), "FLUENTPS_LAUNCHER": launcher, "FLUENTPS_BUILD": str(BUILD),
            "FLUENTPS_MPIRUN_OPTIONS": "--oversubscribe --bind-to none --report-bindings", **extra}


def submit(slurm, env, options, script, *arguments):
    """Returns the job's number."""
    Path(env["FLUENTPS_RESULTS"]).mkdir(parents=True, exist_ok=True)
    result = slurm.call("sbatch", "--parsable", f"--output={env['FLUENTPS_RESULTS']}/%j.log", *options, ROOT / "jobs" / script,
                        *arguments, env=env, cwd=ROOT)
    return result.stdout.strip().split(";")[0]


def log_of(run):
    return (run / "log").read_text(errors="replace")


def finished(slurm, job, results, state="COMPLETED", timeout_s=90):
    ended = slurm.wait(job, timeout_s)
    log = (results / f"{job}.log").read_text(errors="replace")
    assert ended["JobState"] == state, f"{ended}\n{log}"
    return log


def until(condition, what, timeout_s=60):
    deadline = time.time() + timeout_s
    while not condition():
        assert time.time() < deadline, f"{what} within {timeout_s} s"
        time.sleep(0.2)


def training(run):
    """Whether the ranks compute: the head is printed before."""
    return (run / "log").exists() and "transport" in log_of(run)


@pytest.fixture(scope="module")
def interrupted(slurm, tmp_path_factory):
    """Begun with the first test, looked at in the last."""
    results = tmp_path_factory.mktemp("interrupted")
    arguments = [*INTERRUPTED, "--compute-model", "constant:ms=220", "--save-weights", results / "weights.h5"]
    job = submit(slurm, settings(results), ["--time=1", "--signal=B:USR1@1"], "train.sbatch", *arguments)
    return job, results


@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_train_on_one_node(slurm, interrupted, tmp_path, launcher):
    data = {"FLUENTPS_DATA": str(DATA), "FLUENTPS_SCRATCH": str(tmp_path / "scratch")} if DATA.is_dir() else {}
    job = submit(slurm, settings(tmp_path, launcher, **data), ["--ntasks=4"], "train.sbatch", *QUICK, "--servers", 2)
    log = finished(slurm, job, tmp_path)
    run = tmp_path / f"job-{job}"
    assert f"with {launcher}" in log and "2 servers, 2 workers" in log
    assert log_of(run) in log, "the run's log has what the job printed"
    assert (run / "exit-0").read_text() == "0\n"
    assert f"SLURM_JOB_ID={job}" in (run / "environment-0").read_text()
    assert "fluentps-train --model softmax" in (run / "command-0").read_text()
    assert "model = softmax" in (run / "part-0" / "config.cfg").read_text()
    trace_tool("verify", run / "part-0")
    if launcher == "mpirun":
        assert re.search(r"rank 3 .*bound", log), "mpirun prints the binding"
    if data:
        assert f"--data {tmp_path}/scratch/fluentps-{job} " in (run / "command-0").read_text()
        assert not list((tmp_path / "scratch").iterdir()), "scratch is cleaned"


# spread: one on each node in turn.
@pytest.mark.parametrize("launcher, placement, hosts", [("srun", "spread", ["n1", "n2"]), ("mpirun", "spread", ["n1", "n2"]),
                                                        ("mpirun", "last", ["n4", "n4"])])
def test_servers_lie_on_the_nodes_asked_for(slurm, tmp_path, launcher, placement, hosts):
    job = submit(slurm, settings(tmp_path, launcher), ["--nodes=4", "--ntasks=8", "--ntasks-per-node=2"], "train.sbatch", *QUICK,
                 "--servers", 2, "--placement", placement)
    finished(slurm, job, tmp_path)
    part = tmp_path / f"job-{job}" / "part-0"
    assert [as_text(group.attrs["host"]) for group in ranks_of(part, "server")] == hosts
    workers = [as_text(group.attrs["host"]) for group in ranks_of(part, "worker")]
    assert sorted(workers + hosts) == sorted(2 * ["n1", "n2", "n3", "n4"])


def test_servers_and_workers_on_nodes_of_two_kinds(slurm, tmp_path):
    options = ["--constraint=big", ":", "--constraint=small", "--nodes=2", "--ntasks=4"]
    job = submit(slurm, settings(tmp_path), options, "hetero.sbatch", *QUICK)
    finished(slurm, job, tmp_path)
    part = tmp_path / f"job-{job}" / "part-0"
    assert [as_text(group.attrs["host"]) for group in ranks_of(part, "server")] == ["n1", "n1"]
    assert {as_text(group.attrs["host"]) for group in ranks_of(part, "worker")} == {"n2", "n3"}


def test_bench(slurm, tmp_path):
    job = submit(slurm, settings(tmp_path), [], "bench.sbatch", "--params", "1k", "--repeat", 10, "--references", 0)
    finished(slurm, job, tmp_path)
    assert len((tmp_path / f"bench-{job}" / "bench.csv").read_text().splitlines()) >= 2


def test_srun_without_pmix_is_refused(slurm, tmp_path):
    result = slurm.call("srun", "--ntasks=2", "--mpi=none", BUILD / "bin" / "fluentps-train", *QUICK, "--out", tmp_path,
                        check=False, env=MPI_ENVIRONMENT)
    assert result.returncode == 2
    assert "srun --mpi=pmix" in result.stderr
    assert not list(tmp_path.iterdir())


def test_script_refuses_srun_where_it_has_no_pmix(tmp_path):
    fake = tmp_path / "srun"
    fake.write_text("#!/bin/sh\necho 'MPI plugin types are... none pmi2' >&2\n")
    fake.chmod(0o755)
    env = {**os.environ, **settings(tmp_path, "srun"), "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "1"}
    result = subprocess.run(["bash", "jobs/train.sbatch"], env=env, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 2
    assert "no pmix" in result.stderr and "FLUENTPS_LAUNCHER=mpirun" in result.stderr


FAKE_SRUN = """\
#!/bin/bash
case "$*" in *--mpi=list*) echo pmix; exit ;; esac
trap '[ "$CHECKPOINT" = none ] || { mkdir -p "$CHECKPOINT"; touch "$CHECKPOINT/manifest.json"; }; exit 137' USR1
touch "$FLUENTPS_RESULTS/begun"
while true; do sleep 0.1; done
"""


@pytest.mark.parametrize("written, code", [(True, 75), (False, 137)])
def test_ranks_that_srun_kills_after_the_checkpoint_are_resumed(tmp_path, written, code):
    fake = tmp_path / "srun"
    fake.write_text(FAKE_SRUN)
    fake.chmod(0o755)
    run = tmp_path / "job-7"
    checkpoint = run / "checkpoints" / "iteration-0000000005" if written else "none"
    (run / "checkpoints" / "iteration-0000000001").mkdir(parents=True)
    (run / "checkpoints" / "iteration-0000000001" / "manifest.json").touch()
    env = {**os.environ, **settings(tmp_path, "srun"), "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7",
           "FLUENTPS_MAX_RESTARTS": "0", "CHECKPOINT": str(checkpoint)}
    process = subprocess.Popen(["bash", "jobs/train.sbatch"], env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    until((tmp_path / "begun").exists, "the step begins")
    process.send_signal(signal.SIGUSR1)
    output = process.communicate(timeout=30)[0]
    assert process.returncode == code, output
    assert f"--resume {run}/checkpoints" in (run / "command-0").read_text()


def pids_on(slurm, node, name):
    """Processes of a program in a node's namespace."""
    process = dict(slurm.daemons)[f"slurmd-{node}"]
    space = os.readlink(f"/proc/{process.pid}/ns/uts")
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(each / "ns/uts") == space and os.path.basename(os.readlink(each / "exe")) == name:
                found.append(int(each.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("launcher, victim, cause", [("srun", "fluentps-train", "n4: task"), ("mpirun", "fluentps-train", "on node n4"),
                                                     ("mpirun", "orted", "n4")])
def test_what_dies_on_a_node_ends_the_job(slurm, tmp_path, launcher, victim, cause):
    options = ["--nodelist=n3,n4", "--nodes=2", "--ntasks=4", "--ntasks-per-node=2", "--no-requeue"]
    job = submit(slurm, settings(tmp_path, launcher), options, "train.sbatch", *LONG)
    run = tmp_path / f"job-{job}"
    until(lambda: training(run), "ranks compute")
    begin = time.time()
    for pid in pids_on(slurm, "n4", victim):
        os.kill(pid, signal.SIGKILL)
    log = finished(slurm, job, tmp_path, "FAILED")
    assert time.time() - begin < 60
    assert cause in log and "ended with exit code" in log
    assert (run / "exit-0").read_text().strip() not in ("0", "75")


def test_a_job_is_requeued_so_often_and_not_more(slurm, tmp_path):
    env = settings(tmp_path, FLUENTPS_MAX_RESTARTS="0")
    arguments = ["--model", "softmax", "--eval-images", 200, "--sync", "bsp", "--compute-model", "constant:ms=20"]
    job = submit(slurm, env, ["--ntasks=3"], "train.sbatch", *arguments, "--iterations", 3000)
    run = tmp_path / f"job-{job}"
    until(lambda: training(run), "ranks compute")
    time.sleep(1)
    slurm.call("scancel", "--batch", "--signal=USR1", job)
    log = finished(slurm, job, tmp_path, "FAILED")
    assert slurm.job(job)["ExitCode"] == "75:0"
    assert f"the limit (FLUENTPS_MAX_RESTARTS)" in log and f"FLUENTPS_RUN={run}" in log
    reached = json.loads(next(run.glob("checkpoints/*/manifest.json")).read_text())["iteration"]
    again = submit(slurm, {**env, "FLUENTPS_RUN": str(run)}, ["--ntasks=3"], "train.sbatch", *arguments, "--iterations",
                   int(reached) + 5)
    finished(slurm, again, tmp_path)
    assert [len(group["iterations"]) for group in ranks_of(run / "part-1", "worker")] == [5, 5]


SWEEP = """\
[options]
workers = 2
model = "softmax"
iterations = 10
eval-images = 200
[grid]
seed = [1, 2, 3, 4, 5]
[[runs]]
seed = 6
data = "{data}"
[sbatch]
time = "00:05:00"
mem-per-cpu = "1G"
"""


def sweep(slurm, env, *arguments):
    result = subprocess.run([sys.executable, SUBMIT, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT,
                            env={**os.environ, **(slurm.environment if slurm else {}), **env})
    return result.returncode, result.stdout + result.stderr


def runs_of(text):
    return re.findall(r"^job (\d+): (\d+) runs", text, re.MULTILINE)


@pytest.mark.skipif(not DATA.is_dir(), reason="dataset-fashion-mnist is not installed")
def test_sweep_submits_again_what_failed_and_nothing_else(slurm, tmp_path):
    file, data, env = tmp_path / "six.toml", tmp_path / "data", settings(tmp_path)
    file.write_text(SWEEP.format(data=data))
    code, text = sweep(slurm, env, file)
    assert code == 0, text
    arrays = runs_of(text)
    assert [int(count) for _, count in arrays] == [4, 2], "MaxArraySize is 4"
    code, text = sweep(slurm, env, file)
    assert "to do: 0" in text, "what is queued is not submitted twice"
    until(lambda: not slurm.call("squeue", "-h", "-j", ",".join(job for job, _ in arrays)).stdout.strip(), "arrays end", 120)
    folders = sorted(each for each in (tmp_path / "six").iterdir() if each.is_dir())
    assert len(folders) == 6
    failed = [each for each in folders if (each / "exit-0").read_text() != "0\n"]
    assert len(failed) == 1 and failed[0].name.startswith("seed-6")
    data.symlink_to(DATA)
    code, text = sweep(slurm, env, file, "--missing")
    assert "5 done, 1 failed" in text and [int(count) for _, count in runs_of(text)] == [1], text
    until(lambda: (failed[0] / "exit-1").exists(), "the failed run ends")
    assert [each for each in folders if (each / "command-1").exists()] == failed
    code, text = sweep(slurm, env, file)
    assert code == 0 and "6 done" in text and "to do: 0" in text
    trace_tool("verify", failed[0] / "part-1")


def test_sweep_here(tmp_path):
    file, env = tmp_path / "here.toml", settings(tmp_path)
    file.write_text(SWEEP.format(data=tmp_path / "none").replace("[1, 2, 3, 4, 5]", "[1]") + "[quick]\niterations = 4\n")
    code, text = sweep(None, env, file, "--local", "--scale", "quick")
    assert code == 3 and "1/2 done" in text and "2/2 FAILED (exit code 2)" in text, text
    good = next((tmp_path / "here-quick").glob("seed-1_*"))
    assert [len(group["iterations"]) for group in ranks_of(good / "part-0", "worker")] == [4, 4]
    code, text = sweep(None, env, file, "--local", "--missing", "--dry-run", "--scale", "quick")
    assert code == 0 and "1 done, 1 failed" in text and text.count("mpirun -np 3") == 1
    # A closed trace is not enough where the run was stopped, and exit code 0 not where a rank left its trace open.
    (good / "exit-0").write_text("75\n")
    assert "0 done, 1 failed, 1 begun" in sweep(None, env, file, "--local", "--dry-run", "--scale", "quick")[1]
    (good / "exit-0").write_text("0\n")
    shutil.rmtree(good / "part-0")
    assert "0 done, 2 failed" in sweep(None, env, file, "--local", "--dry-run", "--scale", "quick")[1]


def test_sweep_with_a_command_of_its_own(tmp_path):
    file = tmp_path / "sim.toml"
    file.write_text('[sweep]\ncommand = "simulate {workers} {servers} {lr} --"\n[grid]\nservers = [2]\nworkers = [6]\nlr = [0.5]\n'
                    'sync = ["bsp"]\n')
    code, text = sweep(None, settings(tmp_path), file, "--local", "--dry-run")
    assert code == 0 and "simulate 6 2 0.5 -- --sync=bsp --out=" in text and "--lr" not in text, text


def test_grid_of_options_that_go_together_and_another_grid_for_quick(tmp_path):
    file = tmp_path / "pairs.toml"
    file.write_text('[sweep]\ncommand = "true {workers}"\n[grid]\nsize = [{workers = 2, lr = 0.5}, {workers = 4, lr = 0.25}]\n'
                    "seed = [1, 2, 3]\n[quick.grid]\nseed = [7]\n")
    code, text = sweep(None, settings(tmp_path), file, "--local", "--dry-run")
    found = re.findall(r"true (\d) --lr=(\S+) --seed=(\d)", text)
    assert code == 0 and found == [(w, lr, s) for w, lr in (("2", "0.5"), ("4", "0.25")) for s in "123"], text
    code, text = sweep(None, settings(tmp_path), file, "--local", "--dry-run", "--scale", "quick")
    assert re.findall(r"--seed=(\d)", text) == ["7", "7"] and not (tmp_path / "pairs").exists()


def test_two_sweeps_two_runs_at_once_and_what_they_cost(tmp_path):
    files = []
    for name in ("one", "two"):
        files.append(tmp_path / f"{name}.toml")
        files[-1].write_text('[sweep]\ncommand = "sh -c \'sleep 3\' --"\n[grid]\nworkers = [2]\nseed = [1, 2]\n')
    begin = time.time()
    code, text = sweep(None, settings(tmp_path), *files, "--local", "--jobs", 4)
    assert code == 3 and "4 runs, 4 failed" in text, "bash leaves no trace"
    assert time.time() - begin < 12, "twelve seconds one after another"
    assert len((tmp_path / "one" / "runs.txt").read_text().split()) == 2
    cost = dict(line.split() for line in next((tmp_path / "two").glob("*/cost-0")).read_text().splitlines())
    assert 3 <= float(cost["wall_s"]) < 12 and 0 <= float(cost["processor_s"]) < 1 and 0 < float(cost["memory_mib"]) < 1000


@pytest.mark.parametrize("text, sentence", [
    ("[grid", "is no TOML"),
    ("[grids]\nseed = [1]", "unknown table [grids]"),
    ("[options]\nworkers = 2", "has no runs"),
    ("[grid]\nseed = 1\nworkers = [2]", "seed in [grid] is 1; a list"),
    ("[grid]\nseed = [1]", "give ranks or workers"),
    ("[grid]\nworkers = [2]\n[full.grid]\nseed = [1]", "seed in [full.grid] is not in [grid]"),
    ("[grid]\nworkers = [{workers = [2]}]", "several belong into [grid]"),
    ("[grid]\nworkers = [0]", "workers is 0"),
    ("[grid]\nranks = [2]\n[options]\nservers = 2", "leave no worker"),
    ("[grid]\nworkers = [2]\nout = ['x']", "out is set by submit.py"),
    ("[options]\nworkers = [2]\n[grid]\nseed = [1]", "several belong into [grid]"),
    ("[grid]\nworkers = [2]\nseed = [1, 1]", "two runs are the same"),
    ("[sweep]\nconfig = ['none.cfg']\n[grid]\nworkers = [2]", "config none.cfg cannot be read"),
    ("[sweep]\nparalel = 2\n[grid]\nworkers = [2]", "unknown paralel in [sweep]"),
    ("[grid]\nworkers = [2]\n[sbatch]\nntasks = 3", "ntasks in [sbatch] is set"),
    ("[sweep]\ncommand = 'x {nodes}'\n[grid]\nworkers = [2]", "nodes"),
])
def test_bad_sweep_files(tmp_path, text, sentence):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    code, output = sweep(None, settings(tmp_path), file, "--local", "--dry-run")
    assert code == 2 and sentence in output and "Traceback" not in output, output


def test_ids_are_stable_and_follow_what_a_run_is_given(tmp_path):
    config, file, env = tmp_path / "base.cfg", tmp_path / "ids.toml", settings(tmp_path)
    config.write_text("servers = 2\nlr = 0.1\n")
    file.write_text(f'[sweep]\nconfig = ["{config}"]\n[options]\nmodel = "mlp"\n[grid]\nworkers = [2, 4]\nseed = [1, 2]\n')
    folders = lambda: re.findall(r"--out=(\S+)", sweep(None, env, file, "--local", "--dry-run")[1])
    first = folders()
    assert len(set(first)) == 4 and folders() == first
    file.write_text(file.read_text().replace("[1, 2]", "[0, 1, 2]"))
    assert set(first) < set(folders()), "another value beside them changes no run"
    config.write_text("servers = 2\nlr = 0.2\n")
    assert not set(first) & set(folders())


def test_the_gpu_script_asks_for_gpus_and_the_build_says_what_it_lacks(slurm, tmp_path):
    job = submit(slurm, settings(tmp_path), [], "gpu.sbatch", *QUICK)
    assert slurm.wait(job)["ExitCode"].startswith("2:")
    assert "gpu:4" in slurm.call("scontrol", "show", "job", job).stdout
    assert "build with make CUDA=1" in log_of(tmp_path / f"job-{job}")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_sound(slurm, script):
    subprocess.run(["bash", "-n", script], check=True)
    if shutil.which("shellcheck"):
        found = subprocess.run(["shellcheck", "-x", script], cwd=ROOT, capture_output=True, text=True)
        assert found.returncode == 0, found.stdout
    array = ["--array=0-1"] if script.name == "sweep.sbatch" else []
    result = slurm.call("sbatch", "--test-only", *array, script, cwd=ROOT)
    assert "to start at" in result.stderr, result.stderr


def test_a_run_longer_than_its_time_goes_on_where_it_stopped(slurm, interrupted, tmp_path):
    job, results = interrupted
    log = finished(slurm, job, results, timeout_s=180)
    run = results / f"job-{job}"
    parts = sorted(each.name for each in run.glob("part-*"))
    assert len(parts) >= 2 and int(slurm.job(job)["Restarts"]) == len(parts) - 1
    assert "ranks are asked to write a checkpoint" in log and "goes back into the queue, restart 1" in log
    assert "part 0 of" in log_of(run) and "part 1 of" in log_of(run), "the log has both parts"
    assert (run / "exit-0").read_text() == "75\n" and (run / f"exit-{len(parts) - 1}").read_text() == "0\n"
    done = 0
    for part in parts:
        trace_tool("verify", run / part)
        iterations = ranks_of(run / part, "worker")[0]["iterations"]["iteration"]
        assert iterations[0] == done
        done = iterations[-1] + 1
    assert done == 300
    mpirun(6, *INTERRUPTED, "--out", tmp_path / "whole", "--save-weights", tmp_path / "whole.h5")
    assert (flat(results / "weights.h5") == flat(tmp_path / "whole.h5")).all()
