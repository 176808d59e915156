"""Reads traces of FluentPS: merged runs (run.h5), the files of single ranks, and runs that are still going on.

    run = load("results/20191002T093045Z-lenet")
    run.workers[0].iterations["loss"]       # structured numpy arrays, fields as in docs/trace-format.md
    run.servers[1].pulls["delayed"].sum()
    run.attributes["sync"]
    settings(run)["workers"]                # the effective configuration, as texts by name
    frame(run, "worker", "pulls")           # a pandas data frame over all workers, times in seconds
"""
import ctypes
import os
from dataclasses import dataclass, field

import h5py
import numpy
import pandas

SCHEMA = "fluentps-trace/1"
METADATA_ATTEMPTS = 26
# The fields that must be there, by role and table; docs/trace-format.md says what they mean.
TABLES = {
    "worker": {
        "iterations": "iteration begin_ns compute_ns push_ns wait_ns pull_ns loss lr bytes",
        "pulls": "iteration server request_ns grant_ns done_ns v",
        "evaluations": "iteration time_ns test_loss test_accuracy",
    },
    "server": {
        "pushes": "worker iteration arrive_ns applied_ns bytes staleness late",
        "pulls": "worker iteration request_ns answer_ns v_request v_answer delayed",
        "advances": "v time_ns",
    },
}
DURATIONS = {"compute_ns", "push_ns", "wait_ns", "pull_ns"}  # all other *_ns are points in time


class TraceError(Exception):
    """What is wrong with a trace, in one sentence for the user."""


@dataclass
class Rank:
    """One rank: its attributes (text) and its tables (structured arrays, times in ns on the rank's own clock since the
    run's origin; `run_seconds` brings them to the clock all ranks share)."""
    role: str
    index: int
    attributes: dict
    tables: dict = field(default_factory=dict)
    closed: bool = False  # it came to its end; not in a run that goes on, nor in one that was killed, recovered or not

    def __getattr__(self, name):
        tables = self.__dict__.get("tables", {})
        if name in tables:
            return tables[name]
        raise AttributeError(name)


@dataclass
class Run:
    path: str
    attributes: dict  # of the run, as far as they are the same on all ranks
    workers: list
    servers: list

    @property
    def closed(self):
        return all(rank.closed for rank in (*self.workers, *self.servers))


def as_text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def written(rows):
    """The rows before the first of which HDF5 only made room: all its bits are set. Such an end is left by a killed writer."""
    raw = numpy.ascontiguousarray(rows).view(numpy.uint8).reshape(len(rows), rows.dtype.itemsize)
    unwritten = (raw == 0xFF).all(axis=1)
    return rows[:int(unwritten.argmax())] if unwritten.any() else rows


def read_table(group, role, name):
    """One table as structured array. Raises TraceError where it is missing or of another form."""
    where = f"{group.file.filename}: the table {name} of this {role}"
    if not isinstance(group.get(name), h5py.Dataset):
        raise TraceError(f"{where} is missing")
    rows = group[name][()]
    lacking = [each for each in TABLES[role][name].split() if each not in (getattr(rows.dtype, "names", None) or ())]
    if lacking or rows.ndim != 1:
        raise TraceError(f"{where} has not the fields it should have ({', '.join(lacking) or 'one dimension'})")
    return written(rows)


def read_rank(group, root):
    """One rank's group or file; `root`: the file's attributes. Raises TraceError where it is no trace."""
    attributes = root.copy() if group.name == "/" else {name: as_text(value) for name, value in group.attrs.items()}
    role = attributes.get("role")
    schema = attributes.get("schema", root.get("schema"))
    if role not in TABLES or schema is None:
        raise TraceError(f"{group.file.filename} is an HDF5 file, but no trace of FluentPS: it has no role and schema")
    if schema != SCHEMA:
        raise TraceError(f"{group.file.filename} has the format {schema}; this program reads {SCHEMA}")
    for name in ("role_index", "clock_offset_ns"):
        if not attributes.setdefault(name, "0" if name == "clock_offset_ns" else "").lstrip("-").isdigit():
            raise TraceError(f"{group.file.filename}: the attribute {name} of this {role} is '{attributes[name]}', no number")
    done = group["done"][()] if isinstance(group.get("done"), h5py.Dataset) else group.attrs.get("done", 0)
    tables = {name: read_table(group, role, name) for name in TABLES[role]}
    return Rank(role, int(attributes["role_index"]), attributes, tables, closed=as_text(done) == "1")


def files_of(path):
    """The merged file where there is one, else the files of the ranks."""
    if os.path.isfile(path):
        return [path]
    if not os.path.isdir(path):
        raise TraceError(f"{path} does not exist; give the folder of a run, such as results/20191002T093045Z-lenet")
    merged = os.path.join(path, "run.h5")
    if os.path.isfile(merged):
        return [merged]
    found = sorted(os.path.join(path, name) for name in os.listdir(path) if name.startswith("rank-") and name.endswith(".h5"))
    if not found:
        raise TraceError(f"{path} holds no trace: neither run.h5 nor rank-0000.h5")
    return found


def open_live(path):
    """Opens a file whose writer lives or was killed. HDF5 reads metadata that look inconsistent again, after twice the time
    each, and of a damaged file for ever: its limit of 100 is lowered to 26 (0.1 s in all), which h5py has no call for."""
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    set_attempts = ctypes.CDLL(h5py.defs.__file__).H5Pset_metadata_read_attempts  # found in the HDF5 that h5py is linked to
    set_attempts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    if set_attempts(access.id, METADATA_ATTEMPTS) < 0:
        raise OSError("HDF5 takes no limit of attempts")
    return h5py.File(h5py.h5f.open(os.fsencode(path), h5py.h5f.ACC_RDONLY | h5py.h5f.ACC_SWMR_READ, fapl=access))


def open_trace(path):
    """A closed file is opened as any other; one that was not closed, as its writer's reader."""
    for opened in (lambda: h5py.File(path, "r"), lambda: open_live(path)):
        try:
            return opened()
        except (OSError, RuntimeError, ValueError) as error:
            problem = str(error).splitlines()[0]
    raise TraceError(f"cannot read {path}: {problem}; after a crash, fluentps-trace recover may help")


def load(path):
    """All ranks of a run. Raises TraceError in one sentence."""
    ranks = []
    for name in files_of(path):
        with open_trace(name) as file:
            try:
                groups = [file[key] for key in file if key.startswith("rank-")] or [file]
                root = {name: as_text(value) for name, value in file.attrs.items()}
                ranks += [read_rank(group, root) for group in groups]
            except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
                raise TraceError(f"cannot read {name}: {str(error).splitlines()[0]}") from error
    common = dict(ranks[0].attributes) if ranks else {}
    for rank in ranks[1:]:
        common = {key: value for key, value in common.items() if rank.attributes.get(key) == value}
    chosen = {role: sorted((r for r in ranks if r.role == role), key=lambda r: r.index) for role in TABLES}
    if not chosen["worker"] or not chosen["server"]:
        raise TraceError(f"{path} holds {len(chosen['worker'])} workers and {len(chosen['server'])} servers; a run has both")
    if not any(len(worker.iterations) for worker in chosen["worker"]):
        raise TraceError(f"{path} holds no iterations yet: no worker has finished one, or none was flushed (--trace-flush-s)")
    return Run(path, common, chosen["worker"], chosen["server"])


def seconds(nanoseconds):
    return numpy.asarray(nanoseconds).astype(numpy.float64) * 1e-9


def run_seconds(rank, nanoseconds):
    """Times of one rank as seconds since the run's origin, on the clock of rank 0."""
    return seconds(nanoseconds) - int(rank.attributes["clock_offset_ns"]) * 1e-9


def settings(run):
    """The effective configuration of the run by option, as texts."""
    lines = (line.partition(" = ") for line in run.attributes.get("config", "").splitlines())
    return {name.strip(): value.strip() for name, equals, value in lines if equals}


def frame(run, role, table):
    """A table of all ranks of a role as one data frame: first the rank's index, in a column named as the role, then the
    fields of docs/trace-format.md. Each `x_ns` is a column `x_s`, in seconds: points in time since the run's origin on the
    clock of rank 0, NaN where there is none (applied_ns of a dropped push)."""
    parts = []
    for rank in run.workers if role == "worker" else run.servers:
        rows = rank.tables[table]
        columns = {role: numpy.full(len(rows), rank.index)}
        for name in rows.dtype.names:
            if name in DURATIONS:
                columns[name[:-3] + "_s"] = seconds(rows[name])
            elif name.endswith("_ns"):
                columns[name[:-3] + "_s"] = numpy.where(rows[name] == 0, numpy.nan, run_seconds(rank, rows[name])) \
                    if name == "applied_ns" else run_seconds(rank, rows[name])
            else:
                columns[name] = rows[name].astype(rows[name].dtype.newbyteorder("="))
        parts.append(pandas.DataFrame(columns))
    return pandas.concat(parts, ignore_index=True)


def time_split(worker):
    """Seconds of a worker by kind: compute, push, wait, pull, and the rest (evaluations, writing the trace)."""
    rows = worker.iterations
    split = {name: float(seconds(rows[f"{name}_ns"]).sum()) for name in ("compute", "push", "wait", "pull")}
    total = 0.0
    if len(rows):
        last = sum(int(rows[f"{name}_ns"][-1]) for name in ("compute", "push", "wait", "pull"))
        total = float(int(rows["begin_ns"][-1]) + last - int(rows["begin_ns"][0])) * 1e-9
    split["other"] = max(0.0, total - sum(split.values()))
    return split


def evaluations(run):
    """All evaluations by time: array with seconds, iteration, test_loss, test_accuracy (NaN where the model has none)."""
    parts = []
    for worker in run.workers:
        rows = worker.evaluations
        part = numpy.empty(len(rows), [("seconds", "f8"), ("iteration", "u4"), ("test_loss", "f4"), ("test_accuracy", "f4")])
        part["seconds"] = run_seconds(worker, rows["time_ns"])
        for name in ("iteration", "test_loss", "test_accuracy"):
            part[name] = rows[name]
        parts.append(part)
    rows = numpy.concatenate(parts)
    return rows[numpy.argsort(rows["seconds"], kind="stable")]


def delays_by_iteration(server):
    """(iterations, delayed pulls of this server in each): the iterations that were pulled, rising."""
    rows = server.pulls
    iterations, place = numpy.unique(rows["iteration"], return_inverse=True)
    return iterations, numpy.bincount(place, weights=rows["delayed"] == 1, minlength=len(iterations)).astype(int)


def staleness_by_iteration(server):
    """(iterations, mean, max) staleness of the pushes of each iteration, the iterations rising."""
    rows = server.pushes
    iterations, place = numpy.unique(rows["iteration"], return_inverse=True)
    count = numpy.bincount(place, minlength=len(iterations))
    total = numpy.bincount(place, weights=rows["staleness"], minlength=len(iterations))
    largest = numpy.zeros(len(iterations), rows["staleness"].dtype)
    numpy.maximum.at(largest, place, rows["staleness"])
    return iterations, total / count, largest
