"""One rank's failure is everyone's, in bounded time and by name; what was written stays readable."""
import os
import signal
import subprocess
import time

import h5py
import numpy
import pytest

from conftest import BUILD, finish, kill_whole_job, mpirun, only_run, pid_of, ranks_of, run, start, trace_tool

TRAIN = BUILD / "bin" / "fluentps-train"


def begin(tmp_path, *arguments, ranks=4, model="synthetic:params=20000,compute_ms=20", sync="bsp"):
    """A run of one server (rank 0) and three workers that goes on for long enough to be disturbed."""
    return start(["mpirun", "-np", ranks, TRAIN, "--placement", "first", "--model", model, "--sync", sync, "--iterations", 3000,
                  "--trace-flush-s", "0.2", "--out", tmp_path / "out", *arguments])


def rows(path, table):
    """Rows of a rank's file while it is being written, or 0."""
    try:
        with h5py.File(path, "r", libver="latest", swmr=True) as file:
            return len(file[table])
    except (OSError, KeyError):
        return 0


def wait_for_rows(tmp_path, count=20, deadline_s=30):
    """Until worker 0 has so many iterations on disk; returns the run's folder."""
    until = time.time() + deadline_s
    while time.time() < until:
        runs = list((tmp_path / "out").glob("*"))
        if runs and rows(runs[0] / "rank-0001.h5", "iterations") >= count:
            return runs[0]
        time.sleep(0.1)
    pytest.fail("the run has written nothing")


def check_readable(run_dir):
    """After a crash: recover merges, info reads, every row has sane values."""
    trace_tool("recover", run_dir)
    trace_tool("info", run_dir)
    for worker in ranks_of(run_dir, "worker"):
        assert list(worker["iterations"]["iteration"]) == list(range(len(worker["iterations"])))
        assert (worker["iterations"]["bytes"] == 2 * 4 * 20000).all()


@pytest.mark.parametrize("rank, model", [
    (2, "synthetic:params=20000,compute_ms=20"),   # a worker, mostly computing
    (2, "synthetic:params=20000,compute_ms=0.01"),  # a worker, mostly pushing and waiting
    (0, "synthetic:params=20000,compute_ms=20"),   # the server
])
def test_kill_9_of_a_rank(tmp_path, clean_after, rank, model):
    process = begin(tmp_path, model=model)
    run_dir = wait_for_rows(tmp_path)
    killed = time.time()
    os.kill(pid_of(rank), signal.SIGKILL)
    result = finish(process, 30)
    assert result.code not in (0, 2) and time.time() - killed < 15
    assert f"rank {rank}" in result.text and "signal 9" in result.text, result.text
    check_readable(run_dir)


def test_a_worker_killed_while_it_waits(tmp_path, clean_after):
    process = begin(tmp_path, "--straggler", "worker=0,mean_ms=500")
    run_dir = wait_for_rows(tmp_path, count=1)
    os.kill(pid_of(3), signal.SIGKILL)
    assert finish(process, 30).code not in (0, 2)
    check_readable(run_dir)


def test_a_stopped_worker_is_reported_as_a_stall_and_may_go_on(tmp_path, clean_after):
    process = start(["mpirun", "-np", 4, TRAIN, "--placement", "first", "--model", "synthetic:params=20000,compute_ms=20",
                     "--sync", "bsp", "--iterations", 60, "--trace-flush-s", "0.2", "--out", tmp_path / "out", "--stall-s", "1"])
    wait_for_rows(tmp_path, count=5)
    pid = pid_of(2)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(3.5)
    os.kill(pid, signal.SIGCONT)
    result = finish(process, 60)
    assert result.code == 0, result.text
    assert "stall: server 0 has had no message" in result.err
    assert "waited for: worker 1, which has pushed" in result.err
    trace_tool("verify", only_run(tmp_path / "out"))


@pytest.mark.parametrize("rank, expected", [(2, "waited for: worker 1"), (0, "for the answer to its pull")])
def test_a_rank_stuck_outside_mpi_ends_the_run(tmp_path, clean_after, rank, expected):
    process = begin(tmp_path, "--stall-s", "1", "--abort-s", "3")
    run_dir = wait_for_rows(tmp_path)
    os.kill(pid_of(rank), signal.SIGSTOP)
    stopped = time.time()
    result = finish(process, 40)
    assert result.code == 3, result.text
    assert time.time() - stopped < 20
    assert "--abort-s" in result.err and expected in result.err, result.err
    check_readable(run_dir)


def test_an_exception_in_user_code_ends_everybody(tmp_path, clean_after):
    """Every rank writes its trace on the way out, a minute before its next flush: five iterations of three workers."""
    result = run(["mpirun", "-np", 4, BUILD / "tests" / "programs" / "throwing", tmp_path], timeout=30)
    assert result.code == 3 and result.seconds < 15
    assert "the user's gradient failed" in result.err and "rank" in result.err
    run_dir = only_run(tmp_path)
    trace_tool("recover", run_dir)
    assert len(ranks_of(run_dir, "server")[0]["pushes"]) >= 5 * 3
    assert all(len(worker["pulls"]) == 5 for worker in ranks_of(run_dir, "worker"))


def test_data_unreadable_on_one_rank_stops_all_and_is_said_once(tmp_path, clean_after):
    # The same relative path in two working directories, of which one lacks the data.
    good, bad = tmp_path / "good", tmp_path / "bad"
    for each in (good, bad):
        each.mkdir()
    files = subprocess.run(["dpkg", "-L", "dataset-fashion-mnist"], capture_output=True, text=True).stdout.split()
    data = next((os.path.dirname(path) for path in files if path.endswith("train-images-idx3-ubyte.gz")), None)
    if data is None:
        pytest.skip("the package dataset-fashion-mnist is not installed")
    (good / "data").symlink_to(data)
    (bad / "data").mkdir()
    common = [TRAIN, "--model", "softmax", "--data", "data", "--iterations", 5, "--out", tmp_path / "out"]
    result = run(["mpirun", "-np", 2, "--wdir", good, *common, ":", "-np", 1, "--wdir", bad, *common,
                  ":", "-np", 1, "--wdir", good, *common], timeout=30)
    assert result.code == 2, result.text
    assert len(result.sentences()) == 1 and "rank 2" in result.sentences()[0], result.err
    assert not (tmp_path / "out").exists()


def test_a_gradient_that_is_not_finite(tmp_path, clean_after):
    common = ["--model", "lenet", "--iterations", 20, "--lr", "1e6", "--eval-images", 10, "--out"]
    result = mpirun(3, *common, tmp_path / "abort", expect=3)
    assert "not finite" in result.err and "worker" in result.err and "iteration" in result.err
    result = mpirun(3, *common, tmp_path / "skip", "--nonfinite", "skip")
    assert "gradients were not finite and were skipped" in result.out
    trace_tool("verify", only_run(tmp_path / "skip"))


def test_small_shared_memory_is_found_before_it_kills(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small /dev/shm")
    program = f"mount -t tmpfs -o size=16m tmpfs /dev/shm && exec mpirun -np 3 {TRAIN} --model synthetic:params=10M --iterations 5 --out ''"
    result = run(["unshare", "-m", "sh", "-c", program], timeout=60)
    if "unshare" in result.err:
        pytest.skip("mount namespaces are not permitted here")
    assert result.code == 2, result.text
    assert "/dev/shm" in result.err and "MiB free" in result.err and "SIGBUS" not in result.text


def test_a_live_run_can_be_watched(tmp_path, clean_after):
    process = begin(tmp_path)
    run_dir = wait_for_rows(tmp_path)
    assert "worker" in trace_tool("info", run_dir).out
    os.killpg(process.pid, signal.SIGTERM)
    finish(process, 30)
    check_readable(run_dir)


KILLS = 30


def test_kills_of_a_whole_job_lose_at_most_what_was_not_flushed(tmp_path, clean_after):
    """SIGKILL to all ranks at once at random moments. What a reader saw on disk is there afterwards, and every row equals
    that of an undisturbed run: with bsp, losses are the same bit for bit."""
    arguments = ["--straggler", "worker=0,mean_ms=4", "--iterations"]
    mpirun(4, "--placement", "first", "--model", "quadratic:params=5000", "--sync", "bsp", "--out", tmp_path / "reference",
           *arguments, 1000)
    reference = [worker["iterations"]["loss"] for worker in ranks_of(only_run(tmp_path / "reference"), "worker")]
    generator = numpy.random.default_rng(1)
    checked = 0
    for k in range(KILLS):
        out = tmp_path / f"kill-{k}"
        process = start(["mpirun", "-np", 4, TRAIN, "--placement", "first", "--model", "quadratic:params=5000", "--sync", "bsp",
                         "--trace-flush-s", "0.05", "--out", out / "out", *arguments, 1000])
        run_dir = wait_for_rows(out, count=1 + int(generator.integers(0, 150)))
        time.sleep(generator.uniform(0, 0.2))
        seen = [rows(run_dir / f"rank-000{rank}.h5", "iterations") for rank in (1, 2, 3)]
        kill_whole_job(process)
        trace_tool("recover", run_dir)
        for worker, expected, on_disk in zip(ranks_of(run_dir, "worker"), reference, seen):
            found = worker["iterations"][:]
            assert len(found) >= on_disk
            assert list(found["iteration"]) == list(range(len(found)))
            assert (found["loss"] == expected[:len(found)]).all()
            assert (numpy.diff(found["begin_ns"].astype(numpy.int64)) > 0).all()
            checked += len(found)
    assert checked > KILLS * 3
