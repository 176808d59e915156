"""Speed-up over both PS-Lite baselines: their time per iteration over that of each system."""
import figure_style as style
from paper import scaling

SWEEP, rows = scaling.SWEEP, scaling.rows
BASELINES = ["PS-Lite as published", "PS-Lite fair"]
PAPER = 6  # "up to 6x"


def ratios(frame, baseline):
    """baseline's time over each system's, by batch, workers and seed; mean and deviation over the seeds."""
    keys = ["batch", "workers", "seed"]
    base = frame[frame["system"] == baseline][[*keys, "iteration_ms"]]
    others = frame[frame["system"] != baseline].merge(base, on=keys, suffixes=("", "_base"))
    others["ratio"] = others["iteration_ms_base"] / others["iteration_ms"]
    return style.over_seeds(others, ["system", "batch", "workers"], "ratio").sort_values("workers")


def draw(frame):
    batches, counts = sorted(frame["batch"].unique()), sorted(frame["workers"].unique())
    figure, grid = style.new(2, len(batches), height=6.0, sharey="row")
    for row, baseline in zip(grid, BASELINES):
        table = ratios(frame, baseline)
        for axes, batch in zip(row, batches):
            part = table[table["batch"] == batch]
            for system in style.in_order(part["system"]):
                if system in BASELINES and baseline != BASELINES[0]:
                    continue
                line = part[part["system"] == system]
                axes.errorbar(line["workers"], line["mean"], line["deviation"], capsize=2,
                              **style.line(system, style.in_order(frame["system"])))
            if baseline == BASELINES[0]:
                axes.axhline(PAPER, color="0.5", linestyle=(0, (6, 3)), linewidth=1, label=f"paper: up to {PAPER}x")
            axes.axhline(1, color="0.5", linewidth=0.8)
            style.counts_on_x(axes, counts)
            axes.set(xlabel="workers", title=f"over {baseline}, global batch {batch}")
        row[0].set_ylabel("speed-up (ratio of times)")
        row[0].set_ylim(bottom=0)
    style.legend_above(figure, grid.flat, 3)
    return figure
