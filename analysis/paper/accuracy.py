"""Accuracy against simulated time and against iterations under the synchronization models, with stragglers."""
import figure_style as style
import fluentps_statistics as statistics
import fluentps_traces as traces

SWEEP = "accuracy"


def rows(run):
    known = traces.settings(run)
    common = {"system": statistics.system_of(run), "model": known.get("model", "?"), "dataset": known.get("dataset", "?"),
              "workers": len(run.workers), "iterations": statistics.whole_number(run, "iterations"),
              "seed": run.attributes.get("seed"), "makespan_s": statistics.makespan(run), "final_accuracy": statistics.accuracy(run),
              "delayed": statistics.delays(run)["delayed"], "staleness": statistics.delays(run)["staleness"]}
    found = traces.evaluations(run)
    if not len(found):
        raise traces.TraceError(f"{run.path} has no evaluation; give --eval-every")
    return [{**common, "iteration": row["iteration"], "seconds": row["seconds"], "loss": row["test_loss"],
             "accuracy": row["test_accuracy"]} for row in found]


def finals(frame):
    """One row per run: what holds for the whole of it."""
    return frame.drop_duplicates(["system", "seed"])


def draw_curves(axes, frame, x, systems):
    for system in systems:
        part = frame[frame["system"] == system]
        points = part.groupby("iteration", as_index=False)[["seconds", "accuracy"]].mean()
        spread = part.groupby("iteration")["accuracy"].std().fillna(0).to_numpy()
        axes.errorbar(points[x], points["accuracy"], spread, elinewidth=0.6, linewidth=1.2, **style.line(system, systems))
    top, low = frame["accuracy"].max(), frame["accuracy"].quantile(0.08)
    axes.set_ylim(low - 0.02, top + 0.01)
    axes.set_ylabel("test accuracy (share)")


def draw_bars(axes, frame, value, systems, label):
    table = style.over_seeds(finals(frame), ["system"], value).set_index("system").loc[systems]
    for k, system in enumerate(systems):
        axes.barh(k, table["mean"][system], xerr=table["deviation"][system], capsize=2, **style.bar(system, systems))
    axes.set_yticks(range(len(systems)), systems)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(style.matplotlib.ticker.MaxNLocator(4))
    low, high = (table["mean"] - table["deviation"]).min(), (table["mean"] + table["deviation"]).max()
    axes.set_xlim(low - 0.4 * (high - low) - 1e-9, high + 0.1 * (high - low) + 1e-9)


def draw(frame):
    systems = list(dict.fromkeys(frame["system"]))
    figure, grid = style.new(2, 2, width=8.0, height=6.6)
    draw_curves(grid[0][0], frame, "seconds", systems)
    draw_curves(grid[0][1], frame, "iteration", systems)
    grid[0][0].set(xlabel="simulated time (s)", title="against time")
    grid[0][1].set(xlabel="iterations of worker 0, a slow one", title="against iterations")
    draw_bars(grid[1][0], frame, "final_accuracy", systems, "accuracy at the end (share; axis cut)")
    draw_bars(grid[1][1], frame, "makespan_s", systems, "simulated time of all iterations (s; axis cut)")
    grid[1][1].set_yticklabels([])
    style.legend_above(figure, grid[0], 4)
    return figure
