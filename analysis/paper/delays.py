"""Delayed pulls and mean staleness, released softly or lazily, over s and over c."""
import figure_style as style
import fluentps_statistics as statistics
import fluentps_traces as traces

SWEEP = "delays"
VALUES = {"delayed": "delayed pulls (count)", "staleness": "mean staleness (iterations)"}
FIXED_S, FIXED_C = 3, (1.0, 0.1)


def arguments_of(sync):
    """The numbers of a spec by name: pssp:s=3,c=0.5 gives s and c; c is 1 under ssp."""
    found = dict(each.split("=") for each in sync.partition(":")[2].split(",") if "=" in each)
    return {"s": int(found.get("s", 0)), "c": float(found.get("c", 1))}


def rows(run):
    known = traces.settings(run)
    return [{**arguments_of(known["sync"]), "release": known["release"], "workers": len(run.workers),
             "iterations": statistics.whole_number(run, "iterations"), "seed": run.attributes.get("seed"),
             **statistics.delays(run), "makespan_s": statistics.makespan(run)}]


def draw_lines(axes, frame, x, value):
    groups = [(c, release) for c in sorted(frame["c"].unique(), reverse=True) for release in ("soft", "lazy")] \
        if x == "s" else [(None, release) for release in ("soft", "lazy")]
    names = [release if c is None else f"c={c:g}, {release}" for c, release in groups]
    for (c, release), name in zip(groups, names):
        part = frame[(frame["release"] == release) & ((frame["c"] == c) if c is not None else True)]
        line = style.over_seeds(part, [x], value).sort_values(x)
        axes.errorbar(line[x], line["mean"], line["deviation"], capsize=2, **style.line(name, names))
    axes.set_ylabel(VALUES[value])
    axes.legend()
    if value == "delayed":
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.45 * axes.get_ylim()[1] if x == "s" else None)


def draw(frame):
    figure, grid = style.new(2, 2, height=5.6)
    workers, iterations = frame["workers"].iloc[0], frame["iterations"].iloc[0]
    for row, value in zip(grid, VALUES):
        draw_lines(row[0], frame[frame["c"].isin(FIXED_C)], "s", value)
        draw_lines(row[1], frame[frame["s"] == FIXED_S], "c", value)
        row[0].set(xlabel="s (iterations)", title="over s (c=1 is ssp)")
        row[1].set(xlabel="c (probability of a pause)", title=f"over c, s={FIXED_S}", xscale="log")
    figure.suptitle(f"{workers} workers, {iterations} iterations, one worker takes twice as long", fontsize=9.5)
    return figure
