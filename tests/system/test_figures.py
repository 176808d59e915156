"""analysis/: statistics, figures, claims and reports from small traces and tables made by hand, whose answers were worked out
on paper; and what is said of results that cannot be used."""
import os
import sys

import h5py
import numpy
import pandas
import pytest

from conftest import ROOT
from test_analysis import MS, png_size, write_rank

sys.path.insert(0, str(ROOT / "analysis"))
import claims  # noqa: E402
import figure_style as style  # noqa: E402
import figures  # noqa: E402
import fluentps_statistics as statistics  # noqa: E402
import fluentps_traces as traces  # noqa: E402
import report  # noqa: E402
import sweep_runs  # noqa: E402
from paper import accuracy, delays, equivalence, sensitivity, speedup, timeline  # noqa: E402

MIB = 2**20
# Three iterations, begun every 20 ms. Worker 0 computes for 10 ms and communicates for 7, worker 1 for 12 and 5.
WORKERS = [{"iterations": [(i, 20 * i * MS, 10 * MS, MS, 4 * MS, 2 * MS, 2 / (i + 1), 0.1, 8) for i in range(3)],
            "pulls": [(1, 0, 31 * MS, 33 * MS, 37 * MS, 2), (1, 1, 31 * MS, 33 * MS, 35 * MS, 2),
                      (2, 0, 51 * MS, 53 * MS, 60 * MS, 3), (2, 1, 51 * MS, 53 * MS, 55 * MS, 3)],
            "evaluations": [(1, 30 * MS, 0.9, 0.5), (3, 70 * MS, 0.5, 0.75)]},
           {"iterations": [(i, 20 * i * MS, 12 * MS, MS, 2 * MS, 2 * MS, 4 / (i + 1), 0.1, 8) for i in range(3)],
            "pulls": [(1, 0, 32 * MS, 33 * MS, 38 * MS, 2), (1, 1, 32 * MS, 33 * MS, 34 * MS, 2),
                      (2, 0, 52 * MS, 53 * MS, 57 * MS, 3), (2, 1, 52 * MS, 53 * MS, 55 * MS, 3)]}]
# In iterations 1 and 2 server 0 gets 4 MiB, server 1 half of that. Three of server 0's pulls were delayed.
PUSHES = [(w, i, (20 * i + 13) * MS, (20 * i + 14) * MS, size, w + i, 0) for i, size in ((0, 5 * MIB), (1, MIB), (2, MIB)) for w in (0, 1)]
SERVERS = [{"pushes": PUSHES,
            "pulls": [(0, 0, 12 * MS, 15 * MS, 0, 1, 1), (1, 0, 14 * MS, 14 * MS, 1, 1, 0), (0, 2, 32 * MS, 45 * MS, 0, 3, 1),
                      (1, 2, 40 * MS, 45 * MS, 1, 3, 1)]},
           {"pushes": [(w, i, arrive, applied, size // 2, 0, 0) for w, i, arrive, applied, size, _, _ in PUSHES]}]
CONFIG = "sync = ssp:s=2\nrelease = lazy\ncoordination = per-server\npslite-keys = false\niterations = 3\n"


def write_run(folder, config=CONFIG, done=1):
    folder.mkdir(parents=True)
    texts = {"config": config, "parameters": "100", "platform": "paper"}
    with h5py.File(folder / "run.h5", "w") as file:
        file.attrs["schema"] = numpy.bytes_("fluentps-trace/1")
        ranks = [("server", k, rows) for k, rows in enumerate(SERVERS)] + [("worker", k, rows) for k, rows in enumerate(WORKERS)]
        for rank, (role, index, rows) in enumerate(ranks):
            group = file.create_group(f"rank-{rank:04}")
            write_rank(group, role, index, texts=texts, **rows)
            group.attrs["done"] = numpy.int64(done)
    return folder


def write_sweep(results, sweep, configs, done=1):
    """As jobs/submit.py leaves it."""
    folder = results / f"{sweep}-quick"
    for k, config in enumerate(configs):
        write_run(folder / f"run{k}" / "part-0", config, done)
        (folder / f"run{k}" / "exit-0").write_text("0\n")
        (folder / f"run{k}" / "cost-0").write_text("wall_s 2.00\nprocessor_s 1.50\nmemory_mib 100.00\n")
    (folder / "runs.txt").write_text("".join(f"run{k}\n" for k in range(len(configs))))
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return traces.load(str(write_run(tmp_path_factory.mktemp("trace") / "run")))


def call(monkeypatch, capsys, module, *arguments):
    """Exit code, output, errors of a program, run here."""
    monkeypatch.setattr(sys, "argv", [f"{module.__name__}.py", *map(str, arguments)])
    code = module.main()
    return (code, *capsys.readouterr())


def one_sentence(found, program, words):
    code, out, err = found
    assert code == 2 and out == "" and err.startswith(f"{program}.py: ") and err.count("\n") == 1, found
    assert words in err


def test_frames_have_seconds_and_the_rank(run):
    frame = traces.frame(run, "worker", "iterations")
    assert frame["worker"].tolist() == [0, 0, 0, 1, 1, 1] and frame["begin_s"].tolist() == pytest.approx([0, 0.02, 0.04] * 2)
    assert frame["compute_s"].tolist() == pytest.approx([0.010] * 3 + [0.012] * 3)
    assert traces.settings(run)["release"] == "lazy" and run.closed


def test_times_per_iteration(run):
    # Without the first: computing (10+10+12+12)/4, communication (7+7+5+5)/4, and each worker two iterations in 57-20 ms.
    assert statistics.times_per_iteration(run) == pytest.approx({"compute_s": 0.011, "communication_s": 0.006, "iteration_s": 0.0185})
    assert statistics.makespan(run) == pytest.approx(0.057)
    with pytest.raises(traces.TraceError, match="no iteration beyond the first 3"):
        statistics.times_per_iteration(run, skip=3)


def test_delays(run):
    found = statistics.delays(run)
    # They waited 3, 13 and 5 ms, being 0, 2 and 1 ahead. Staleness: 0 1 1 2 2 3 at server 0, none at server 1.
    assert (found["pulls"], found["delayed"], found["most_staleness"]) == (4, 3, 3)
    assert (found["wait_s"], found["gap"], found["staleness"]) == pytest.approx((0.007, 1.0, 0.75))


def test_regret_and_accuracy(run):
    # Losses 2, 1, 2/3 and 4, 2, 4/3: the sum is 11, of two workers.
    assert statistics.regret(run) == pytest.approx(5.5, rel=1e-6) and statistics.accuracy(run) == 0.75
    assert statistics.parameters(run) == 100 and statistics.system_of(run) == "ssp:s=2, lazy"


def test_per_server(run):
    found = statistics.per_server(run)
    # First computed at 30 and 50 ms; last weights had from server 0 at 38 and 60, from server 1 at 35 and 55.
    assert found["mib"].tolist() == [2.0, 1.0] and found["exchange_ms"].tolist() == pytest.approx([9.0, 5.0])


@pytest.mark.parametrize("config, name", [
    ("coordination = central\npslite-keys = true\nsync = bsp", "PS-Lite as published"),
    ("coordination = central\npslite-keys = false\nsync = bsp", "PS-Lite fair"),
    ("sync = bsp\nrelease = lazy", "bsp"), ("sync = pssp:s=3,c=0.1\nrelease = soft", "pssp:s=3,c=0.1, soft")])
def test_names_of_systems(config, name):
    assert statistics.system_of(traces.Run("x", {"config": config}, [], [])) == name


def test_small_formulas():
    assert delays.arguments_of("pssp:s=3,c=0.5") == {"s": 3, "c": 0.5} and delays.arguments_of("ssp:s=4") == {"s": 4, "c": 1}
    assert [equivalence.equal_bound(each) for each in ("pssp:s=3,c=0.333333", "pssp:s=3,c=0.1", "ssp:s=7")] == [5, 12, 7]
    assert sensitivity.straggler_of("every=8,mean_ms=30,sdev_ms=10") == {"share": 0.125, "mean_ms": 30, "sdev_ms": 10}
    assert sensitivity.straggler_of("") == {"share": 0, "mean_ms": 0, "sdev_ms": 0}
    assert sensitivity.variation_of("normal:mean=50,sdev=5") == pytest.approx(0.1)
    assert timeline.union([(5, 6), (0, 4), (1, 3), (4, 4.5)]) == [(0, 4.5), (5, 6)]


def test_mean_and_deviation_over_seeds():
    table = style.over_seeds(pandas.DataFrame({"x": [1, 1, 2], "y": [1.0, 3.0, 5.0]}), ["x"], "y")
    assert table["mean"].tolist() == [2, 5] and table["deviation"].tolist() == pytest.approx([2**0.5, 0])


# Time per iteration in ms, 32 workers, two seeds: published 60 and 80, fair 20 and 20, bsp 10 and 10.
SPEEDUP = pandas.DataFrame([{"system": system, "batch": 4096, "workers": 32, "seed": seed, "iteration_ms": value}
                            for system, values in (("PS-Lite as published", (60, 80)), ("PS-Lite fair", (20, 20)), ("bsp", (10, 10)))
                            for seed, value in enumerate(values)])


def test_speed_up_is_a_mean_of_ratios():
    table = speedup.ratios(SPEEDUP, "PS-Lite as published").set_index("system")
    assert table["mean"].to_dict() == pytest.approx({"PS-Lite fair": 3.5, "bsp": 7.0})
    assert table["deviation"]["bsp"] == pytest.approx(2**0.5)


def test_benchmark_file(tmp_path):
    path = tmp_path / "controller.json"
    path.write_text('{"benchmarks": [{"name": "controller/bsp/N:64", "run_type": "iteration", "items_per_second": 5e7},'
                    '{"name": "controller/bsp/N:64_mean", "run_type": "aggregate", "items_per_second": 1}]}')
    assert sweep_runs.benchmarks_of(path).to_dict("records") == [{"name": "bsp", "workers": 64, "million_events_per_s": 50.0}]
    path.write_text('{"benchmarks": [{"name": "other"}]}')
    with pytest.raises(traces.TraceError, match="not what Google Benchmark writes"):
        sweep_runs.benchmarks_of(path)


def test_figure_with_its_files(tmp_path, monkeypatch, capsys):
    write_sweep(tmp_path / "runs", "timeline", [CONFIG, CONFIG.replace("per-server", "central")])
    out = tmp_path / "out"
    assert call(monkeypatch, capsys, figures, "timeline", "--results", tmp_path / "runs", "--out", out) == (0, f"{out}/timeline.png\n", "")
    assert sorted(os.listdir(out)) == ["timeline.csv", "timeline.pdf", "timeline.png"]
    assert png_size(out / "timeline.png")[0] == 8 * 160 and (out / "timeline.pdf").read_bytes()[:5] == b"%PDF-"
    first = (out / "timeline.csv").read_text().splitlines()[0]
    assert "git abc, 2 runs, platform paper" in first and "configs/sweeps/timeline.toml" in first
    rows = pandas.read_csv(out / "timeline.csv", comment="#")
    compute = rows[(rows["part"] == "compute") & (rows["actor"] == "worker 1") & (rows["system"] == "ssp:s=2, lazy")]
    assert compute["end_s"].tolist() == pytest.approx([0.012, 0.032, 0.052])


def damage(folder, kind):
    part = folder / "run0" / "part-0"
    if kind == "empty":
        (part / "run.h5").write_bytes(b"")
    elif kind == "foreign":
        (part / "run.h5").unlink()
        h5py.File(part / "run.h5", "w").create_dataset("x", data=[1])
    elif kind == "failed":
        (folder / "run0" / "exit-0").write_text("3\n")
    elif kind == "resumed":
        with h5py.File(part / "run.h5", "a") as file:
            for group in file.values():
                group.attrs["first_iteration"] = numpy.bytes_("5")
    elif kind == "failed again":
        (folder / "run0" / "exit-1").write_text("3\n")
    elif kind == "running":
        (folder / "run0" / "exit-0").unlink()
    elif kind == "no list":
        (folder / "runs.txt").unlink()
    elif kind == "no runs":
        (folder / "runs.txt").write_text("")


@pytest.mark.parametrize("kind, words", [
    ("empty", "cannot read"), ("foreign", "no trace of FluentPS"), ("failed", "is not done; run jobs/submit.py"),
    ("failed again", "is not done; run"), ("running", "is not done; run jobs/submit.py"), ("resumed", "interrupted and resumed"), ("recovered", "is no whole run"),
    ("no list", "has no list of runs"), ("no runs", "names no run")])
def test_results_that_cannot_be_drawn(tmp_path, monkeypatch, capsys, kind, words):
    damage(write_sweep(tmp_path / "runs", "timeline", [CONFIG], done=0 if kind == "recovered" else 1), kind)
    one_sentence(call(monkeypatch, capsys, figures, "timeline", "--results", tmp_path / "runs", "--out", tmp_path / "out"), "figures", words)
    assert not (tmp_path / "out").exists()


def test_a_run_that_was_done_again_is_taken(tmp_path):
    folder = write_sweep(tmp_path, "timeline", [CONFIG])
    (folder / "run0" / "exit-0").write_text("3\n")
    write_run(folder / "run0" / "part-1")
    (folder / "run0" / "exit-1").write_text("0\n")
    assert sweep_runs.runs_of(str(tmp_path), "timeline", "quick") == [str(folder / "run0" / "part-1")]


def test_live_and_recovered_runs_are_not_closed(tmp_path):
    assert not traces.load(str(write_run(tmp_path / "run", done=0))).closed
    with pytest.raises(traces.TraceError, match="still goes on, or was killed"):
        sweep_runs.load_closed(str(tmp_path / "run"))


def write_tables(folder, fair_ms=20.0, soft=0.80):
    """The figures' CSV files, as small as the claims allow."""
    folder.mkdir(exist_ok=True)
    tables = {
        "speedup": SPEEDUP,
        "slicing": [{"system": system, "model": "synthetic:resnet56", "slicing": slicing, "servers": 4, "workers": 16,
                     "communication_ms": ms, "bytes_per_parameter": size}
                    for system, slicing, ms, size in (("PS-Lite as published", "range", 160.0, 32), ("PS-Lite fair", "eps", fair_ms, 8),
                                                      ("bsp", "eps", 10.0, 8), ("bsp", "range", 40.0, 8))],
        "delays": [{"release": release, "s": 3, "c": c, "delayed": count, "workers": 64, "iterations": 300}
                   for release, c, count in (("soft", 1.0, 1000), ("lazy", 1.0, 250), ("lazy", 0.1, 50), ("lazy", 0.01, 5))],
        "accuracy": [{"system": system, "seed": seed, "final_accuracy": value + 0.001 * seed, "makespan_s": time, "model": "mlp",
                      "dataset": "fashion-mnist", "workers": 16, "accuracy": 0, "iteration": 1}
                     for system, value, time in (("bsp", 0.82, 10.0), ("ssp:s=3, soft", soft, 8.0), ("pssp:s=3,c=0.3, lazy", 0.83, 8.0))
                     for seed in (1, 2, 3)],
        "equivalence": [{"model": "quadratic", "kind": kind, "bound": 7, "seed": 1, "regret": regret, "delayed": delayed, "gap": gap,
                         "workers": 16} for kind, regret, delayed, gap in (("pssp", 102.0, 95, 6.3), ("ssp", 100.0, 100, 7.0))],
        "sensitivity": [{"system": system, "seed": 1, "share": share, "variation": 0.1, "makespan_s": time, "workers": 32}
                        for system, share, time in (("ssp:s=3, soft", 0.0, 10.0), ("ssp:s=3, lazy", 0.0, 10.5), ("bsp", 0.1, 1.0))],
    }
    for name, rows in tables.items():
        (folder / f"{name}.csv").write_text(f"# git abc, {name}\n" + pandas.DataFrame(rows).to_csv(index=False))
    return folder


def test_claims(tmp_path):
    found = {each.name: each for each in (claim(str(write_tables(tmp_path / "csv"))) for claim in claims.CLAIMS)}
    assert found["speedup-published"].ours.startswith("7.0x (bsp") and found["speedup-published"].verdict == "supported"
    assert "3.5x" in found["speedup-published"].why
    assert found["speedup-fair"].ours.startswith("2.0x (bsp") and found["speedup-fair"].verdict == "partly"
    assert found["communication-published"].ours == "-93.8 %" and "32 bytes per parameter against 8" in found["communication-published"].conditions
    assert found["communication-fair"].ours == "-50.0 %" and found["communication-fair"].verdict == "partly"
    assert found["delayed-pulls"].ours == "200x (s=3, c=0.01); with c of 0.1 or more 20x (s=3, c=0.1); lazy release alone 4.0x (s=3)"
    assert found["accuracy"].ours.startswith("0.8320 against 0.8020: +0.0300 +- 0.0000") and found["accuracy"].verdict == "supported"
    assert found["convergence"].ours == "worst pssp +0.0100 beside bsp's 0.8220, in 80 % of its time"
    assert found["equivalence"].ours == "ratio of regrets 1.020 to 1.020, of delayed pulls 0.950 to 0.950"
    assert found["equivalence"].verdict == "supported" and found["distance"].ours == "6.3 for 7"
    assert found["lazy-cost"].ours == "+5.0 % where computing varies by 10 %"


def test_interval_over_three_seeds():
    # Differences 1, 2, 3: deviation 1, so 4.30 / sqrt(3).
    frame = pandas.DataFrame([{"system": s, "seed": k, "x": k if s == "a" else 0.0} for s in "ab" for k in (1.0, 2.0, 3.0)])
    mean, half, seeds = claims.paired(frame, "x", "a", "b")
    assert (mean, seeds) == (2, 3) and half == pytest.approx(2.4826, abs=1e-3)


def test_a_claim_that_is_lost_ends_with_1(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text("| `accuracy` | supported | x |\n| `speedup-fair` | not | x |\n")
    arguments = ("--figures", tmp_path / "csv", "--docs", page, "--out", tmp_path / "out")
    write_tables(tmp_path / "csv")
    code, out, err = call(monkeypatch, capsys, claims, *arguments)
    assert (code, err) == (0, "") and len(out.splitlines()) == len(claims.CLAIMS)
    text = (tmp_path / "out" / "claims.md").read_text()
    assert "| `accuracy` | higher accuracy" in text and "- slicing: git abc, slicing" in text
    assert pandas.read_csv(tmp_path / "out" / "claims.csv")["name"].tolist() == [line.split()[0] for line in out.splitlines()]
    write_tables(tmp_path / "csv", soft=0.84)
    code, _, err = call(monkeypatch, capsys, claims, *arguments)
    assert code == 1 and err == f"claims.py: {page} says supported, the figures do not: accuracy\n"


def test_claims_without_their_tables(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    one_sentence(call(monkeypatch, capsys, claims, "--docs", page), "claims", "cannot be read")
    page.write_text("")
    one_sentence(call(monkeypatch, capsys, claims, "--docs", page, "--figures", tmp_path), "claims", "speedup.csv is missing")
    write_tables(tmp_path)
    (tmp_path / "delays.csv").write_text("x\n1\n")
    one_sentence(call(monkeypatch, capsys, claims, "--docs", page, "--figures", tmp_path, "--out", tmp_path / "o"), "claims", "lacks")
    assert not (tmp_path / "o").exists()


def test_report_of_two_runs(tmp_path, monkeypatch, capsys):
    runs = [write_run(tmp_path / "a"), write_run(tmp_path / "b", CONFIG.replace("lazy", "soft"))]
    page = tmp_path / "page.html"
    assert call(monkeypatch, capsys, report, *runs, "--out", page) == (0, f"{page}\n", "")
    text = page.read_text()
    assert text.count("data:image/png;base64,") == 3 and "<tr class=differs><td>release</td><td>lazy</td><td>soft</td></tr>" in text
    assert "<td>delayed pulls</td><td>3 of 4</td><td>3 of 4</td>" in text
    assert "src=\"http" not in text and "href" not in text and "<script" not in text
    (tmp_path / "b" / "run.h5").write_bytes(b"")
    page.unlink()
    one_sentence(call(monkeypatch, capsys, report, *runs, "--out", page), "report", "cannot read")
    assert not page.exists()


def test_finals_are_one_row_per_run():
    frame = pandas.DataFrame({"system": ["bsp"] * 4, "seed": [1, 1, 2, 2], "iteration": [1, 2, 1, 2], "final_accuracy": [0.5, 0.5, 0.6, 0.6]})
    assert accuracy.finals(frame)["final_accuracy"].tolist() == [0.5, 0.6]
