#!/usr/bin/env python3
"""Draws the figures of docs/reproduction.md from the traces of their sweeps: PNG, PDF and the CSV behind each.

usage: analysis/figures.py scaling timeline --results results/figures/runs --out results/figures     (or all)
"""
import argparse
import importlib
import os
import sys

NAMES = ["scaling", "speedup", "slicing", "delays", "accuracy", "equivalence", "timeline", "sensitivity", "cost"]
try:
    import figure_style as style
    import fluentps_traces as traces
    import sweep_runs
    FIGURES = {name: importlib.import_module(f"paper.{name}") for name in NAMES}
except ImportError as missing:
    print(f"figures.py: {missing} for {sys.executable}; where Debian's packages are in use (make deps), "
          f"/usr/bin/python3 {sys.argv[0]} finds them", file=sys.stderr)
    sys.exit(2)


def make(name, options, collected):
    """Draws one figure; `collected` keeps what figures of the same sweep share."""
    module = FIGURES[name]
    if module.SWEEP not in collected:
        collected[module.SWEEP] = sweep_runs.collect(options.results, module.SWEEP, options.scale, module.rows)
    frame, provenance = collected[module.SWEEP]
    frame = module.more(options.results, frame) if hasattr(module, "more") else frame
    style.save(module.draw(frame), frame, options.out, name, provenance)
    print(os.path.join(options.out, f"{name}.png"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*NAMES, "all"], help=f"{', '.join(NAMES)}, or all")
    parser.add_argument("--results", default="results/figures/runs", help="where jobs/submit.py has put the runs")
    parser.add_argument("--out", default="results/figures", help="folder for the figures")
    parser.add_argument("--scale", choices=["quick", "full"], default="quick", help="of the sweeps")
    options = parser.parse_args()
    style.matplotlib.rcParams.update(style.SETTINGS)
    collected = {}
    try:
        for name in NAMES if "all" in options.names else options.names:
            make(name, options, collected)
    except traces.TraceError as error:
        print(f"figures.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"figures.py: cannot write the figure: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
