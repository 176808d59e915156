"""What each server gets and how long the exchange takes, for three ways to cut the parameters over servers."""
import numpy

import figure_style as style
import fluentps_statistics as statistics
import fluentps_traces as traces

SWEEP = "slicing"
SLICINGS = ["range", "tensor", "eps"]


def rows(run):
    known = traces.settings(run)
    work = traces.frame(run, "worker", "iterations")
    times = statistics.times_per_iteration(run)
    common = {"system": statistics.system_of(run), "model": known.get("model", "?"), "slicing": known.get("slicing", "?"),
              "servers": len(run.servers), "workers": len(run.workers), "seed": run.attributes.get("seed"),
              "bytes_per_parameter": work["bytes"].mean() / statistics.parameters(run),
              "communication_ms": 1e3 * times["communication_s"], "iteration_ms": 1e3 * times["iteration_s"]}
    return [{**common, **row} for row in statistics.per_server(run).to_dict("records")]


def draw_bytes(axes, part, most):
    width = 0.8 / len(SLICINGS)
    for k, slicing in enumerate(SLICINGS):
        line = style.over_seeds(part[part["slicing"] == slicing], ["server"], "mib")
        axes.bar(line["server"] + (k - 1) * width, line["mean"], width, **style.bar(slicing, SLICINGS))
    axes.set(xlabel=f"server (of {most})", ylabel="pushed per iteration (MiB)", xticks=range(most))


def draw_times(axes, part):
    for slicing in SLICINGS:
        worst = part[part["slicing"] == slicing].groupby(["servers", "seed"], as_index=False)["exchange_ms"].max()
        line = style.over_seeds(worst, ["servers"], "exchange_ms").sort_values("servers")
        axes.errorbar(line["servers"], line["mean"], line["deviation"], capsize=2, **style.line(slicing, SLICINGS))
    style.counts_on_x(axes, sorted(part["servers"].unique()))
    axes.set(xlabel="servers", ylabel="exchange, slowest server (ms)")
    axes.set_ylim(bottom=0)


def draw(frame):
    frame = frame[frame["system"] == "bsp"]
    models = list(dict.fromkeys(frame["model"]))
    figure, grid = style.new(len(models), 2, height=2.9 * len(models))
    most = int(frame["servers"].max())
    for (left, right), model in zip(grid, models):
        part = frame[frame["model"] == model]
        draw_bytes(left, part[part["servers"] == most], most)
        draw_times(right, part)
        name = model.removeprefix("synthetic:")
        left.set_title(f"{name}: bytes per server")
        right.set_title(f"{name}: time, {int(numpy.median(part['workers']))} workers")
    for axes in grid.flat:
        axes.legend()
    return figure
