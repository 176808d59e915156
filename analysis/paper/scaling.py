"""Computing and communication time per iteration against the number of workers, at a fixed global batch."""
import figure_style as style
import fluentps_statistics as statistics

SWEEP = "scaling"


def rows(run):
    times = statistics.times_per_iteration(run)
    return [{"system": statistics.system_of(run), "workers": len(run.workers), "servers": len(run.servers),
             "batch": statistics.whole_number(run, "global-batch"), "seed": run.attributes.get("seed"),
             **{name.replace("_s", "_ms"): 1e3 * value for name, value in times.items()}}]


def draw(frame):
    batches, counts = sorted(frame["batch"].unique()), sorted(frame["workers"].unique())
    figure, grid = style.new(1, len(batches), sharey=True)
    for axes, batch in zip(grid[0], batches):
        part = frame[frame["batch"] == batch]
        computing = style.over_seeds(part, ["workers"], "compute_ms").sort_values("workers")
        axes.plot(computing["workers"], computing["mean"], color="0.6", linewidth=5, alpha=0.6, label="computing (all systems)")
        for system in style.in_order(part["system"]):
            line = style.over_seeds(part[part["system"] == system], ["workers"], "communication_ms").sort_values("workers")
            axes.errorbar(line["workers"], line["mean"], line["deviation"], capsize=2, **style.line(system, style.in_order(frame["system"])))
        style.counts_on_x(axes, counts)
        axes.set(yscale="log", xlabel="workers", title=f"global batch {batch}, {part['servers'].iloc[0]} servers")
    grid[0][0].set_ylabel("time per iteration (ms)")
    style.legend_above(figure, grid[0], 3)
    return figure
