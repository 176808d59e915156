"""How all pictures look: colours from dark to light with hatches, dashes and markers, so that a grey print tells them apart;
and how they are written: PNG, PDF and CSV, each under another name first."""
import os
import textwrap

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as pyplot  # noqa: E402
import matplotlib.ticker  # noqa: E402

# Parts of an iteration: colour and hatch.
PARTS = {"compute": ("#1b4965", ""), "push": ("#ca6702", "//"), "wait": ("#e9d8a6", ".."), "pull": ("#5fa8d3", "\\\\"),
         "other": ("#f2f2f2", "")}
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 1)), (0, (1, 2)), (0, (8, 2)), (0, (4, 1, 1, 1, 1, 1))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*", "<"]
COLORS = ["#1b4965", "#ca6702", "#5fa8d3", "#9b2226", "#6a994e", "#7f7f7f", "#6d597a", "#000000", "#bc9a5f"]
HATCHES = ["", "//", "..", "\\\\", "xx", "--", "++", "oo", "**"]
BARS = ["#1b4965", "#e09f3e", "#cfe3f1", "#9b2226", "#6a994e", "#d9d9d9", "#6d597a", "#ffffff", "#bc9a5f"]
# The systems that figures compare keep their look in all of them.
SYSTEMS = ["PS-Lite as published", "PS-Lite fair", "bsp", "ssp:s=3, lazy", "pssp:s=3,c=0.2, lazy", "ssp:s=3, soft",
           "pssp:s=3,c=0.2, soft", "asp"]
FOOT_INCHES = 0.2
SETTINGS = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3,
            "axes.axisbelow": True, "legend.fontsize": 8, "legend.framealpha": 0.9, "lines.markersize": 4.5,
            "axes.titlesize": 9.5, "pdf.fonttype": 42, "hatch.linewidth": 0.6}


def place_of(name, names):
    """Its place among the systems, or among `names` where it is none of them."""
    names = SYSTEMS if set(names) <= set(SYSTEMS) else list(names)
    return names.index(name) % len(MARKERS)


def label_of(name, names):
    """Beside PS-Lite a model alone would not say whose it is."""
    beside = any(each.startswith("PS-Lite") for each in names) and not name.startswith("PS-Lite")
    return f"FluentPS {name}" if beside else name


def line(name, names):
    place = place_of(name, names)
    return {"color": COLORS[place], "linestyle": DASHES[place], "marker": MARKERS[place], "label": label_of(name, names)}


def bar(name, names):
    place = place_of(name, names)
    return {"color": BARS[place], "hatch": HATCHES[place], "edgecolor": "0.25", "linewidth": 0.5, "label": label_of(name, names)}


def in_order(names):
    """Systems in their usual order, others behind them as they come."""
    names = list(dict.fromkeys(names))
    return [each for each in SYSTEMS if each in names] + [each for each in names if each not in SYSTEMS]


def over_seeds(frame, by, value):
    """Mean and deviation over the rows that agree in `by`; 0 where there is one only. A data frame with by, mean, deviation."""
    table = frame.groupby(by, sort=False)[value].agg(["mean", "std"]).rename(columns={"std": "deviation"})
    return table.fillna({"deviation": 0.0}).reset_index()


def new(rows=1, columns=1, width=7.2, height=4.0, **options):
    figure, axes = pyplot.subplots(rows, columns, figsize=(width, height), layout="constrained", squeeze=False, **options)
    leave_room(figure)
    return figure, axes


def leave_room(figure, above_inches=0.0):
    """Below for the provenance, above for a legend."""
    height = figure.get_size_inches()[1]
    below = FOOT_INCHES / height
    figure.get_layout_engine().set(rect=(0, below, 1, 1 - below - above_inches / height))


def legend_above(figure, found, columns):
    """One legend over all axes; `found`: the axes that it is for, or handles by label."""
    if not isinstance(found, dict):
        found = {label: handle for each in found for handle, label in zip(*each.get_legend_handles_labels())}
    figure.legend(found.values(), found.keys(), loc="upper center", ncols=columns, frameon=False, handlelength=2.6,
                  columnspacing=1.4)
    leave_room(figure, 0.12 + 0.17 * -(-len(found) // columns))


def counts_on_x(axes, counts):
    """A logarithmic axis with these counts and no others."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(each) for each in counts])
    axes.minorticks_off()


def replace_with(path, write):
    """What `write` puts into a file of another name becomes `path`, whole or not at all."""
    partial = f"{path}.partial{os.path.splitext(path)[1]}"
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def save(figure, frame, out, name, provenance):
    """NAME.png, NAME.pdf, NAME.csv in `out`; the provenance stands in the corner and in the first line of the CSV."""
    os.makedirs(out, exist_ok=True)
    figure.text(0.995, 0.006, "\n".join(textwrap.wrap(provenance, 150)), ha="right", va="bottom", fontsize=5.5, color="0.4")
    base = os.path.join(out, name)
    replace_with(f"{base}.png", lambda path: figure.savefig(path, dpi=160))
    replace_with(f"{base}.pdf", lambda path: figure.savefig(path, metadata={"CreationDate": None}))
    pyplot.close(figure)

    def write_csv(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"# {provenance}\n")
            frame.to_csv(file, index=False, float_format="%.6g")
    replace_with(f"{base}.csv", write_csv)
