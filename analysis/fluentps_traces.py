"""Reads traces of FluentPS: merged runs (run.h5), the files of single ranks, and runs that are still going on.

    run = load("results/20191002T093045Z-lenet")
    run.workers[0].iterations["loss"]       # structured numpy arrays, fields as in docs/trace-format.md
    run.servers[1].pulls["delayed"].sum()
    run.attributes["sync"]
"""
import os
from dataclasses import dataclass, field

import h5py
import numpy

TABLES = {"worker": ("iterations", "pulls", "evaluations"), "server": ("pushes", "pulls", "advances")}


class TraceError(Exception):
    """What is wrong with a trace, in one sentence for the user."""


@dataclass
class Rank:
    """One rank: its attributes (text) and its tables (structured arrays, times in ns since the run's origin)."""
    role: str
    index: int
    attributes: dict
    tables: dict = field(default_factory=dict)

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


def as_text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def read_rank(group):
    """One rank's group or file. Raises TraceError where it is no trace."""
    attributes = {name: as_text(value) for name, value in group.attrs.items()}
    role = attributes.get("role")
    if role not in TABLES or "schema" not in attributes:
        raise TraceError(f"{group.file.filename} is an HDF5 file, but no trace of FluentPS: it has no role and schema")
    tables = {}
    for name in TABLES[role]:
        if name not in group:
            raise TraceError(f"{group.file.filename}: the table {name} of {role} {attributes.get('role_index')} is missing")
        tables[name] = group[name][()]
    return Rank(role, int(attributes["role_index"]), attributes, tables)


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


def open_trace(path):
    """A file that is still being written is opened as its writer's reader."""
    for options in ({"swmr": True, "libver": "latest"}, {}):
        try:
            return h5py.File(path, "r", **options)
        except OSError as error:
            problem = str(error).splitlines()[0]
    raise TraceError(f"cannot read {path}: {problem}; after a crash, fluentps-trace recover may help")


def load(path):
    """All ranks of a run. Raises TraceError in one sentence."""
    ranks = []
    for name in files_of(path):
        with open_trace(name) as file:
            try:
                groups = [file[key] for key in file if key.startswith("rank-")] or [file]
                ranks += [read_rank(group) for group in groups]
            except (OSError, RuntimeError, KeyError, ValueError) as error:
                raise TraceError(f"cannot read {name}: {str(error).splitlines()[0]}") from error
    common = dict(ranks[0].attributes)
    for rank in ranks[1:]:
        common = {key: value for key, value in common.items() if rank.attributes.get(key) == value}
    chosen = {role: sorted((r for r in ranks if r.role == role), key=lambda r: r.index) for role in TABLES}
    if not chosen["worker"] or not chosen["server"]:
        raise TraceError(f"{path} holds {len(chosen['worker'])} workers and {len(chosen['server'])} servers; a run has both")
    return Run(path, common, chosen["worker"], chosen["server"])


def seconds(nanoseconds):
    return numpy.asarray(nanoseconds).astype(numpy.float64) * 1e-9


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
    """All evaluations by time: seconds, iteration, test loss, test accuracy (NaN where the model has none)."""
    rows = numpy.concatenate([worker.evaluations for worker in run.workers])
    return rows[numpy.argsort(rows["time_ns"], kind="stable")]


def delays_by_iteration(server):
    """Delayed pulls of this server for each iteration from 0 on."""
    rows = server.pulls
    return numpy.bincount(rows["iteration"][rows["delayed"] == 1], minlength=int(rows["iteration"].max()) + 1 if len(rows) else 0)


def staleness_by_iteration(server):
    """(mean, max) staleness of the pushes of each iteration from 0 on; NaN where there is none."""
    rows = server.pushes
    length = int(rows["iteration"].max()) + 1 if len(rows) else 0
    count = numpy.bincount(rows["iteration"], minlength=length).astype(float)
    total = numpy.bincount(rows["iteration"], weights=rows["staleness"], minlength=length)
    largest = numpy.full(length, numpy.nan)
    order = numpy.argsort(rows["staleness"], kind="stable")
    largest[rows["iteration"][order]] = rows["staleness"][order]
    with numpy.errstate(invalid="ignore"):
        return total / count, largest
