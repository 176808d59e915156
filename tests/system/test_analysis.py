"""analysis/: numbers from small traces made by hand, hostile files, and the picture."""
import os
import subprocess
import sys
import textwrap

import h5py
import numpy
import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "analysis"))
import fluentps_traces as traces  # noqa: E402

PLOT = ROOT / "analysis" / "plot_run.py"
MS = 1_000_000  # ns
# The layout of docs/trace-format.md, written out once more: packed, in this order.
TYPES = {
    "iterations": "iteration u4, begin_ns u8, compute_ns u8, push_ns u8, wait_ns u8, pull_ns u8, loss f4, lr f4, bytes u8",
    "worker pulls": "iteration u4, server u2, request_ns u8, grant_ns u8, done_ns u8, v u4",
    "evaluations": "iteration u4, time_ns u8, test_loss f4, test_accuracy f4",
    "pushes": "worker u2, iteration u4, arrive_ns u8, applied_ns u8, bytes u8, staleness u4, late u1",
    "server pulls": "worker u2, iteration u4, request_ns u8, answer_ns u8, v_request u4, v_answer u4, delayed u1",
    "advances": "v u4, time_ns u8",
}
TABLES = {"worker": ("iterations", "pulls", "evaluations"), "server": ("pushes", "pulls", "advances")}


def table(role, name, rows):
    kind = TYPES.get(name) or TYPES[f"{role} {name}"]
    return numpy.array(rows, [tuple(("<" + part if k else part) for k, part in enumerate(f.split())) for f in kind.split(", ")])


def write_rank(group, role, index, offset_ns=0, texts=(), **rows):
    known = {"schema": "fluentps-trace/1", "run_id": "hand-made", "git": "abc", "model": "lenet", "sync": "ssp:s=2",
             "release": "lazy", "seed": "1", "role": role, "role_index": str(index)}
    for name, text in {**known, **dict(texts)}.items():
        group.attrs[name] = numpy.bytes_(text)
    group.attrs["clock_offset_ns"] = numpy.int64(offset_ns)
    for name in TABLES[role]:
        group.create_dataset(name, data=table(role, name, rows.get(name, [])), maxshape=(None,), chunks=(16,))


# Worker 0: 10 + 1 + 4 + 2 ms in each of two iterations, which begin at 0 and 20 ms: 3 ms between them is other.
WORKER_0 = {"iterations": [(0, 0, 10 * MS, MS, 4 * MS, 2 * MS, 2.0, 0.1, 8), (1, 20 * MS, 10 * MS, MS, 4 * MS, 2 * MS, 1.0, 0.1, 8)],
            "evaluations": [(2, 50 * MS, 0.5, 0.75)]}
# Worker 1's clock is 30 ms ahead: its evaluation, noted at 70 ms, was at 40 ms, before worker 0's.
WORKER_1 = {"offset_ns": 30 * MS, "iterations": [(0, 30 * MS, 12 * MS, MS, 2 * MS, 2 * MS, 2.0, 0.1, 8)],
            "evaluations": [(1, 70 * MS, 0.9, 0.5)]}
SERVER = {"pushes": [(0, 0, 11 * MS, 12 * MS, 8, 0, 0), (0, 1, 31 * MS, 32 * MS, 8, 1, 0), (1, 0, 13 * MS, 14 * MS, 8, 0, 0),
                     (1, 1, 43 * MS, 44 * MS, 8, 2, 0)],
          "pulls": [(0, 0, 12 * MS, 15 * MS, 0, 1, 1), (1, 0, 14 * MS, 14 * MS, 1, 1, 0), (0, 1, 32 * MS, 45 * MS, 1, 2, 1),
                    (1, 1, 44 * MS, 45 * MS, 2, 2, 1)],
          "advances": [(1, 14 * MS), (2, 44 * MS)]}
RANKS = (("server", 0, SERVER), ("worker", 0, WORKER_0), ("worker", 1, WORKER_1))


def write_rank_files(folder, ranks=RANKS):
    folder.mkdir(parents=True, exist_ok=True)
    for rank, (role, index, rows) in enumerate(ranks):
        with h5py.File(folder / f"rank-{rank:04}.h5", "w", libver="latest") as file:
            write_rank(file, role, index, **rows)
    return folder


@pytest.fixture
def run_dir(tmp_path):
    return write_rank_files(tmp_path / "run")


def write_merged(folder):
    folder.mkdir()
    with h5py.File(folder / "run.h5", "w") as file:
        file.attrs["schema"] = numpy.bytes_("fluentps-trace/1")
        for rank, (role, index, rows) in enumerate(RANKS):
            write_rank(file.create_group(f"rank-{rank:04}"), role, index, **rows)
    return folder


def plot(*arguments, python=sys.executable):
    return subprocess.run([python, str(PLOT), *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("make", [write_rank_files, write_merged])
def test_numbers(tmp_path, make):
    run = traces.load(str(make(tmp_path / "run")))
    assert [worker.index for worker in run.workers] == [0, 1] and len(run.servers) == 1
    assert run.attributes["sync"] == "ssp:s=2" and "role" not in run.attributes  # only what all ranks share
    assert traces.time_split(run.workers[0]) == pytest.approx(
        {"compute": 0.020, "push": 0.002, "wait": 0.008, "pull": 0.004, "other": 0.003})
    iterations, delays = traces.delays_by_iteration(run.servers[0])
    assert iterations.tolist() == [0, 1] and delays.tolist() == [1, 2]
    iterations, mean, largest = traces.staleness_by_iteration(run.servers[0])
    assert iterations.tolist() == [0, 1] and mean.tolist() == [0, 1.5] and largest.tolist() == [0, 2]


def test_clock_offsets_are_taken_out(run_dir):
    rows = traces.evaluations(traces.load(str(run_dir)))
    assert rows["seconds"].tolist() == pytest.approx([0.040, 0.050])
    assert rows["test_accuracy"].tolist() == [0.5, 0.75]


def test_rows_never_written_are_left_out(run_dir):
    with h5py.File(run_dir / "rank-0000.h5", "a") as file:
        pushes = file["pushes"]
        pushes.resize((6,))
        pushes[4:] = numpy.frombuffer(b"\xff" * 2 * pushes.dtype.itemsize, pushes.dtype)
    run = traces.load(str(run_dir))
    assert len(run.servers[0].pushes) == 4
    assert traces.staleness_by_iteration(run.servers[0])[0].tolist() == [0, 1]


def test_iterations_far_from_zero_cost_no_memory(run_dir):
    with h5py.File(run_dir / "rank-0000.h5", "a") as file:
        rows = file["pulls"][()]
        rows["iteration"] += 4_000_000_000
        file["pulls"][...] = rows
    iterations, delays = traces.delays_by_iteration(traces.load(str(run_dir)).servers[0])
    assert iterations.tolist() == [4_000_000_000, 4_000_000_001] and delays.tolist() == [1, 2]


def test_live_run_is_read_while_its_writer_writes(run_dir):
    writer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(f"""
        import h5py, sys
        file = h5py.File({str(run_dir / "rank-0001.h5")!r}, "a", libver="latest")
        file.swmr_mode = True
        rows = file["iterations"]
        rows.resize((3,))
        rows[2] = rows[1]
        rows.flush()
        print("flushed", flush=True)
        sys.stdin.read()
        """)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout.readline() == "flushed\n"
        assert len(traces.load(str(run_dir)).workers[0].iterations) == 3
        assert plot(run_dir).returncode == 0
    finally:
        writer.communicate("", timeout=20)


def png_size(path):
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def test_picture(run_dir, tmp_path):
    done = plot(run_dir)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{run_dir}/run.png\n", "")
    assert png_size(run_dir / "run.png") == (1600, 1200)
    elsewhere = plot(run_dir, "--out", tmp_path / "new" / "place")
    assert elsewhere.stdout == f"{tmp_path}/new/place/run.png\n" and png_size(tmp_path / "new/place/run.png") == (1600, 1200)


@pytest.mark.parametrize("ranks", [
    (("server", 0, {}), ("worker", 0, WORKER_0)),                                              # no pushes, pulls, advances
    (("server", 0, SERVER), ("worker", 0, {"iterations": WORKER_0["iterations"]})),            # no evaluations
    (("server", 0, SERVER), ("worker", 0, {}), ("worker", 1, WORKER_1)),                       # one worker is not so far
    (("server", 0, SERVER), ("worker", 0, {"iterations": [(0, 0, 1, 1, 1, 1, float("nan"), 0.1, 8)],
                                           "evaluations": [(0, 1, float("inf"), float("nan"))]})),
    (*(("server", s, SERVER) for s in range(9)), *(("worker", w, WORKER_0) for w in range(40))),
], ids=["idle server", "no evaluation", "late worker", "not finite", "many"])
def test_odd_but_right_runs_are_drawn(tmp_path, ranks):
    done = plot(write_rank_files(tmp_path / "run", ranks))
    assert (done.returncode, done.stderr) == (0, "")


def damage(run_dir, kind):
    path = run_dir / "rank-0001.h5"
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "no HDF5":
        path.write_text("hello")
    elif kind == "truncated":
        os.truncate(path, path.stat().st_size // 2)
    elif kind == "no iterations":
        write_rank_files(run_dir, (("server", 0, SERVER), ("worker", 0, {}), ("worker", 1, {})))
    elif kind == "no server":
        (run_dir / "rank-0000.h5").unlink()
    else:
        with h5py.File(path, "a") as file:
            if kind == "foreign":
                del file.attrs["schema"]
            elif kind == "newer":
                file.attrs["schema"] = numpy.bytes_("fluentps-trace/9")
            elif kind == "no number":
                file.attrs["role_index"] = numpy.bytes_("first")
            else:
                del file["pulls"]
                if kind == "group":
                    file.create_group("pulls")
                elif kind == "fields":
                    file["pulls"] = numpy.arange(5)


@pytest.mark.parametrize("kind, words", [
    ("empty", "cannot read"), ("no HDF5", "cannot read"), ("truncated", "truncated file"), ("no iterations", "holds no iterations yet"),
    ("no server", "0 servers"), ("foreign", "no trace of FluentPS"), ("newer", "has the format fluentps-trace/9"),
    ("no number", "role_index"), ("table", "pulls of this worker is missing"), ("group", "pulls of this worker is missing"),
    ("fields", "has not the fields")])
def test_what_cannot_be_drawn_gives_one_sentence(run_dir, kind, words):
    damage(run_dir, kind)
    done = plot(run_dir)
    assert done.returncode == 2 and done.stdout == ""
    assert words in done.stderr and done.stderr.startswith("plot_run.py: ") and done.stderr.count("\n") == 1
    assert not (run_dir / "run.png").exists()


def test_what_is_not_there_gives_one_sentence(tmp_path):
    for path, words in ((tmp_path / "nothing", "does not exist"), (tmp_path, "holds no trace")):
        done = plot(path)
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1


def test_missing_packages_give_one_sentence(run_dir):
    done = subprocess.run([sys.executable, "-S", "-I", str(PLOT), str(run_dir)], capture_output=True, text=True)
    assert done.returncode == 2 and "numpy" in done.stderr and done.stderr.count("\n") == 1


def leave_unclosed(path):
    """As a killed writer leaves a file: marked as being written."""
    subprocess.run([sys.executable, "-c", f"import h5py, os; file = h5py.File({str(path)!r}, 'a', libver='latest'); "
                    "file.swmr_mode = True; file['iterations'].flush(); os._exit(0)"], check=True, timeout=20)


def test_killed_writers_file_is_read(run_dir):
    leave_unclosed(run_dir / "rank-0001.h5")
    assert len(traces.load(str(run_dir)).workers[0].iterations) == 2


def test_damaged_file_of_killed_writer_does_not_hang(run_dir):
    path = run_dir / "rank-0001.h5"
    leave_unclosed(path)
    content = bytearray(path.read_bytes())
    content[content.rindex(b"OHDR") + 12] ^= 0xFF  # a checksum that never comes right, however often HDF5 tries again
    path.write_bytes(content)
    done = plot(run_dir)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
