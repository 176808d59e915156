"""pssp(s,c) beside ssp(s + 1/c - 1), which theory says to be alike: regret, delayed pulls, distance, accuracy."""
import math

import figure_style as style
import fluentps_statistics as statistics
import fluentps_traces as traces
from paper.delays import arguments_of

SWEEP = "equivalence"


def equal_bound(sync):
    """The s of the ssp with the same bound on the regret."""
    found = arguments_of(sync)
    return round(found["s"] + 1 / found["c"] - 1)


def rows(run):
    known = traces.settings(run)
    model = known.get("model", "?").partition(":")[0]
    return [{"model": model, "sync": known["sync"], "kind": known["sync"].partition(":")[0], "bound": equal_bound(known["sync"]),
             "workers": len(run.workers), "seed": run.attributes.get("seed"),
             "regret": statistics.regret(run) if model == "quadratic" else math.nan, "accuracy": statistics.accuracy(run),
             "makespan_s": statistics.makespan(run), **statistics.delays(run)}]


def draw_pair(axes, frame, value, label):
    kinds = ["pssp", "ssp"]
    for kind, name in zip(kinds, ("pssp(3,c)", "ssp(s')")):
        line = style.over_seeds(frame[frame["kind"] == kind], ["bound"], value).sort_values("bound")
        axes.errorbar(line["bound"], line["mean"], line["deviation"], capsize=3, **{**style.line(kind, kinds), "label": name})
    bounds = sorted(frame["bound"].unique())
    axes.set_xticks(bounds, [f"{each}\n1/{each - 2}" for each in bounds])
    axes.set(xlabel="s' = s + 1/c - 1 (below it: c)", ylabel=label)


def draw(frame):
    figure, grid = style.new(2, 2, height=6.0)
    quadratic, images = frame[frame["model"] == "quadratic"], frame[frame["model"] != "quadratic"]
    draw_pair(grid[0][0], quadratic, "regret", "regret (sum of suboptimality)")
    draw_pair(grid[0][1], quadratic, "delayed", "delayed pulls (count)")
    draw_pair(grid[1][0], quadratic, "gap", "i - V at a delayed pull (iterations)")
    bounds = sorted(frame["bound"].unique())
    grid[1][0].plot(bounds, bounds, color="0.6", linewidth=4, alpha=0.5, zorder=0, label="theory: s'")
    draw_pair(grid[1][1], images, "accuracy", "test accuracy (share)")
    for axes, title in zip(grid.flat, ("quadratic: regret", "quadratic: delayed pulls", "quadratic: distance when paused",
                                       f"{images['model'].iloc[0]} on fashion-mnist: accuracy")):
        axes.set_title(title)
    style.legend_above(figure, [grid[1][0]], 3)
    grid[0][1].set_ylim(bottom=0)
    return figure
