"""Every communicator, window, request and so on is freed before MPI_Finalize: counted by a preloaded library."""
import re

import pytest

from conftest import BUILD, run

LIBRARY = BUILD / "tests" / "libleak_check.so"


def counted(ranks, *command, expect=0):
    """By rank, by kind: how many were made and how many are left."""
    result = run(["mpirun", "-np", ranks, "-x", f"LD_PRELOAD={LIBRARY}", *command])
    assert result.code == expect, result.text
    found = {}
    for rank, line in re.findall(r"leak_check: rank (\d+): (.*)", result.err):
        found[int(rank)] = {kind: (int(made), int(left)) for kind, made, left in re.findall(r"([a-z ]+?) (\d+) made (\d+) left", line)}
    assert sorted(found) == list(range(ranks)), result.err
    return [{kind.strip(): pair for kind, pair in found[rank].items()} for rank in range(ranks)]


def assert_clean(ranks, windows):
    for kinds in ranks:
        assert len(kinds) == 9
        assert {kind: left for kind, (_, left) in kinds.items() if left} == {}
        assert kinds["communicators"][0] > 0
    assert all(kinds["windows"][0] == windows for kinds in ranks[:1])
    assert sum(kinds["requests"][0] for kinds in ranks) > 100, "the count saw the messages"


def test_a_leak_is_seen():
    program = BUILD / "tests" / "programs" / "leaking"
    leaked = {"communicators", "windows", "requests", "datatypes", "groups", "infos"}
    for kinds in counted(2, program):
        assert {kind: left for kind, (_, left) in kinds.items() if left} == dict.fromkeys(leaked, 1)
    for kinds in counted(2, program, "free"):
        assert {kind for kind, (made, _) in kinds.items() if made} == leaked
        assert not any(left for _, left in kinds.values())


# Windows: weights, inbox and the self-test's. The server sits on rank 0.
@pytest.mark.parametrize("windows, options", [
    (3, ["--transport", "auto", "--sync", "ssp:s=2", "--release", "soft"]),
    (2 + 1, ["--transport", "rma", "--sync", "bsp", "--local-group", "size=2", "--iterations", "10,10,13"]),
    (0, ["--transport", "p2p", "--sync", "ssp:s=2", "--release", "lazy", "--local-group", "size=2", "--checkpoint-every", 8]),
    (0, ["--transport", "p2p", "--sync", "drop:n=3", "--wire", "bf16", "--coordination", "central"]),
], ids=["rma soft ssp", "rma groups", "p2p lazy ssp groups checkpoints", "p2p drop bf16 central"])
def test_training_leaves_nothing(tmp_path, clean_after, windows, options):
    if "--iterations" not in options:
        options = [*options, "--iterations", 20]
    assert_clean(counted(5, BUILD / "bin" / "fluentps-train", "--placement", "first", "--model", "quadratic:params=5000", "--chunk-kib",
                         4, "--out", tmp_path, *options), windows)


def test_the_example_leaves_nothing(clean_after):
    assert_clean(counted(4, BUILD / "examples" / "minimal"), 3)


def test_a_refused_start_leaves_nothing(tmp_path):
    for kinds in counted(3, BUILD / "bin" / "fluentps-train", "--sync", "drop:n=9", "--model", "quadratic", "--out", tmp_path, expect=2):
        assert not any(left for _, left in kinds.values()), kinds
