"""Local groups: workers that push and pull as one change where the bytes go, not what is computed."""
import os
import re
import shutil
import signal
import time

import numpy
import pytest

from conftest import BUILD, ROOT, as_text, finish, flat, mpirun, only_run, our_processes, ranks_of, run, start, trace_tool

TRAIN = BUILD / "bin" / "fluentps-train"
COMMON = ["--model", "softmax", "--dataset", "synthetic", "--sync", "bsp", "--optimizer", "momentum", "--lr", 0.02]


def train(tmp_path, name, ranks, *arguments, **options):
    """Returns the final weights and the run's folder."""
    file = tmp_path / f"{name}.h5"
    mpirun(ranks, *COMMON, "--out", tmp_path / name, "--save-weights", file, *arguments, **options)
    return flat(file), only_run(tmp_path / name)


def assert_equal(weights, expected):
    assert numpy.abs(weights - expected).max() <= 1e-6 * numpy.abs(expected).max()


def train_quadratic(tmp_path, *arguments):
    result = mpirun(5, "--model", "quadratic:params=5000", "--local-group", "size=2", "--out", tmp_path / "run", *arguments)
    path = only_run(tmp_path / "run")
    assert "verified: no violation" in trace_tool("verify", path).out
    return result, path


@pytest.mark.parametrize("workers, group, groups", [(4, "size=2", [0, 0, 1, 1]), (5, "size=3", [0, 0, 0, 1, 1])])
def test_bsp_weights_are_those_of_a_run_without_groups(tmp_path, clean_after, workers, group, groups):
    alone, _ = train(tmp_path, "alone", workers + 1, "--iterations", 50)
    for transport in ("rma", "p2p") if workers == 5 else ("rma",):
        weights, path = train(tmp_path, transport, workers + 1, "--iterations", 50, "--local-group", group,
                              "--transport", transport)
        assert_equal(weights, alone)
        server, = ranks_of(path, "server")
        assert [int(each) for each in as_text(server.attrs["group_of_worker"]).split()] == groups
        assert sorted(set(server["pushes"]["worker"])) == [0, 1] and len(server["pushes"]) == 2 * 50
        for index, worker in enumerate(ranks_of(path, "worker")):
            leads = groups.index(groups[index]) == index
            assert list(worker["iterations"]["iteration"]) == list(range(50))
            assert (worker["iterations"]["bytes"] == (2 * 4 * 7850 if leads else 0)).all()
            assert len(worker["pulls"]) == (50 if leads else 0)
        assert "verified: no violation" in trace_tool("verify", path).out
        assert f"local groups  {group}, worker by worker: {' '.join(map(str, groups))}" in trace_tool("info", path).out


def test_ssp_counts_groups_and_waits_for_the_one_with_the_straggler(tmp_path, clean_after):
    # Worker 3 leads nobody; its group is the slow one, the other may be s ahead.
    _, path = train_quadratic(tmp_path, "--sync", "ssp:s=2", "--iterations", 40, "--straggler", "worker=3,mean_ms=5")
    pulls = ranks_of(path, "server")[0]["pulls"][:]
    gap = pulls["iteration"].astype(int) - pulls["v_answer"].astype(int)
    assert gap[pulls["worker"] == 0].max() == 1 and gap[pulls["worker"] == 1].max() <= 0
    workers = ranks_of(path, "worker")
    waits = [int(worker["iterations"]["wait_ns"].sum()) for worker in workers]
    assert waits[2] > 3 * waits[3], "a member that waits for another of its group shows it as waiting"


def test_iterations_may_differ_between_groups_and_not_inside(tmp_path, clean_after):
    _, path = train_quadratic(tmp_path, "--sync", "ssp:s=2", "--iterations", "10,10,13")
    assert len(ranks_of(path, "server")[0]["pushes"]) == 10 + 13
    result = mpirun(5, "--model", "quadratic", "--local-group", "size=2", "--iterations", "10,13", "--out", tmp_path / "none",
                    expect=2, timeout=30)
    assert len(result.sentences()) == 1
    assert "worker 1 makes 13 iterations and worker 0 of the same local group 10" in result.sentences()[0]
    assert not (tmp_path / "none").exists()


def test_a_checkpoint_resumes_with_the_same_groups_and_with_others(tmp_path, clean_after):
    whole, _ = train(tmp_path, "whole", 5, "--iterations", 20, "--local-group", "size=2")
    train(tmp_path, "half", 5, "--iterations", 10, "--local-group", "size=2", "--checkpoint-every", 10)
    saved = only_run(tmp_path / "half")
    same, path = train(tmp_path, "same", 5, "--iterations", 20, "--local-group", "size=2", "--resume", saved)
    assert (same == whole).all()
    trace_tool("verify", path)
    others, path = train(tmp_path, "others", 5, "--iterations", 20, "--local-group", "size=3", "--resume", saved)
    assert_equal(others, whole)
    trace_tool("verify", path)


def begin(tmp_path, *arguments):
    """One server on rank 0, workers on ranks 1 to 4; returns the process when ranks are at work."""
    process = start(["mpirun", "-np", 5, TRAIN, "--placement", "first", "--local-group", "size=2", "--model",
                     "synthetic:params=20000,compute_ms=20", "--sync", "bsp", "--iterations", 3000, "--trace-flush-s", 0.2, "--out",
                     tmp_path / "out", *arguments])
    until = time.time() + 30
    while not list(tmp_path.glob("out/*/rank-0004.h5")):
        assert time.time() < until and process.poll() is None
        time.sleep(0.1)
    time.sleep(1)
    return process


def pid_of(rank):
    marker = f"OMPI_COMM_WORLD_RANK={rank}\0".encode()
    return int(next(pid for pid in our_processes() if marker in open(f"/proc/{pid}/environ", "rb").read()))


def test_kill_9_of_a_member_ends_the_job(tmp_path, clean_after):
    process = begin(tmp_path)
    killed = time.time()
    os.kill(pid_of(4), signal.SIGKILL)
    result = finish(process, 30)
    assert result.code not in (0, 2) and time.time() - killed < 15
    assert "rank 4" in result.text and "signal 9" in result.text, result.text
    trace_tool("recover", only_run(tmp_path / "out"))


def test_a_member_that_is_stuck_is_named(tmp_path, clean_after):
    process = begin(tmp_path, "--stall-s", 1, "--abort-s", 3)
    os.kill(pid_of(4), signal.SIGSTOP)
    stopped = time.time()
    result = finish(process, 40)
    assert result.code == 3 and time.time() - stopped < 20, result.text
    assert re.search(r"stall: worker 2 has waited 1.* \(iteration \d+, not heard of: worker 3\)", result.err), result.err
    assert re.search(r"worker 2 has waited 3.* not heard of: worker 3\)", result.err), result.err


def test_usr1_to_a_member_writes_a_checkpoint_and_ends(tmp_path, clean_after):
    process = begin(tmp_path)
    os.kill(pid_of(4), signal.SIGUSR1)
    result = finish(process, 30)
    assert result.code == 75, result.text
    path = only_run(tmp_path / "out")
    assert list(path.glob("checkpoints/iteration-*/manifest.json"))
    trace_tool("verify", path)


def test_a_rule_that_is_none_is_refused(tmp_path):
    result = mpirun(3, "--local-group", "rack", "--out", tmp_path / "out", expect=2, timeout=30)
    assert len(result.sentences()) == 1 and "use none, node or size=K" in result.sentences()[0]
    assert not (tmp_path / "out").exists()


def test_the_workers_of_a_simulated_node_are_a_group(tmp_path):
    # Three ranks on each of two hosts, the server on the first: workers 0 and 1 there, 2 to 4 on the other.
    if shutil.which("smpirun") is None or not (BUILD / "sim" / "bin" / "fluentps-train").exists():
        pytest.skip("needs SimGrid and make sim")
    common = [*COMMON, "--iterations", 20, "--save-weights"]
    result = run([ROOT / "bin" / "fluentps-sim", "--build", BUILD, "--platform", ROOT / "configs" / "platforms" / "ethernet-10g.xml",
                  "--workers", 5, "--servers", 1, "--ranks-per-host", 3, "--", *common, tmp_path / "node.h5", "--out", tmp_path / "run",
                  "--local-group", "node"])
    assert result.code == 0, result.text
    path = only_run(tmp_path / "run")
    assert as_text(ranks_of(path, "server")[0].attrs["group_of_worker"]) == "0 0 1 1 1"
    trace_tool("verify", path)
    mpirun(6, *common, tmp_path / "alone.h5", "--out", "")
    assert_equal(flat(tmp_path / "node.h5"), flat(tmp_path / "alone.h5"))
