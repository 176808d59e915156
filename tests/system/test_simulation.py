"""Simulated clusters: the programs of `make sim` under bin/fluentps-sim, in simulated time."""
import shutil

import h5py
import numpy
import pytest

from conftest import BUILD, ROOT, as_text, flat, mpirun, only_run, ranks_of, run, trace_tool

PROGRAM = BUILD / "sim" / "bin" / "fluentps-train"
if shutil.which("smpirun") is None:
    pytest.skip("SimGrid is not installed (package libsimgrid-dev)", allow_module_level=True)
if not PROGRAM.exists():
    pytest.skip("the programs for simulation are not built (make sim)", allow_module_level=True)

GBIT_BYTES = 125e6
PAYLOAD = 0.94  # of an Ethernet link's bytes; configs/platforms says why
MODEL_BYTES = 4 * 853_018


def simulate(platform, workers, servers, *arguments, timeout=120, expect=0, options=(), env=None):
    result = run([ROOT / "bin" / "fluentps-sim", "--build", BUILD, "--platform", ROOT / "configs" / "platforms" / f"{platform}.xml",
                  "--workers", workers, "--servers", servers, *options, "--", *arguments], env, timeout)
    assert result.code == expect, f"exit code {result.code}, expected {expect}\n{result.text}"
    return result


def simulated_run(out, *arguments, **options):
    simulate(*arguments, "--out", out, **options)
    return only_run(out)


def rows(run_dir):
    """Every table of a merged trace as bytes, by name."""
    found = {}
    with h5py.File(run_dir / "run.h5", "r") as file:
        file.visititems(lambda name, item: found.update({name: item[()].tobytes()}) if isinstance(item, h5py.Dataset) else None)
    return found


def iterations_per_s(run_dir, skip=1):
    """Of one worker, the mean over all; the first `skip` iterations start in step and are left out."""
    rates = []
    for group in ranks_of(run_dir, "worker"):
        table = group["iterations"][:]
        end = table[-1]["begin_ns"] + sum(int(table[-1][part]) for part in ("compute_ns", "push_ns", "wait_ns", "pull_ns"))
        rates.append((len(table) - skip) / (int(end) - int(table[skip]["begin_ns"])) * 1e9)
    return float(numpy.mean(rates))


NOISY = ["--model", "softmax", "--eval-images", 100, "--compute-model", "normal:mean=5,sdev=2", "--straggler",
         "every=4,mean_ms=6,sdev_ms=3", "--sync", "pssp:s=2,c=0.5", "--iterations", 15]


def test_same_seed_and_platform_give_the_same_rows(tmp_path):
    first = rows(simulated_run(tmp_path / "a", "fat-tree-256", 12, 2, *NOISY))
    again = rows(simulated_run(tmp_path / "b", "fat-tree-256", 12, 2, *NOISY))
    assert first == again and sum(map(len, first.values())) > 10_000
    other = rows(simulated_run(tmp_path / "c", "fat-tree-256", 12, 2, *NOISY, "--seed", 2))
    assert first != other


def test_trace_names_the_platform(tmp_path):
    path = simulated_run(tmp_path / "run", "infiniband-edr", 2, 1, "--model", "quadratic:params=10", "--iterations", 2)
    for group in ranks_of(path, "worker") + ranks_of(path, "server"):
        assert as_text(group.attrs["platform"]) == "infiniband-edr"


@pytest.mark.parametrize("platform", ["ethernet-1g", "hetero"])
def test_bsp_weights_are_those_of_a_live_run(tmp_path, platform):
    common = ["--model", "softmax", "--sync", "bsp", "--iterations", 20, "--optimizer", "momentum", "--lr", 0.02,
              "--eval-images", 100, "--out", ""]
    simulate(platform, 4, 2, *common, "--save-weights", tmp_path / "simulated.h5", "--compute-model", "normal:mean=5,sdev=5")
    mpirun(6, "--servers", 2, *common, "--save-weights", tmp_path / "live.h5")
    assert (flat(tmp_path / "simulated.h5") == flat(tmp_path / "live.h5")).all()


@pytest.mark.parametrize("sync", ["bsp", "asp", "ssp:s=3", "dssp:low=1,high=3", "pssp:s=2,c=0.5", "psp:beta=2,s=2", "drop:n=6",
                                  "softsync:n=3", "ssp:s=3; server1=bsp; @20 asp"])
def test_traces_verify(tmp_path, sync):
    path = simulated_run(tmp_path / "run", "hetero", 8, 2, "--model", "quadratic:params=5000", "--sync", sync, "--iterations", 40,
                         "--compute-model", "normal:mean=5,sdev=2", "--straggler", "worker=0,mean_ms=12")
    trace_tool("verify", path)


def test_transports_agree(tmp_path):
    common = ["--model", "quadratic:params=50000", "--sync", "bsp", "--iterations", 10, "--out", ""]
    for transport in ("rma", "p2p"):
        simulate("ethernet-10g", 5, 2, *common, "--transport", transport, "--save-weights", tmp_path / f"{transport}.h5")
    assert (flat(tmp_path / "rma.h5") == flat(tmp_path / "p2p.h5")).all()


def test_time_out_of_a_condition_passes_in_simulated_time(tmp_path):
    # Workers compute for 5 ms, worker 0 sleeps 200 ms more; V advances 20 ms after it began, so the others iterate in
    # 20 to 30 ms instead of 205.
    path = simulated_run(tmp_path / "run", "ethernet-10g", 4, 1, "--model", "quadratic:params=500", "--iterations", 20, "--sync",
                         "partial:timeout_ms=20", "--compute-model", "constant:ms=5", "--straggler", "worker=0,mean_ms=200")
    period_ms = numpy.diff(ranks_of(path, "worker")[1]["iterations"]["begin_ns"]) / 1e6
    assert 20 <= numpy.median(period_ms) <= 30


def test_compute_times_follow_host_speed(tmp_path):
    # Hosts alternate, fast0 slow0 fast1 ...; the server sits on the first.
    path = simulated_run(tmp_path / "run", "hetero", 4, 1, "--model", "synthetic:params=10,compute_ms=7", "--iterations", 3, "--sync",
                         "asp", "--compute-model", "constant:ms=10")
    times = [group["iterations"]["compute_ns"][:] / 1e6 for group in ranks_of(path, "worker")]
    numpy.testing.assert_allclose(times, [[20] * 3, [10] * 3] * 2, atol=0.002)


def test_compute_times_of_a_real_run(tmp_path):
    mpirun(3, "--model", "synthetic:params=10,compute_ms=4,sdev_ms=1", "--iterations", 50, "--out", tmp_path / "real")
    real = only_run(tmp_path / "real")
    path = simulated_run(tmp_path / "run", "infiniband-edr", 8, 1, "--model", "synthetic:params=10", "--iterations", 25, "--sync", "asp",
                         "--compute-model", f"trace:{real / 'run.h5'}")
    measured = numpy.concatenate([group["iterations"]["compute_ns"][:] for group in ranks_of(real, "worker")])
    drawn = numpy.concatenate([group["iterations"]["compute_ns"][:] for group in ranks_of(path, "worker")]).astype(float)
    # usleep has microseconds.
    assert numpy.abs(drawn[:, None] - measured[None, :]).min(axis=1).max() < 2000
    assert len(set(numpy.round(drawn, -3))) > 50


@pytest.mark.parametrize("spec, part", [("constant:s=3", "ms"), ("gauss:mean=3", "normal"), ("normal:mean=-1", "mean"),
                                        ("trace:/nowhere", "/nowhere")])
def test_bad_compute_model_is_one_sentence(tmp_path, spec, part):
    result = simulate("ethernet-10g", 2, 1, "--model", "quadratic:params=10", "--compute-model", spec, "--out", tmp_path / "out",
                      expect=2)
    assert len(result.sentences()) == 1 and "--compute-model" in result.text and part in result.text
    assert not (tmp_path / "out").exists()


def test_too_few_hosts_is_one_sentence():
    result = simulate("fat-tree-256", 256, 1, expect=2)
    assert result.sentences() == [line for line in result.err.splitlines() if line] and "257 ranks" in result.err


def test_failure_ends_the_simulation_with_code_3(tmp_path):
    result = simulate("ethernet-10g", 3, 1, "--model", "quadratic:params=10", "--lr", 1000, "--iterations", 200, "--out", tmp_path / "out", expect=3)
    assert "not finite" in result.err


def test_deadlock_ends_the_simulation_with_code_3(tmp_path):
    program = tmp_path / "sim" / "bin" / "fluentps-train"
    program.parent.mkdir(parents=True)
    source = tmp_path / "deadlock.cpp"
    source.write_text("#include <mpi.h>\nint main(int argc, char** argv) { MPI_Init(&argc, &argv); int x;\n"
                      "MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); return 0; }\n")
    assert run(["smpicxx", source, "-o", program]).code == 0
    result = run([ROOT / "bin" / "fluentps-sim", "--build", tmp_path, "--platform", ROOT / "configs/platforms/ethernet-1g.xml",
                  "--workers", 2])
    assert result.code == 3 and "waits for another" in result.err


def test_throughput_is_what_the_server_link_allows(tmp_path):
    # 64 workers push and pull 3.4 MB over one server's link of 1 Gbit/s.
    path = simulated_run(tmp_path / "run", "ethernet-1g", 64, 1, "--model", "synthetic:resnet56", "--sync", "asp", "--iterations", 4)
    allowed = GBIT_BYTES / (2 * MODEL_BYTES)
    assert 64 * iterations_per_s(path) == pytest.approx(allowed, rel=0.1)


def test_workers_do_not_queue_at_one_server_after_the_other(tmp_path):
    # 128 workers, 8 servers with 10 Gbit/s each; all push, then all pull. With everyone at one server at a time: a quarter.
    path = simulated_run(tmp_path / "run", "ethernet-10g", 128, 8, "--model", "synthetic:resnet56", "--sync", "bsp", "--iterations", 5)
    allowed = 10 * GBIT_BYTES * PAYLOAD / (2 * MODEL_BYTES * 128 / 8)
    assert iterations_per_s(path) > 0.8 * allowed
