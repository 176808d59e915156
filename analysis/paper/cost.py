"""What coordination costs: events per second of the controller, and the whole system with few parameters up to 1024 workers."""
import os

import pandas

import figure_style as style
import fluentps_statistics as statistics
import sweep_runs

SWEEP = "scale"
BENCHMARK = "controller.json"


def rows(run):
    times = statistics.times_per_iteration(run)
    return [{"kind": "system", "name": statistics.system_of(run), "workers": len(run.workers), "servers": len(run.servers),
             "iterations": statistics.whole_number(run, "iterations"),
             **{name.replace("_s", "_ms"): 1e3 * value for name, value in times.items()}}]


def more(results, frame):
    """The benchmark's rows behind those of the runs."""
    found = sweep_runs.benchmarks_of(os.path.join(results, BENCHMARK))
    return pandas.concat([frame, found.assign(kind="controller")], ignore_index=True)


def draw_lines(axes, frame, value, label):
    names = list(dict.fromkeys(frame["name"]))
    for name in names:
        line = style.over_seeds(frame[frame["name"] == name], ["workers"], value).sort_values("workers")
        axes.errorbar(line["workers"], line["mean"], line["deviation"], capsize=2, **style.line(name, names))
    style.counts_on_x(axes, sorted(frame["workers"].unique()))
    axes.set(xlabel="workers", ylabel=label)
    axes.set_ylim(bottom=0)


def draw(frame):
    system, controller = frame[frame["kind"] == "system"], frame[frame["kind"] == "controller"]
    figure, grid = style.new(1, 3, width=9.0, height=3.9)
    draw_lines(grid[0][0], controller, "million_events_per_s", "million events per second")
    grid[0][0].set_title("controller alone, one core")
    draw_lines(grid[0][1], system, "iteration_ms", "time per iteration (ms)")
    computing = style.over_seeds(system, ["workers"], "compute_ms").sort_values("workers")
    grid[0][1].plot(computing["workers"], computing["mean"], color="0.6", linewidth=4, alpha=0.6, zorder=0, label="computing")
    grid[0][1].set_title(f"whole system, {int(system['servers'].iloc[0])} servers, simulated")
    system = system.assign(ms_per_worker=1e3 * system["processor_s"] / system["workers"] / system["iterations"])
    draw_lines(grid[0][2], system, "ms_per_worker", "ms per worker and iteration")
    grid[0][2].set_title("processor time to simulate it")
    grid[0][0].legend(ncols=2, loc="upper center", fontsize=6.5)
    grid[0][0].set_ylim(top=grid[0][0].get_ylim()[1] * 1.5)
    for axes in grid[0][1:]:
        axes.legend(loc="upper left")
        axes.set_ylim(top=axes.get_ylim()[1] * 1.25)
    return figure
