#!/usr/bin/env python3
"""Draws one run into a picture: accuracy and loss over time, where the workers' time went, delayed pulls, staleness.

usage: analysis/plot_run.py results/RUN [--out FOLDER]      (writes run.png there; default: into the run's folder)
"""
import argparse
import os
import sys

try:
    import numpy
    from matplotlib.ticker import MaxNLocator
    import fluentps_traces as traces
    from figure_style import DASHES, MARKERS, PARTS, matplotlib, pyplot, replace_with
except ImportError as missing:
    print(f"plot_run.py: {missing} for {sys.executable}; where Debian's packages are in use (make deps), "
          f"/usr/bin/python3 {sys.argv[0]} finds them", file=sys.stderr)
    sys.exit(2)

MOST_BARS = 32
MOST_SERVERS = 4  # told by marker and dashes; a statistic by colour, light or dark


def title_of(text, kind, shown, there):
    """The title, with a note where not everything is drawn."""
    return text if shown >= there else f"{text} ({kind} 0-{shown - 1} of {there})"


def smooth(values):
    """Mean over a hundredth of the values, and how many values at the start it takes."""
    width = max(1, len(values) // 100)
    return numpy.convolve(values, numpy.ones(width) / width, mode="valid") if len(values) else values, width - 1


def add_room_above(axes, share=0.2):
    """For the legend."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + share * (high - low))


def line_of(server, points):
    """How the line of a server looks. Markers of two servers stand apart, so that equal lines are seen as two."""
    step = max(1, points // 12)
    place = server.index % MOST_SERVERS
    return {"linestyle": DASHES[place], "marker": MARKERS[place], "markersize": 5,
            "markevery": (min(place * step // MOST_SERVERS, max(0, points - 1)), step)}


def draw_accuracy(axes, time, accuracy):
    axes.plot(time, accuracy, "o-", color="#1b4965", markersize=5, label="test accuracy")
    best = int(numpy.nanargmax(accuracy))
    axes.annotate(f"best {accuracy[best]:.3f}", (time[best], accuracy[best]), textcoords="offset points", xytext=(0, 9),
                  ha="right")
    axes.set_ylabel("test accuracy (share of images)")


def draw_learning(axes, run):
    """Loss on the right; accuracy on the left where there is one (synthetic models and some problems have none)."""
    rows = traces.evaluations(run)
    loss_axes = axes.twinx()
    worker = next(worker for worker in run.workers if len(worker.iterations))
    loss, skipped = smooth(worker.iterations["loss"])
    loss_axes.plot(traces.run_seconds(worker, worker.iterations["begin_ns"])[skipped:], loss, color="0.6", linewidth=1,
                   label=f"training loss, worker {worker.index}")
    if len(rows):
        loss_axes.plot(rows["seconds"], rows["test_loss"], "s--", color="#ca6702", markersize=5, label="test loss")
    if numpy.isfinite(rows["test_accuracy"]).any():
        draw_accuracy(axes, rows["seconds"], rows["test_accuracy"])
    else:
        axes.set_yticks([])
    if not numpy.isfinite(loss).any() and not numpy.isfinite(rows["test_loss"]).any():
        axes.text(0.5, 0.5, "this model has no loss", transform=axes.transAxes, ha="center")
    axes.set(title="Learning", xlabel="time (s)")
    loss_axes.set_ylabel("loss")
    add_room_above(axes)
    loss_axes.set_ylim(0, None)
    add_room_above(loss_axes)
    handles = [*axes.get_legend_handles_labels()[0], *loss_axes.get_legend_handles_labels()[0]]
    axes.legend(handles, [each.get_label() for each in handles], loc="upper center", ncol=3, fontsize="small")


def draw_time(axes, run):
    workers = run.workers[:MOST_BARS]
    splits = [traces.time_split(worker) for worker in workers]
    bottom = numpy.zeros(len(workers))
    for part, (color, hatch) in PARTS.items():
        values = numpy.array([split[part] for split in splits])
        axes.bar([worker.index for worker in workers], values, bottom=bottom, color=color, hatch=hatch, edgecolor="0.3",
                 linewidth=0.5, label="other (evaluation)" if part == "other" else part)
        bottom += values
    axes.set(title=title_of("Where the workers' time went", "workers", MOST_BARS, len(run.workers)), xlabel="worker",
             ylabel="time (s)")
    if len(workers) <= 16:
        axes.set_xticks([worker.index for worker in workers])
    axes.set_ylim(top=bottom.max() * 1.25 if len(bottom) and bottom.max() > 0 else 1)
    axes.legend(loc="upper center", ncol=5, fontsize="small")


def draw_delays(axes, run):
    for server in run.servers[:MOST_SERVERS]:
        iterations, delays = traces.delays_by_iteration(server)
        axes.plot(iterations, numpy.cumsum(delays), color="#1b4965", drawstyle="steps-post",
                  label=f"server {server.index}: {delays.sum()} of {len(server.pulls)} pulls", **line_of(server, len(delays)))
    axes.set(title=title_of("Delayed pulls", "servers", MOST_SERVERS, len(run.servers)), xlabel="iteration",
             ylabel="delayed pulls so far (count)")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")


def draw_staleness(axes, run):
    top = 1
    for server in run.servers[:MOST_SERVERS]:
        iterations, mean, largest = traces.staleness_by_iteration(server)
        if not len(iterations):
            continue
        means, skipped = smooth(mean)
        maxima = [largest[max(0, k - skipped):k + 1].max() for k in range(skipped, len(largest))]
        style = line_of(server, len(means))
        axes.plot(iterations[skipped:], means, color="#1b4965", label=f"mean, server {server.index}", **style)
        axes.plot(iterations[skipped:], maxima, color="#e09f3e", linewidth=1, label=f"max, server {server.index}", **style)
        top = max(top, int(largest.max()))
    axes.set(title=title_of("Staleness of the updates", "servers", MOST_SERVERS, len(run.servers)), xlabel="iteration",
             ylabel="staleness (iterations)")
    axes.set_ylim(-0.03 * top, 1.35 * top)
    if axes.lines:
        axes.legend(loc="upper right", ncol=2, fontsize="small")


def draw(run, path):
    figure, axes = pyplot.subplots(2, 2, figsize=(16, 12), dpi=100)
    draw_learning(axes[0, 0], run)
    draw_time(axes[0, 1], run)
    draw_delays(axes[1, 0], run)
    draw_staleness(axes[1, 1], run)
    for each in axes.flat:
        each.grid(alpha=0.3)
        each.set_axisbelow(True)
    for each in axes[1]:
        each.xaxis.set_major_locator(MaxNLocator(integer=True))
        each.yaxis.set_major_locator(MaxNLocator(integer=True))
    known = run.attributes
    figure.suptitle(f"{known.get('model', 'run')}: {len(run.servers)} servers, {len(run.workers)} workers, "
                    f"sync {known.get('sync', '?')}, release {known.get('release', '?')}", fontsize=15)
    figure.text(0.995, 0.005, f"{known.get('run_id', os.path.basename(os.path.normpath(run.path)))}  "
                f"git {known.get('git', '?')}  transport {known.get('transport', '?')}  "
                f"seed {known.get('seed', '?')}", ha="right", fontsize=9, color="0.4")
    figure.tight_layout(rect=(0, 0.02, 1, 0.97))
    figure.savefig(path)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="folder of a run, or one of its files")
    parser.add_argument("--out", help="folder for run.png; default: the run's folder")
    options = parser.parse_args()
    matplotlib.rcParams.update({"font.size": 12, "axes.spines.top": False})
    try:
        run = traces.load(options.run)
        folder = options.out or (options.run if os.path.isdir(options.run) else os.path.dirname(options.run) or ".")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "run.png")
        replace_with(path, lambda partial: draw(run, partial))
    except MemoryError:
        print(f"plot_run.py: {options.run} does not fit into this machine's memory", file=sys.stderr)
        return 2
    except traces.TraceError as error:
        print(f"plot_run.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"plot_run.py: cannot write the picture: {error}", file=sys.stderr)
        return 2
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
