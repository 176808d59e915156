#!/usr/bin/env python3
"""One self-contained HTML page of one run, or of several side by side: tables, pictures and configuration, no network needed.

usage: analysis/report.py results/RUN [results/RUN ...] [--out report.html]
"""
import argparse
import base64
import html
import io
import os
import sys

try:
    import numpy
    import pandas
    import figure_style as style
    import fluentps_statistics as statistics
    import fluentps_traces as traces
    import plot_run
except ImportError as missing:
    print(f"report.py: {missing} for {sys.executable}; where Debian's packages are in use (make deps), "
          f"/usr/bin/python3 {sys.argv[0]} finds them", file=sys.stderr)
    sys.exit(2)

STYLE = """body{font-family:sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222}table{border-collapse:collapse;margin:1em 0}
td,th{border:1px solid #bbb;padding:.25em .6em;text-align:right}th:first-child,td:first-child{text-align:left}
tr.differs{background:#f6e7c1}img{max-width:100%}details{margin:1em 0}"""
WHERE_FROM = ["run_id", "origin_utc", "platform", "host", "git", "versions", "mpi_library", "transport", "argv"]


def name_of(run):
    """Its run-id; in a sweep, where that is part-0 for all, the name of the folder around it."""
    path = os.path.abspath(run.path)
    known = run.attributes.get("run_id") or os.path.basename(path)
    return os.path.basename(os.path.dirname(path)) if known.startswith("part-") else known


def numbers_of(run):
    """What the first table says of a run; each number is defined in fluentps_statistics.py."""
    times = statistics.times_per_iteration(run, skip=0)
    delays = statistics.delays(run)
    evaluations = traces.evaluations(run)
    last = evaluations[evaluations["iteration"].argmax()] if len(evaluations) else None
    return {"system": statistics.system_of(run), "workers": len(run.workers), "servers": len(run.servers),
            "state": "ended" if run.closed else "goes on, or was killed",
            "iterations (of all workers)": sum(len(worker.iterations) for worker in run.workers),
            "time (s)": statistics.makespan(run), "time per iteration (ms)": 1e3 * times["iteration_s"],
            "computing (ms)": 1e3 * times["compute_s"], "communication (ms)": 1e3 * times["communication_s"],
            "delayed pulls": f"{delays['delayed']} of {delays['pulls']}", "wait of a delayed pull (ms)": 1e3 * delays["wait_s"],
            "mean staleness": delays["staleness"], "largest staleness": delays["most_staleness"],
            "test loss": last["test_loss"] if last is not None else float("nan"),
            "test accuracy": last["test_accuracy"] if last is not None else float("nan")}


def text_of(value):
    if isinstance(value, float) or hasattr(value, "dtype"):
        return "-" if value != value else f"{float(value):.4g}"
    return str(value)


def table_of(columns, titles, mark=False):
    """`columns`: one dictionary per run. Rows that differ between runs are marked where asked for."""
    names = list(dict.fromkeys(name for column in columns for name in column))
    lines = ["<table><tr><th></th>" + "".join(f"<th>{html.escape(each)}</th>" for each in titles) + "</tr>"]
    for name in names:
        values = [text_of(column.get(name, "-")) for column in columns]
        differs = " class=differs" if mark and len(set(values)) > 1 else ""
        lines.append(f"<tr{differs}><td>{html.escape(name)}</td>" + "".join(f"<td>{html.escape(each)}</td>" for each in values) + "</tr>")
    return "\n".join([*lines, "</table>"])


def image_of(figure):
    data = io.BytesIO()
    figure.savefig(data, dpi=100, format="png")
    style.pyplot.close(figure)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}">'


def picture_of(run):
    """That of plot_run.py."""
    data = io.BytesIO()
    plot_run.draw(run, data)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}">'


def comparison(runs, titles):
    """Where the time went, and accuracy over time, of all runs."""
    learned = any(numpy.isfinite(traces.evaluations(run)["test_accuracy"]).any() for run in runs)
    figure, grid = style.new(1, 1 + learned, width=10.0, height=0.3 * len(runs) + 2.8)
    systems = [statistics.system_of(run) for run in runs]
    titles = systems if len(set(systems)) == len(systems) else titles
    left = [0.0] * len(runs)
    splits = [pandas.DataFrame([traces.time_split(worker) for worker in run.workers]).mean() for run in runs]
    for part in style.PARTS:
        color, hatch = style.PARTS[part]
        values = [split[part] for split in splits]
        grid[0][0].barh(range(len(runs)), values, left=left, color=color, hatch=hatch, edgecolor="0.3", linewidth=0.5, label=part)
        left = [a + b for a, b in zip(left, values)]
    grid[0][0].set_yticks(range(len(runs)), [title[:32] for title in titles])
    grid[0][0].invert_yaxis()
    grid[0][0].set(xlabel="time of a worker, mean (s)", title="Where the workers' time went")
    grid[0][0].set_xlim(0, 1.35 * max(left))
    grid[0][0].legend(loc="right")
    if learned:
        for run, title in zip(runs, titles):
            rows = traces.evaluations(run)
            grid[0][1].plot(rows["seconds"], rows["test_accuracy"], **style.line(title, titles))
        grid[0][1].set(xlabel="time (s)", ylabel="test accuracy (share)", title="Accuracy")
        style.legend_above(figure, [grid[0][1]], 4)
    return image_of(figure)


def page_of(runs):
    titles = [name_of(run) for run in runs]
    if len(set(titles)) < len(titles):
        titles = [f"{k + 1}: {title}" for k, title in enumerate(titles)]
    body = [f"<h1>{html.escape(titles[0]) if len(runs) == 1 else f'{len(runs)} runs'}</h1>",
            table_of([numbers_of(run) for run in runs], titles)]
    if len(runs) > 1:
        body.append(comparison(runs, titles))
    for run, title in zip(runs, titles):
        servers = statistics.per_server(run, skip=0)
        body += [f"<h2>{html.escape(title)}</h2>", picture_of(run),
                 table_of([{"pushed per iteration (MiB)": row.mib, "exchange (ms)": row.exchange_ms} for row in servers.itertuples()],
                          [f"server {row.server}" for row in servers.itertuples()])]
    where = [{name: run.attributes.get(name, "-") for name in WHERE_FROM} for run in runs]
    body += ["<h2>Where it comes from</h2>", table_of(where, titles), "<h2>Configuration</h2>",
             "<p>Rows that differ are marked.</p>" if len(runs) > 1 else "",
             "<details open><summary>all options</summary>", table_of([traces.settings(run) for run in runs], titles, mark=True), "</details>"]
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(", ".join(titles))}</title>'
            f"<style>{STYLE}</style><body>\n" + "\n".join(body) + "\n</body></html>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs, or files")
    parser.add_argument("--out", default="report.html", help="the page (default report.html)")
    options = parser.parse_args()
    style.matplotlib.rcParams.update(style.SETTINGS)
    try:
        page = page_of([traces.load(run) for run in options.runs])

        def write(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        style.replace_with(options.out, write)
    except traces.TraceError as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"report.py: cannot write the page: {error}", file=sys.stderr)
        return 2
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
