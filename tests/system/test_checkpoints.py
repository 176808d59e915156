"""Checkpoints: a run that was killed or stopped goes on to the same weights; what is damaged is refused by name."""
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from conftest import BUILD, finish, flat, kill_whole_job, mpirun, only_run, pid_of, ranks_of, start, trace_tool

TRAIN = BUILD / "bin" / "fluentps-train"
ITERATIONS = 60
COMMON = ["--placement", "first", "--model", "softmax", "--sync", "bsp", "--iterations", ITERATIONS, "--optimizer", "momentum",
          "--lr", 0.02, "--eval-images", 200]
SLOW = ["--straggler", "every=1,mean_ms=40"]


def merged(*arguments):
    """Options of which the last one counts: the program takes each once only."""
    return [each for pair in dict(zip(arguments[::2], arguments[1::2])).items() for each in pair]


def weights_of(tmp_path, name, ranks, servers, *arguments, **options):
    file = tmp_path / f"{name}.h5"
    result = mpirun(ranks, *merged("--servers", servers, *COMMON, "--out", tmp_path / name, "--save-weights", file, *arguments), **options)
    return flat(file), result


def checkpoints(folder):
    return sorted(each.parent for each in Path(folder).glob("iteration-*/manifest.json"))


def begin(tmp_path, *arguments, ranks=5, wait_for=1):
    """Starts a slow run with checkpoints every 10 iterations; returns it when some are written."""
    process = start(["mpirun", "-np", ranks, TRAIN, *merged("--servers", 2, *COMMON, *SLOW, "--out", tmp_path / "stopped",
                     "--checkpoint-dir", tmp_path / "saved", "--trace-flush-s", 0.2, *arguments)])
    until = time.time() + 40
    while len(checkpoints(tmp_path / "saved")) < wait_for:
        if time.time() > until or process.poll() is not None:
            pytest.fail(f"no checkpoint came\n{process.communicate()}")
        time.sleep(0.05)
    return process


def test_killed_run_goes_on_to_the_same_weights(tmp_path, clean_after):
    whole, _ = weights_of(tmp_path, "whole", 5, 2)
    process = begin(tmp_path, "--checkpoint-every", 10, wait_for=2)
    assert kill_whole_job(process).code != 0
    newest = checkpoints(tmp_path / "saved")[-1]
    resume = ["--resume", tmp_path / "saved"]
    same, result = weights_of(tmp_path, "same", 5, 2, *resume)
    assert f"resumed at iteration {int(newest.name[-10:])}" in result.out
    assert (same == whole).all()
    for ranks, servers in ((4, 1), (7, 4)):
        other, _ = weights_of(tmp_path, f"servers{servers}", ranks, servers, *resume)
        assert (other == whole).all()
    trace_tool("verify", only_run(tmp_path / "same"))


@pytest.mark.parametrize("extra", [["--optimizer-at", "server", "--optimizer", "adam", "--lr", 0.001],
                                   ["--optimizer", "lars", "--lr", 1, "--lr-schedule", "poly:power=2", "--slicing", "tensor"],
                                   ["--coordination", "central"], ["--chunk-kib", 1, "--ring", 1], ["--transport", "p2p"]])
def test_resuming_changes_nothing(tmp_path, clean_after, extra):
    whole, _ = weights_of(tmp_path, "whole", 4, 1, "--checkpoint-every", 20, *extra)
    saved = only_run(tmp_path / "whole")
    assert [int(each.name[-10:]) for each in checkpoints(saved / "checkpoints")] == [40, 60]
    resumed, _ = weights_of(tmp_path, "resumed", 4, 1, "--resume", saved / "checkpoints" / "iteration-0000000040", *extra)
    assert (resumed == whole).all()


def test_batch_norm_state_is_kept(tmp_path, clean_after):
    arguments = ["--model", "resnet20", "--dataset", "synthetic:images=200,test=50,channels=3,size=32", "--batch-size", 8,
                 "--iterations", 8, "--eval-images", 0]
    whole, first = weights_of(tmp_path, "whole", 3, 1, *arguments, "--checkpoint-every", 4)
    saved = checkpoints(only_run(tmp_path / "whole") / "checkpoints")[0]
    resumed, second = weights_of(tmp_path, "resumed", 3, 1, *arguments, "--resume", saved)
    assert (resumed == whole).all()
    assert [l for l in first.out.splitlines() if "test accuracy" in l] == [l for l in second.out.splitlines() if "test accuracy" in l]


@pytest.mark.parametrize("sync", ["ssp:s=2", "asp", "pssp:s=1,c=0.5", "drop:n=2", "softsync:n=2", "dssp:low=1,high=3",
                                  "ssp:s=3; server1=bsp; @30 asp"])
def test_every_model_resumes_and_is_verified(tmp_path, clean_after, sync):
    straggler = ["--straggler", "worker=1,mean_ms=3"]
    _, _ = weights_of(tmp_path, "first", 5, 2, "--sync", sync, "--checkpoint-every", 20, *straggler)
    saved = checkpoints(only_run(tmp_path / "first") / "checkpoints")[0]
    _, _ = weights_of(tmp_path, "second", 5, 2, "--sync", sync, "--resume", saved, *straggler)
    run = only_run(tmp_path / "second")
    trace_tool("verify", run)
    for worker in ranks_of(run, "worker"):
        assert list(worker["iterations"]["iteration"]) == list(range(40, ITERATIONS))


def test_other_number_of_workers(tmp_path, clean_after):
    first, _ = weights_of(tmp_path, "first", 5, 2, "--checkpoint-every", 20, "--global-batch", 96)
    saved = only_run(tmp_path / "first")
    result = mpirun(4, *merged("--servers", 2, *COMMON, "--global-batch", 96, "--resume",
                               saved / "checkpoints" / "iteration-0000000040"), expect=2)
    assert "momentum/velocity" in result.err and "3 workers" in result.err and len(result.sentences()) == 1
    server = ["--optimizer-at", "server", "--global-batch", 96]
    whole, _ = weights_of(tmp_path, "whole", 5, 2, "--checkpoint-every", 20, *server)
    saved = checkpoints(only_run(tmp_path / "whole") / "checkpoints")[0]
    fewer, _ = weights_of(tmp_path, "fewer", 3, 1, "--resume", saved, *server)
    assert abs(fewer - whole).max() < 1e-5 < abs(whole).max()


def damage_byte(folder):
    path = folder / "server-0001.h5"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return "server-0001.h5"


def damage_length(folder):
    path = folder / "worker-0000.h5"
    path.write_bytes(path.read_bytes()[:-1])
    return "worker-0000.h5"


def damage_manifest(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"seed": "1"', '"seed": "2"'))
    return "manifest.json"


@pytest.mark.parametrize("damage", [damage_byte, damage_length, damage_manifest])
def test_damaged_checkpoint_is_refused_and_the_one_before_offered(tmp_path, clean_after, damage):
    weights_of(tmp_path, "whole", 4, 2, "--checkpoint-every", 20)
    saved = checkpoints(only_run(tmp_path / "whole") / "checkpoints")
    name = damage(saved[-1])
    out = tmp_path / "refused"
    result = mpirun(4, *merged("--servers", 2, *COMMON, "--iterations", 90, "--out", out, "--resume", saved[-1].parent), expect=2)
    sentences = result.sentences()
    assert len(sentences) == 1 and name in sentences[0] and f"--resume {saved[0]}" in sentences[0], result.err
    assert not out.exists()
    mpirun(4, *merged("--servers", 2, *COMMON, "--iterations", 90, "--out", out, "--resume", saved[0]))


@pytest.mark.parametrize("arguments, expected", [(["--seed", 2], "--seed 1"), (["--iterations", 40], "more --iterations"),
                                                 (["--optimizer", "sgd"], "momentum/velocity"), (["--model", "mlp"], "another model")])
def test_what_does_not_fit_is_refused(tmp_path, clean_after, arguments, expected):
    weights_of(tmp_path, "whole", 3, 1, "--checkpoint-every", 40)
    saved = only_run(tmp_path / "whole")
    result = mpirun(3, *merged("--servers", 1, *COMMON, *arguments, "--resume", saved, "--out", ""), expect=2)
    assert expected in result.err and len(result.sentences()) == 1, result.err


@pytest.mark.parametrize("target", ["mpirun", "worker", "server", "second server"])
def test_sigusr1_stops_after_a_checkpoint_and_the_run_goes_on(tmp_path, clean_after, target):
    whole, _ = weights_of(tmp_path, "whole", 5, 2)
    process = begin(tmp_path, "--checkpoint-every", 10, "--keep-checkpoints", 0)
    sent = time.time()
    pid = process.pid if target == "mpirun" else pid_of({"worker": 3, "server": 0, "second server": 1}[target])
    os.kill(pid, signal.SIGUSR1)
    result = finish(process, 20)
    assert result.code == 75, result.text
    assert time.time() - sent < 10
    newest = checkpoints(tmp_path / "saved")[-1]
    reached = int(newest.name[-10:])
    assert 10 <= reached < ITERATIONS
    run = only_run(tmp_path / "stopped")
    for worker in ranks_of(run, "worker"):
        assert list(worker["iterations"]["iteration"]) == list(range(reached))
    trace_tool("verify", run)
    resumed, _ = weights_of(tmp_path, "resumed", 5, 2, "--resume", tmp_path / "saved")
    assert (resumed == whole).all()


def test_sigusr1_under_a_straggler_reaches_workers_that_are_apart(tmp_path, clean_after):
    process = begin(tmp_path, "--checkpoint-every", 10, "--sync", "ssp:s=5", "--straggler", "worker=2,mean_ms=60; worker=0,mean_ms=5")
    os.kill(pid_of(4), signal.SIGUSR1)
    result = finish(process, 30)
    assert result.code == 75, result.text
    run = only_run(tmp_path / "stopped")
    assert len({len(worker["iterations"]) for worker in ranks_of(run, "worker")}) == 1
    trace_tool("verify", run)


def test_sigusr1_without_a_place_for_checkpoints_stops_nothing(tmp_path, clean_after):
    process = start(["mpirun", "-np", 3, TRAIN, *COMMON, *SLOW, "--out", ""])
    while not process.stdout.readline().startswith("transport"):
        assert process.poll() is None
    os.kill(process.pid, signal.SIGUSR1)
    result = finish(process, 30)
    assert result.code == 0 and "SIGUSR1 does not stop this run" in result.out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_ends_with_a_readable_trace(tmp_path, clean_after, number):
    process = begin(tmp_path, "--checkpoint-every", 10, "--trace-flush-s", 60)
    sent = time.time()
    os.kill(process.pid, number)
    result = finish(process, 20)
    assert result.code != 0 and time.time() - sent < 8
    run = only_run(tmp_path / "stopped")
    trace_tool("recover", run)
    for worker in ranks_of(run, "worker"):
        assert len(worker["iterations"]) >= 10, "rows were lost, though only a minute's flush would have written them"


def test_disk_without_room_leaves_the_checkpoint_before(tmp_path, clean_after):
    weights_of(tmp_path, "whole", 3, 1, "--checkpoint-every", 20, "--checkpoint-dir", tmp_path / "saved", "--iterations", 40)
    before = checkpoints(tmp_path / "saved")[-1]
    blocked = tmp_path / "saved" / "iteration-0000000060"
    blocked.write_text("")  # a file where the folder should be
    result = mpirun(3, *merged("--servers", 1, *COMMON, "--checkpoint-every", 20, "--checkpoint-dir", tmp_path / "saved", "--resume",
                               tmp_path / "saved", "--iterations", 70, "--out", ""), expect=None)
    assert result.code == 3 and "iteration-0000000060" in result.err
    assert checkpoints(tmp_path / "saved")[-1] == before
    shutil.rmtree(tmp_path / "saved")
