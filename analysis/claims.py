#!/usr/bin/env python3
"""Holds the paper's claims beside what the figures' CSV files say: results/claims.md and claims.csv.

usage: analysis/claims.py --figures results/figures --out results [--docs docs/reproduction.md]
Exit code 1 where a claim that docs/reproduction.md lists as supported no longer is.
"""
import argparse
import os
import re
import sys
from dataclasses import asdict, dataclass

try:
    import pandas
    import figure_style as style
    import fluentps_traces as traces
    from paper import accuracy, speedup
except ImportError as missing:
    print(f"claims.py: {missing} for {sys.executable}; where Debian's packages are in use (make deps), "
          f"/usr/bin/python3 {sys.argv[0]} finds them", file=sys.stderr)
    sys.exit(2)

SUPPORTED, PARTLY, NOT = "supported", "partly", "not"
PUBLISHED, FAIR = speedup.BASELINES
# 97.5 % quantiles of Student's t for 1, 2, 3, ... degrees of freedom.
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]
PAPER_WORKERS = 32  # the largest number of workers in the authors' settings


@dataclass
class Claim:
    name: str
    claim: str
    paper: str
    ours: str
    conditions: str
    verdict: str
    why: str


def read(folder, name):
    """The CSV behind a figure."""
    path = os.path.join(folder, f"{name}.csv")
    try:
        return pandas.read_csv(path, comment="#")
    except OSError as error:
        raise traces.TraceError(f"{path} is missing; analysis/figures.py {name} makes it") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise traces.TraceError(f"{path} is no table of a figure: {str(error).splitlines()[0]}") from error


def verdict(good, half=False):
    return SUPPORTED if good else PARTLY if half else NOT


def best(table):
    """The row with the largest mean, and how it reads."""
    row = table.loc[table["mean"].idxmax()]
    return row, f"{row['mean']:.1f}x ({row['system']}, batch {row['batch']}, {row['workers']} workers)"


def speedup_published(folder):
    table = speedup.ratios(read(folder, "speedup"), PUBLISHED)
    ours = table[table["system"] != FAIR]
    row, within = best(ours[ours["workers"] <= PAPER_WORKERS])
    _, everywhere = best(ours)
    fair = table[(table["system"] == FAIR) & (table["batch"] == row["batch"]) & (table["workers"] == row["workers"])]["mean"].iloc[0]
    return Claim("speedup-published", "speed-up over PS-Lite, ResNet-56, large batch, growing cluster", "up to 6x",
                 f"{within}; {everywhere}", f"PS-Lite as published: one hot server of 8, 32 bytes moved per parameter; up to {PAPER_WORKERS} "
                 "workers as in the paper, then all", verdict(row["mean"] >= speedup.PAPER, row["mean"] >= 0.8 * speedup.PAPER),
                 f"the baseline makes the number: central coordination with FluentPS's slicing and no keys is already {fair:.1f}x faster there")


def speedup_fair(folder):
    table = speedup.ratios(read(folder, "speedup"), FAIR)
    table = table[table["system"] != PUBLISHED]
    row, text = best(table)
    _, bsp = best(table[table["system"] == "bsp"])
    return Claim("speedup-fair", "the same over a fair PS-Lite", "not measured", f"{text}; {bsp}",
                 "central coordination, balanced slicing, 8 bytes moved per parameter",
                 verdict(row["mean"] >= speedup.PAPER, row["mean"] >= 1.1),
                 "links are shared fairly in simulation, and without stragglers all servers are done together: what bsp's overlap "
                 "gains is small; the rest comes from not waiting for the slowest, and from pushes that overlap with pulls")


def communication(frame, system, value="communication_ms"):
    """At 4 servers with resnet56, mean over the seeds."""
    part = frame[(frame["servers"] == 4) & (frame["system"] == system) & frame["model"].str.endswith("resnet56")]
    if system == "bsp":
        part = part[part["slicing"] == "eps"]
    if not len(part):
        raise traces.TraceError(f"slicing.csv has no run of {system} with resnet56 on 4 servers; run its sweep again")
    return part[value].mean()


def communication_claim(folder, name, baseline, text, why, enough):
    frame = read(folder, "slicing")
    less = 100 * (1 - communication(frame, "bsp") / communication(frame, baseline))
    moved = [communication(frame, each, "bytes_per_parameter") for each in (baseline, "bsp")]
    return Claim(name, text, "-93.7 %" if baseline == PUBLISHED else "not measured", f"{-less:+.1f} %",
                 f"push + wait + pull, bsp, {frame['workers'].iloc[0]} workers, 4 servers; {moved[0]:.0f} bytes per parameter "
                 f"against {moved[1]:.0f}", enough(less), why)


def communication_published(folder):
    return communication_claim(folder, "communication-published", PUBLISHED, "communication cost against PS-Lite",
                               "4 times fewer bytes, on 4 servers instead of 1: 1 - 1/16 = 93.75 % where links are all that counts; the baseline makes the number",
                               lambda less: verdict(less >= 93.2, less >= 80))


def communication_fair(folder):
    return communication_claim(folder, "communication-fair", FAIR, "the same against a fair PS-Lite",
                               "the same bytes over the same links; what is left is one round trip to the scheduler",
                               lambda less: verdict(less >= 93.2, less >= 10))


def delayed_pulls(folder):
    frame = read(folder, "delays")
    mean = frame.groupby(["release", "s", "c"])["delayed"].mean()
    ratios = {(s, c): mean["soft", s, 1.0] / max(count, 1) for (release, s, c), count in mean.items() if release == "lazy"}
    top = max(ratios, key=ratios.get)
    moderate = max((each for each in ratios if each[1] >= 0.1), key=ratios.get)
    alone = max((each for each in ratios if each[1] == 1), key=ratios.get)
    return Claim("delayed-pulls", "fewer delayed pulls than raw ssp (soft), same s", "up to 131x fewer",
                 f"{ratios[top]:.0f}x (s={top[0]}, c={top[1]:g}); with c of 0.1 or more {ratios[moderate]:.0f}x (s={moderate[0]}, "
                 f"c={moderate[1]:g}); lazy release alone {ratios[alone]:.1f}x (s={alone[0]})",
                 f"{frame['workers'].iloc[0]} workers, {frame['iterations'].iloc[0]} iterations, one worker takes twice as long",
                 verdict(ratios[top] >= 131, ratios[top] >= 13),
                 "released lazily a worker runs on for s f/(f-1) iterations beside a straggler f times slower, here 2s; the rest is c: with "
                 "0.01 pssp is nearly asp, and any factor can be had")


def paired(frame, value, first, second):
    """Mean of first - second over the seeds, half of its 95 % interval (Student's), and the number of seeds."""
    table = frame.pivot_table(index="seed", columns="system", values=value)
    difference = (table[first] - table[second]).dropna()
    seeds = len(difference)
    student = STUDENT[min(seeds - 2, len(STUDENT) - 1)] if seeds > 1 else float("inf")
    return difference.mean(), student * difference.std() / seeds**0.5 if seeds > 1 else student, seeds


def accuracy_pssp(folder):
    frame = accuracy.finals(read(folder, "accuracy"))
    soft, pssp = "ssp:s=3, soft", "pssp:s=3,c=0.3, lazy"
    mean, error, seeds = paired(frame, "final_accuracy", pssp, soft)
    values = frame.groupby("system")["final_accuracy"].mean()
    return Claim("accuracy", "higher accuracy than raw ssp at equal staleness control", "higher",
                 f"{values[pssp]:.4f} against {values[soft]:.4f}: {mean:+.4f} +- {error:.4f} (95 % of {seeds} seeds)",
                 f"{frame['model'].iloc[0]} on {frame['dataset'].iloc[0]}, {frame['workers'].iloc[0]} workers, stragglers, {pssp} "
                 f"against {soft}", verdict(mean > error, mean > -error),
                 "higher by more than the seeds differ" if mean > error else
                 "no difference beyond what seeds make; a small network and a bound of 3 leave little for staleness to spoil")


def convergence(folder):
    frame = accuracy.finals(read(folder, "accuracy"))
    values = frame.groupby("system")["final_accuracy"].mean()
    pssp = values[values.index.str.startswith("pssp")]
    worst = pssp.min() - values["bsp"]
    time = frame.groupby("system")["makespan_s"].mean()
    return Claim("convergence", "robust convergence under pssp", "robust", f"worst pssp {worst:+.4f} beside bsp's {values['bsp']:.4f}, in "
                 f"{100 * time[pssp.idxmin()] / time['bsp']:.0f} % of its time", "as above; constant and dynamic pssp", verdict(worst >= -0.01),
                 "within 0.01 of bsp or above")


def equivalence_ratios(folder):
    """pssp over ssp with the same bound, by bound, mean over the seeds: regret, delayed."""
    frame = read(folder, "equivalence")
    frame = frame[frame["model"] == "quadratic"]
    table = frame.pivot_table(index=["bound", "seed"], columns="kind", values=["regret", "delayed", "gap"])
    found = {value: (table[value]["pssp"] / table[value]["ssp"]).groupby(level="bound").mean() for value in ("regret", "delayed")}
    found["gap"] = table["gap"]["pssp"].groupby(level="bound").mean()
    return found, frame


def span(values):
    return f"{values.min():.3f} to {values.max():.3f}"


def equivalence(folder):
    found, frame = equivalence_ratios(folder)
    good = abs(found["regret"] - 1).max() <= 0.05 and abs(found["delayed"] - 1).max() <= 0.1
    return Claim("equivalence", "pssp(s,c) does as ssp(s+1/c-1)", "same bound on the regret",
                 f"ratio of regrets {span(found['regret'])}, of delayed pulls {span(found['delayed'])}",
                 f"quadratic, s=3, c=1/2, 1/3, 1/5, 1/10, {frame['workers'].iloc[0]} workers, one ten times slower, lazy",
                 verdict(good, abs(found["regret"] - 1).max() <= 0.2), "regrets within 5 %, delayed pulls within 10 %" if good else
                 "a ratio lies further from 1 than 5 % (regret) or 10 % (delayed pulls)")


def distance(folder):
    found, frame = equivalence_ratios(folder)
    ratio = found["gap"] / found["gap"].index.to_numpy()
    return Claim("distance", "a worker is paused s+1/c-1 iterations ahead on average", "geometric (derived)",
                 "; ".join(f"{gap:.1f} for {bound}" for bound, gap in found["gap"].items()), "as above",
                 verdict(abs(ratio - 1).max() <= 0.1, abs(ratio - 1).max() <= 0.25),
                 "a run that ends cuts the longest runs of luck short, so the mean is a little low")


def lazy_cost(folder):
    frame = read(folder, "sensitivity")
    frame = frame[frame["share"] == 0]
    table = frame.pivot_table(index=["variation", "seed"], columns="system", values="makespan_s")
    cost = (100 * (table["ssp:s=3, lazy"] / table["ssp:s=3, soft"] - 1)).groupby(level="variation").mean()
    return Claim("lazy-cost", "lazy release costs time where nobody straggles", "not measured (simulation: +9.6 %)",
                 "; ".join(f"{value:+.1f} % where computing varies by {100 * variation:.0f} %" for variation, value in cost.items()),
                 f"time of all iterations, ssp:s=3, {frame['workers'].iloc[0]} workers, no stragglers", verdict(cost.max() >= 1, cost.max() > 0),
                 "a delayed pull waits for all workers, not for the bound; the less computing varies, the fewer meet the bound")


CLAIMS = [speedup_published, speedup_fair, communication_published, communication_fair, delayed_pulls, accuracy_pssp, convergence,
          equivalence, distance, lazy_cost]


def expected(path):
    """Verdicts that the page gives, by claim: rows such as | `accuracy` | partly |."""
    try:
        with open(path, encoding="utf-8") as file:
            return dict(re.findall(rf"^\| `([\w-]+)` \| ({SUPPORTED}|{PARTLY}|{NOT}) \|", file.read(), re.MULTILINE))
    except OSError as error:
        raise traces.TraceError(f"{path} cannot be read: {error.strerror}; name the page with --docs") from error


def provenance(folder):
    for name in ("speedup", "slicing", "delays", "accuracy", "equivalence", "sensitivity"):
        with open(os.path.join(folder, f"{name}.csv"), encoding="utf-8") as file:
            yield f"- {name}: {file.readline().lstrip('# ').strip()}"


def as_markdown(claims, sources):
    titles = ["claim", "paper", "ours", "conditions", "verdict", "why"]
    lines = ["# The paper's claims", "", "Written by `analysis/claims.py` from the figures' CSV files (`make figures`).", "",
             "| " + " | ".join(["name", *titles]) + " |", "|" + "---|" * (len(titles) + 1)]
    lines += ["| " + " | ".join([f"`{each.name}`", *(getattr(each, title) for title in titles)]) + " |" for each in claims]
    return "\n".join([*lines, "", "Sources:", "", *sources, ""])


def write(claims, folder, sources):
    os.makedirs(folder, exist_ok=True)

    def write_text(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(as_markdown(claims, sources))
    style.replace_with(os.path.join(folder, "claims.md"), write_text)
    table = pandas.DataFrame([asdict(each) for each in claims])
    style.replace_with(os.path.join(folder, "claims.csv"), lambda path: table.to_csv(path, index=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", default="results/figures", help="folder with the figures' CSV files")
    parser.add_argument("--docs", default="docs/reproduction.md", help="page that lists the verdicts")
    parser.add_argument("--out", default="results", help="folder for claims.md and claims.csv")
    options = parser.parse_args()
    try:
        listed = expected(options.docs)
        claims = [each(options.figures) for each in CLAIMS]
        write(claims, options.out, list(provenance(options.figures)))
    except traces.TraceError as error:
        print(f"claims.py: {error}", file=sys.stderr)
        return 2
    except KeyError as error:
        print(f"claims.py: a CSV file in {options.figures} lacks {error}; analysis/figures.py all makes them anew", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"claims.py: cannot write the table: {error}", file=sys.stderr)
        return 2
    for each in claims:
        print(f"{each.name:25}{each.verdict:11}{each.ours}")
    lost = [each.name for each in claims if listed.get(each.name) == SUPPORTED and each.verdict != SUPPORTED]
    if lost:
        print(f"claims.py: {options.docs} says supported, the figures do not: {', '.join(lost)}", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
