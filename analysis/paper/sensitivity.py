"""Time per iteration and delayed pulls against the stragglers' mean, deviation and share."""
import figure_style as style
import fluentps_statistics as statistics
import fluentps_traces as traces

SWEEP = "sensitivity"
BASE = {"mean_ms": 30.0, "sdev_ms": 10.0, "share": 1 / 8}
LABELS = {"mean_ms": "mean delay (ms)", "sdev_ms": "deviation of the delay (ms)", "share": "share of workers delayed (%)"}


def straggler_of(text):
    """every=8,mean_ms=30,sdev_ms=10 as share, mean_ms and sdev_ms; all 0 where nobody is delayed."""
    found = dict(each.split("=") for each in text.split(",") if "=" in each)
    return {"share": 1 / int(found["every"]) if found else 0.0, "mean_ms": float(found.get("mean_ms", 0)),
            "sdev_ms": float(found.get("sdev_ms", 0))}


def variation_of(text):
    """normal:mean=50,sdev=5 as deviation over mean, 0.1."""
    found = dict(each.split("=") for each in text.partition(":")[2].split(","))
    return float(found["sdev"]) / float(found["mean"])


def rows(run):
    known = traces.settings(run)
    return [{"system": statistics.system_of(run), **straggler_of(known.get("straggler", "")), "variation": variation_of(known["compute-model"]),
             "workers": len(run.workers), "seed": run.attributes.get("seed"), **statistics.delays(run),
             "iteration_ms": 1e3 * statistics.times_per_iteration(run)["iteration_s"],
             "makespan_s": statistics.makespan(run)}]


def varied(frame, name):
    """The rows that differ from the base in this one, and those without stragglers where that is a value of it."""
    others = [each for each in BASE if each != name]
    same = (abs(frame[others[0]] - BASE[others[0]]) < 1e-9) & (abs(frame[others[1]] - BASE[others[1]]) < 1e-9)
    none = (frame["share"] == 0) & (name != "sdev_ms")
    return frame[same | none]


def draw(frame):
    systems = style.in_order(frame["system"])
    figure, grid = style.new(2, 3, width=8.4, height=5.4, sharey="row")
    frame = frame[frame["variation"] < 0.2].assign(delayed_percent=100 * frame["delayed"] / frame["pulls"])
    for column, name in enumerate(BASE):
        part = varied(frame, name)
        for axes, value in zip(grid[:, column], ("iteration_ms", "delayed_percent")):
            for system in systems:
                line = style.over_seeds(part[part["system"] == system], [name], value).sort_values(name)
                axes.errorbar(line[name] * (100 if name == "share" else 1), line["mean"], line["deviation"], capsize=2,
                              **style.line(system, systems))
            axes.set_xlabel(LABELS[name])
    grid[0][0].set_ylabel("time per iteration (ms)")
    grid[1][0].set_ylabel("delayed pulls (% of pulls)")
    style.legend_above(figure, grid.flat, 3)
    return figure
