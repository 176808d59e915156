"""The runs of a sweep as rows of a data frame, and where they come from."""
import json
import os

import pandas

import fluentps_traces as traces

MAKE = "make figures"


def folder_of(results, sweep, scale):
    """Where jobs/submit.py has put the runs."""
    return os.path.join(results, sweep if scale == "full" else f"{sweep}-{scale}")


def runs_of(results, sweep, scale):
    """Folders of the traces of all runs of the sweep, from the list that jobs/submit.py writes. Refuses what is not done."""
    folder = folder_of(results, sweep, scale)
    command = f"jobs/submit.py configs/sweeps/{sweep}.toml --local --scale {scale}"
    try:
        with open(os.path.join(folder, "runs.txt"), encoding="utf-8") as file:
            names = file.read().split()
    except OSError as error:
        raise traces.TraceError(f"{folder} has no list of runs (runs.txt); run {command}, or {MAKE} for everything") from error
    found = []
    for name in names:
        part = last_part(os.path.join(folder, name))
        if part is None:
            raise traces.TraceError(f"{folder}/{name} is not done; run {command}, which does what is missing")
        found.append(part)
    if not found:
        raise traces.TraceError(f"{folder}/runs.txt names no run; run {command}")
    return found


def last_part(folder):
    """Folder of the last part, where that ended with exit code 0; else None."""
    for number in range(len(os.listdir(folder)) if os.path.isdir(folder) else 0, -1, -1):
        path = os.path.join(folder, f"exit-{number}")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                return os.path.join(folder, f"part-{number}") if file.read().strip() == "0" else None
    return None


def load_closed(path):
    """A run from its first iteration to its end."""
    run = traces.load(path)
    if run.attributes.get("first_iteration", "0") != "0":
        raise traces.TraceError(f"{path} was interrupted and resumed; a figure needs a run in one piece: remove its folder and repeat it")
    if not run.closed:
        raise traces.TraceError(f"{path} is no whole run: it still goes on, or was killed; wait for its end or repeat it")
    return run


def cost_of(part):
    """What the run cost here, as jobs/submit.py noted it: wall_s, processor_s, memory_mib; empty where it did not."""
    number = part.rpartition("-")[2]
    path = os.path.join(os.path.dirname(part), f"cost-{number}")
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {name: float(value) for name, value in (line.split() for line in file)}


def collect(results, sweep, scale, rows_of):
    """Data frame of the rows that `rows_of(run)` gives for each run, and the provenance in one line."""
    rows, gits, platforms = [], set(), set()
    parts = runs_of(results, sweep, scale)
    for part in parts:
        run = load_closed(part)
        cost = cost_of(part)
        rows += [{**row, **cost} for row in rows_of(run)]
        gits.add(run.attributes.get("git", "?"))
        platforms.add(run.attributes.get("platform", "live"))
    return pandas.DataFrame(rows), (f"git {' '.join(sorted(gits))}, {len(parts)} runs, platform {' '.join(sorted(platforms))}, "
                                    f"jobs/submit.py configs/sweeps/{sweep}.toml --local --scale {scale}")


def benchmarks_of(path):
    """Google Benchmark's JSON as a data frame: name, workers, million_events_per_s."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)["benchmarks"]
        rows = [{"name": each["name"].split("/")[1], "workers": int(each["name"].rpartition("N:")[2].split("/")[0]),
                 "million_events_per_s": each["items_per_second"] / 1e6}
                for each in found if each.get("run_type", "iteration") == "iteration"]
    except OSError as error:
        raise traces.TraceError(f"{path} is missing; build/bench/controller_bench --benchmark_out={path} "
                                "--benchmark_out_format=json makes it") from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise traces.TraceError(f"{path} is not what Google Benchmark writes for bench/controller_bench: {error!r}") from error
    return pandas.DataFrame(rows)
