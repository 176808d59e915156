"""Numbers of one run, as the figures and the table of claims use them. Each is defined here and nowhere else."""
import math

import numpy

import fluentps_traces as traces


def system_of(run):
    """What the run stands for in a legend: a baseline, or model and release."""
    known = traces.settings(run)
    if known.get("coordination") == "central":
        return "PS-Lite as published" if known.get("pslite-keys") == "true" else "PS-Lite fair"
    sync = known.get("sync", run.attributes.get("sync", "?"))
    return sync if sync in ("bsp", "asp") or sync.startswith("drop") else f"{sync}, {known.get('release', '?')}"


def whole_number(run, name):
    """An option that is a whole number; 0 where it is not given."""
    text = traces.settings(run).get(name, "0")
    if not text.isdigit():
        raise traces.TraceError(f"{run.path}: the option {name} is '{text}', no whole number")
    return int(text)


def times_per_iteration(run, skip=1):
    """Seconds per iteration, mean over all iterations of all workers from `skip` on (the first one starts from rest):
    compute_s; communication_s, the sum of push, wait and pull; iteration_s, from one begin to the next, or to the end."""
    rows = traces.frame(run, "worker", "iterations")
    rows = rows[rows["iteration"] >= rows["iteration"].min() + skip]
    if not len(rows):
        raise traces.TraceError(f"{run.path} has no iteration beyond the first {skip}; give --iterations {skip + 1} or more")
    communication = rows["push_s"] + rows["wait_s"] + rows["pull_s"]
    ends = rows["begin_s"] + rows["compute_s"] + communication
    spans = ends.groupby(rows["worker"]).max() - rows.groupby("worker")["begin_s"].min()
    return {"compute_s": rows["compute_s"].mean(), "communication_s": communication.mean(), "iteration_s": spans.sum() / len(rows)}


def makespan(run):
    """Seconds from the first begin of an iteration to the last end of one."""
    rows = traces.frame(run, "worker", "iterations")
    ends = rows[["begin_s", "compute_s", "push_s", "wait_s", "pull_s"]].sum(axis=1)
    return ends.max() - rows["begin_s"].min()


def delays(run):
    """pulls; delayed, the number of delayed pulls; wait_s, the mean time that a delayed pull waited; gap, the mean of
    i - V at the request of a delayed pull; staleness, the mean over all pushes. Means of nothing are NaN."""
    pulls = traces.frame(run, "server", "pulls")
    late = pulls[pulls["delayed"] == 1]
    gap = late["iteration"].astype("int64") - late["v_request"].astype("int64")
    staleness = traces.frame(run, "server", "pushes")["staleness"]
    return {"pulls": len(pulls), "delayed": len(late), "wait_s": (late["answer_s"] - late["request_s"]).mean(),
            "gap": gap.mean(), "staleness": staleness.mean(), "most_staleness": staleness.max()}


def regret(run):
    """Sum over the iterations of the loss, mean over the workers. For `quadratic` the loss is the suboptimality f(w) - f(w*)."""
    rows = traces.frame(run, "worker", "iterations")
    return rows["loss"].astype("float64").sum() / rows["worker"].nunique()


def accuracy(run):
    """Of the evaluation with the largest iteration; NaN where the model has none."""
    rows = traces.evaluations(run)
    return float(rows["test_accuracy"][numpy.argmax(rows["iteration"])]) if len(rows) else math.nan


def per_server(run, skip=1):
    """A data frame, one row per server: mib, pushed to it in an iteration; exchange_ms, from the first end of computing
    among the workers to the last weights had from this server; both means over the iterations from `skip` on."""
    pushes = traces.frame(run, "server", "pushes")
    pushes = pushes[pushes["iteration"] >= pushes["iteration"].min() + skip]
    pulls = traces.frame(run, "worker", "pulls")
    work = traces.frame(run, "worker", "iterations")
    computed = (work["begin_s"] + work["compute_s"]).groupby(work["iteration"]).min()
    pulls = pulls[pulls["iteration"] >= work["iteration"].min() + skip]
    last = pulls.groupby(["server", "iteration"])["done_s"].max()
    exchange = last - computed.reindex(last.index.get_level_values("iteration")).to_numpy()
    table = (pushes.groupby("server")["bytes"].sum() / pushes["iteration"].nunique() / 2**20).to_frame("mib")
    table["exchange_ms"] = exchange.groupby(level="server").mean() * 1e3
    return table.reset_index()


def parameters(run):
    """Number of parameters of the model."""
    text = run.attributes.get("parameters", "")
    if not text.isdigit() or int(text) == 0:
        raise traces.TraceError(f"{run.path}: the attribute parameters is '{text}', no number above 0")
    return int(text)
