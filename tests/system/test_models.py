"""Every synchronization model under mpirun, 2 servers and 4 workers with a straggler; each run is verified offline."""
import numpy
import pytest

from conftest import as_text, mpirun, only_run, ranks_of, trace_tool

MODELS = ["bsp", "asp", "ssp:s=2", "dssp:low=1,high=4", "pssp:s=2,c=0.5", "pssp:s=2,alpha=0.7", "drop:n=3", "partial:fraction=0.5",
          "partial:timeout_ms=3", "psp:beta=2,s=2", "softsync:n=2"]
STRAGGLER = ["--straggler", "worker=1,mean_ms=4,sdev_ms=1"]


def train(tmp_path, *arguments, ranks=6, servers=2, iterations=60, model="quadratic:params=3000"):
    result = mpirun(ranks, "--servers", servers, "--model", model, "--iterations", iterations, "--out", tmp_path, *arguments)
    return only_run(tmp_path), result


@pytest.mark.parametrize("release", ["soft", "lazy"])
@pytest.mark.parametrize("sync", MODELS)
def test_model_is_verified_from_its_trace(tmp_path, clean_after, sync, release):
    run, _ = train(tmp_path, "--sync", sync, "--release", release, *STRAGGLER)
    for server in ranks_of(run, "server"):
        assert len(server["pushes"]) == 4 * 60 and len(server["pulls"]) == 4 * 60
    report = trace_tool("verify", run)
    assert "server 1" in report.out or "server" in report.out


@pytest.mark.parametrize("options", [["--fastest"], ["--join"], ["--coin", "per-server"], ["--staleness-scale", "inverse"],
                                     ["--staleness-scale", "dynsgd"], ["--transport", "p2p"], ["--chunk-kib", "1", "--ring", "1"],
                                     ["--coordination", "central"], ["--slicing", "tensor"], ["--slicing", "range"]])
def test_options_are_verified_too(tmp_path, clean_after, options):
    run, _ = train(tmp_path, "--sync", "pssp:s=1,c=0.5", *options, *STRAGGLER)
    trace_tool("verify", run)


def test_two_servers_may_run_two_models(tmp_path, clean_after):
    run, _ = train(tmp_path, "--sync", "ssp:s=3; server1=bsp", *STRAGGLER)
    trace_tool("verify", run)
    relaxed, strict = (server["pulls"][:] for server in ranks_of(run, "server"))
    assert (strict["iteration"].astype(int) < strict["v_answer"].astype(int)).all()
    assert strict["delayed"].sum() > relaxed["delayed"].sum()


def test_a_switch_loses_no_push_and_strands_no_pull(tmp_path, clean_after):
    run, _ = train(tmp_path, "--sync", "bsp; @20 asp; @40 ssp:s=1; server1@50=bsp", *STRAGGLER)
    trace_tool("verify", run)
    for server in ranks_of(run, "server"):
        pulls = server["pulls"][:]
        early = pulls[pulls["iteration"] < 20]
        assert (early["iteration"].astype(int) < early["v_answer"].astype(int)).all()
        assert pulls[(pulls["iteration"] >= 20) & (pulls["iteration"] < 40)]["delayed"].sum() == 0
        assert len(server["pushes"]) == 240


def test_drop_waits_for_nobody_and_still_converges(tmp_path, clean_after):
    # Worker 1 needs 40 ms an iteration, the others next to nothing: they must not be slowed to its pace.
    run, result = train(tmp_path, "--sync", "drop:n=3", "--straggler", "worker=1,mean_ms=40", "--lr", "0.1", iterations="100,20,100")
    trace_tool("verify", run)
    for server in ranks_of(run, "server"):
        pushes = server["pushes"][:]
        late = pushes[pushes["late"] == 1]
        assert len(late) > 10 and (late["worker"] == 1).all() and (late["applied_ns"] == 0).all()
        others = pushes[pushes["worker"] != 1]
        assert others["arrive_ns"].max() < pushes[pushes["worker"] == 1]["arrive_ns"].max()
    losses = ranks_of(run, "worker")[0]["iterations"]["loss"]
    assert losses[-1] < 0.1 * losses[0]


def test_baselines_move_what_they_say(tmp_path, clean_after):
    n = 3000
    bytes_per_iteration = {}
    for preset in ("pslite-published", "pslite-fair"):
        run, _ = train(tmp_path / preset, "--preset", preset, iterations=10, model=f"synthetic:params={n}")
        trace_tool("verify", run)
        rows = ranks_of(run, "worker")[0]["iterations"][:]
        bytes_per_iteration[preset] = set(rows["bytes"])
        loads = [len(server["pulls"]) and as_text(server.attrs["shard_map"]) for server in ranks_of(run, "server")]
        assert all(loads)
    assert bytes_per_iteration == {"pslite-published": {32 * n}, "pslite-fair": {8 * n}}


def test_central_coordination_holds_everybody_for_the_slowest_server_answer(tmp_path, clean_after):
    # Under central bsp no pull reaches a server before the scheduler has seen all pushes: servers never delay one.
    run, _ = train(tmp_path, "--sync", "bsp", "--coordination", "central", *STRAGGLER)
    for server in ranks_of(run, "server"):
        pulls = server["pulls"][:]
        assert pulls["delayed"].sum() == 0
        assert (pulls["v_request"].astype(int) > pulls["iteration"].astype(int)).all()
    waits = numpy.mean([worker["iterations"]["wait_ns"].mean() for worker in ranks_of(run, "worker")])
    assert waits > 1e6, "the others wait for the straggler's 4 ms"
