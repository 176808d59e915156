"""Timeline of 4 workers and 2 servers: what each is doing, under central coordination and under FluentPS."""
import figure_style as style
import fluentps_statistics as statistics
import fluentps_traces as traces

SWEEP = "timeline"
WORKER_PARTS = ("compute", "push", "wait", "pull")
SERVER_PARTS = {"receives": ("#ca6702", "//"), "sends": ("#5fa8d3", "\\\\")}
LOOKS = {**{name: style.PARTS[name] for name in WORKER_PARTS}, **SERVER_PARTS}


def union(intervals):
    """Overlapping intervals as one: sorted (begin, end)."""
    merged = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return [tuple(each) for each in merged]


def worker_rows(run):
    for row in traces.frame(run, "worker", "iterations").itertuples():
        begin = row.begin_s
        for part in WORKER_PARTS:
            end = begin + getattr(row, f"{part}_s")
            yield {"actor": f"worker {row.worker}", "part": part, "begin_s": begin, "end_s": end}
            begin = end


def server_rows(run):
    """A server receives from the end of a worker's computing until its push has arrived, and from its request (with PS-Lite's
    keys as long as a push) until that has; it sends from its answer until the worker has the weights. What overlaps is one
    interval."""
    work = traces.frame(run, "worker", "iterations").set_index(["worker", "iteration"])
    pushes, requests, pulls = (traces.frame(run, *each) for each in (("server", "pushes"), ("server", "pulls"), ("worker", "pulls")))
    computed = (work["begin_s"] + work["compute_s"]).reindex(list(zip(pushes["worker"], pushes["iteration"]))).to_numpy()
    for server in sorted(pushes["server"].unique()):
        own = (pushes["server"] == server).to_numpy() & (pushes["bytes"] > 0).to_numpy()
        got = pulls[pulls["server"] == server]
        asked = got.merge(requests[requests["server"] == server], on=["worker", "iteration"], suffixes=("", "_arrived"))
        found = {"receives": [*zip(computed[own], pushes["arrive_s"].to_numpy()[own]),
                              *zip(asked["request_s"], asked["request_s_arrived"])],
                 "sends": zip(got["grant_s"], got["done_s"])}
        for part, intervals in found.items():
            for begin, end in union(intervals) if own.any() else []:
                yield {"actor": f"server {server}", "part": part, "begin_s": begin, "end_s": end}


def rows(run):
    found = [*worker_rows(run), *server_rows(run)]
    origin = min(row["begin_s"] for row in found)
    common = {"system": statistics.system_of(run), "iteration_ms": 1e3 * statistics.times_per_iteration(run)["iteration_s"]}
    return [{**common, **row, "begin_s": row["begin_s"] - origin, "end_s": row["end_s"] - origin} for row in found]


def draw_system(axes, part, actors, until):
    for (actor, name), found in part.groupby(["actor", "part"]):
        color, hatch = LOOKS[name]
        place = actors.index(actor)
        half = {"receives": -0.2, "sends": 0.2}.get(name, 0)
        axes.barh([place + half] * len(found), found["end_s"] - found["begin_s"], 0.8 if half == 0 else 0.38, left=found["begin_s"],
                  color=color, hatch=hatch, edgecolor="0.3", linewidth=0.4)
    axes.set_yticks(range(len(actors)), actors)
    axes.set(xlim=(0, until), ylim=(len(actors) - 0.4, -0.6))
    axes.grid(axis="y", visible=False)


def draw(frame):
    systems = style.in_order(frame["system"])
    actors = sorted(frame["actor"].unique(), key=lambda name: (name.startswith("server"), name))
    ends = frame.groupby("system")["end_s"].max()
    until = ends.min() * 0.8
    figure, grid = style.new(len(systems), 1, width=8.0, height=1.75 * len(systems) + 0.5, sharex=True)
    for axes, system in zip(grid.flat, systems):
        part = frame[frame["system"] == system]
        draw_system(axes, part[part["begin_s"] < until], actors, until)
        axes.set_title(f"{style.label_of(system, systems)}: {part['iteration_ms'].iloc[0]:.0f} ms per iteration", loc="left")
    grid[-1][0].set_xlabel("simulated time (s)")
    names = {name: f"{'server' if name in SERVER_PARTS else 'worker'}: {name}" for name in LOOKS}
    style.legend_above(figure, {names[name]: style.pyplot.Rectangle((0, 0), 1, 1, facecolor=color, hatch=hatch, edgecolor="0.3",
                                                                    linewidth=0.4)
                                for name, (color, hatch) in LOOKS.items()}, 6)
    return figure
