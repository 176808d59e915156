"""A user's mistake gets one clear sentence, exit code 2 within seconds, and nothing is written."""
import os
import subprocess

import pytest

from conftest import BUILD, mpirun, run

QUICK = ["--model", "quadratic", "--iterations", 5]


def refused(tmp_path, ranks, *arguments, env=None, out=None):
    """Runs, expects exit 2 and exactly one message; returns it."""
    out = tmp_path / "out" if out is None else out
    result = mpirun(ranks, "--out", out, *arguments, env=env, expect=2, timeout=30)
    assert result.seconds < 15
    messages = result.sentences()
    assert len(messages) == 1, result.text
    assert not os.path.isdir(out) or not os.listdir(out), "something was written"
    return messages[0]


def test_one_rank(tmp_path):
    assert "at least 2" in refused(tmp_path, 1, *QUICK)


@pytest.mark.parametrize("servers", [0, 3, 7])
def test_impossible_server_counts(tmp_path, servers):
    message = refused(tmp_path, 3, *QUICK, "--servers", servers)
    assert f"{servers} servers" in message and "3 MPI ranks" in message and "1 to 2" in message


@pytest.mark.parametrize("arguments, expected", [
    (["--sync", "spp:s=3"], ["spp", "ssp"]),
    (["--sync", "pssp:s=3,c=0"], ["c", "0"]),
    (["--sync", "pssp:s=3,c=1.5"], ["c", "1.5"]),
    (["--sync", "ssp:s=-1"], ["s", "-1"]),
    (["--sync", "ssp"], ["ssp", "s"]),
    (["--sync", "bsp; server5=asp"], ["server5"]),
    (["--sync", ""], ["sync"]),
    (["--release", "lasy"], ["lasy", "lazy"]),
    (["--placement", "middle"], ["middle", "spread"]),
    (["--optimizer", "sdg"], ["sdg", "sgd"]),
    (["--transport", "tcp"], ["tcp", "rma"]),
    (["--slicing", "epz"], ["epz", "eps"]),
    (["--lr-schedule", "multistp:at=3"], ["multistp", "multistep"]),
    (["--straggler", "evry=2"], ["evry", "every"]),
    (["--straggler", "worker=9,mean_ms=1"], ["9"]),
    (["--iterations", "0"], ["--iterations", "0"]),
    (["--iterations", "ten"], ["--iterations", "ten"]),
    (["--servers", "-1"], ["--servers", "-1"]),
    (["--servers", "two"], ["servers", "two"]),
    (["--ring", "-1"], ["--ring", "-1"]),
    (["--model", "lenett"], ["lenett", "lenet"]),
    (["--nonsense", "1"], ["nonsense"]),
    (["stray"], ["positional"]),
    (["--run-id", "a/b"], ["a/b"]),
    (["--coordination", "centre"], ["centre", "central"]),
])
def test_bad_options(tmp_path, arguments, expected):
    base = [each for pair in zip(QUICK[::2], QUICK[1::2]) if pair[0] not in arguments for each in pair]
    message = refused(tmp_path, 3, *base, *arguments)
    for each in expected:
        assert each in message, message


def test_missing_data_set_names_the_package(tmp_path):
    message = refused(tmp_path, 2, "--model", "softmax", "--data", tmp_path / "nowhere")
    assert "dataset-fashion-mnist" in message and "nowhere" in message


def test_batch_larger_than_the_data_set(tmp_path):
    message = refused(tmp_path, 2, "--model", "softmax", "--batch-size", 70000)
    assert "70000" in message and "60000" in message


def test_global_batch_that_does_not_divide(tmp_path):
    message = refused(tmp_path, 4, "--model", "softmax", "--global-batch", 100)
    assert "100" in message and "3 workers" in message


def test_unwritable_out(tmp_path):
    # A file stands where a folder of the path should be: nobody, not even root, can write there.
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = mpirun(2, *QUICK, "--out", blocked / "results", expect=2, timeout=30)
    assert len(result.sentences()) == 1 and str(blocked) in result.sentences()[0]


def config(tmp_path, text):
    path = tmp_path / "run.cfg"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_config_file_names_file_and_line(tmp_path):
    for text, line, expected in (
        ("servers = 1\niteratons = 5\n", 2, ["iteratons", "iterations"]),
        ("# a comment\n\nservers one\n", 3, ["servers one"]),
        ("servers = 1\nseed = 1\nservers = 1\n", 3, ["servers", "line 1"]),
        ("servers = many\n", 1, ["many"]),
        ("servers = -2\n", 1, ["-2"]),
    ):
        path = config(tmp_path, text)
        message = refused(tmp_path, 2, *QUICK, "--config", path)
        assert f"{path}:{line}:" in message, message
        for each in expected:
            assert each in message, message
    assert "cannot read" in refused(tmp_path, 2, *QUICK, "--config", tmp_path / "missing.cfg")


def test_config_file_forms_that_are_read(tmp_path):
    path = config(tmp_path, b"\xef\xbb\xbf[roles]\r\nservers = 1   # one\r\nsync=bsp\r\n\r\n[work]\r\niterations = 7\r\n")
    result = mpirun(2, "--model", "quadratic", "--config", path, "--out", "")
    assert "sync bsp" in result.out and "7" in result.out
    # Later files win over earlier ones, the command line over both.
    later = tmp_path / "later.cfg"
    later.write_text("sync = asp\n")
    assert "sync asp" in mpirun(2, "--model", "quadratic", "--config", path, "--config", later, "--out", "").out
    assert "sync ssp:s=1" in mpirun(2, "--model", "quadratic", "--config", path, "--sync", "ssp:s=1", "--out", "").out


def test_slurm_singletons_are_refused(tmp_path):
    out = tmp_path / "out"
    result = run([BUILD / "bin" / "fluentps-train", *QUICK, "--out", out], env={"SLURM_NTASKS": "4"}, timeout=30)
    assert result.code == 2 and "--mpi=pmix" in result.err and not out.exists()


def test_roles_from_the_environment(tmp_path):
    assert "FLUENTPS_ROLE" in refused(tmp_path, 3, *QUICK, env={"FLUENTPS_ROLE": "boss"})
    assert "3 of 3" in refused(tmp_path, 3, *QUICK, env={"FLUENTPS_ROLE": "server"})
    # MPMD: each part of the command line says what it is.
    program = BUILD / "bin" / "fluentps-train"
    common = [program, "--model", "quadratic", "--iterations", "5", "--out", ""]
    result = run(["mpirun", "-np", "2", "env", "FLUENTPS_ROLE=server", *common, ":", "-np", "3", "env", "FLUENTPS_ROLE=worker", *common])
    assert result.code == 0 and "2 servers, 3 workers" in result.out, result.text


def test_disagreeing_configurations(tmp_path):
    program = BUILD / "bin" / "fluentps-train"
    common = [program, "--model", "quadratic", "--iterations", "5", "--out", tmp_path / "out"]
    result = run(["mpirun", "-np", "2", *common, ":", "-np", "1", *common, "--sync", "bsp"], timeout=30)
    assert result.code == 2 and "differs from rank 0" in result.err and "sync = bsp" in result.err, result.text
    assert not (tmp_path / "out").exists()


def test_help_and_lists(tmp_path):
    text = mpirun(2, "--help").out
    assert text.count("usage:") == 1 and "--sync" in text
    assert "pssp" in mpirun(2, "--list-sync").out
    assert "HDF5" in mpirun(2, "--version").out


def test_preflight_only_reports_and_writes_nothing(tmp_path):
    out = tmp_path / "out"
    result = mpirun(4, "--servers", 2, "--model", "softmax", "--preflight-only", "--out", out)
    assert "2 servers, 2 workers, 7850 parameters" in result.out
    assert "transport rma" in result.out and "memlock" in result.out and "preflight passed" in result.out
    assert result.out.count("preflight passed") == 1 and not out.exists()
    result = mpirun(2, "--model", "softmax", "--data", tmp_path / "none", "--preflight-only", "--out", out, expect=2)
    assert "dataset-fashion-mnist" in result.err


def test_trace_tool_refuses_what_is_no_run(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign.h5").write_bytes(os.urandom(2000))
    for target in (tmp_path / "missing", tmp_path / "empty", tmp_path / "foreign.h5"):
        result = run([BUILD / "bin" / "fluentps-trace", "info", target])
        assert result.code == 2, result.text
        assert len(result.err.strip().splitlines()) == 1, result.err
