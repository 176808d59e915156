#!/usr/bin/env python3
"""Runs sweeps: expands a sweep file into runs, submits those that are not done as Slurm arrays, or runs them here.

jobs/submit.py configs/sweeps/example.toml                  # submit all runs that are not done
jobs/submit.py configs/sweeps/example.toml --missing        # submit the failed ones again; what waits or runs is left alone
jobs/submit.py configs/sweeps/example.toml --local          # one after another on this machine; --jobs 2: two at once
jobs/submit.py configs/sweeps/example.toml --dry-run        # say what would be done

A run's folder is results/SWEEP/ID. ID is a digest of all that the run is given, so a changed option is another run. The
folder holds, per part (a requeued job has several), command, environment, exit code and trace; log, options, config. --local
adds cost-N: wall and processor time and the largest process's memory. SWEEP/runs.txt lists the runs.
configs/sweeps/example.toml explains the sweep file. Python's standard library only.
"""
import argparse
import functools
import hashlib
import itertools
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:
    sys.exit("submit.py: needs Python 3.11 or later (tomllib); load a newer one")

ROOT = Path(__file__).resolve().parents[1]
USAGE, FAILED, RESUMABLE = 2, 3, 75
TABLES = {"sweep", "options", "grid", "runs", "sbatch", "quick", "full"}
SETTINGS = {"name": str, "config": list, "parallel": int, "command": str}
# Not options of the program: they say how many ranks a run has.
COUNTS = ("ranks", "workers")
OWN_OPTIONS = {"out", "run-id", "checkpoint-dir", "resume", "config"}
ENVIRONMENT = re.compile(r"(FLUENTPS|HDF5|MPI|NCCL|OMP|OMPI|OPENBLAS|PMIX|SLURM|UCX)_")


class Mistake(Exception):
    """A sentence for the user; exit code 2."""


def text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@dataclass
class Run:
    label: str
    servers: int
    ranks: int
    options: dict
    arguments: list = field(default_factory=list)
    folder: Path = None

    def placeholders(self):
        return {**{name.replace("-", "_"): text_of(value) for name, value in self.options.items()}, "ranks": self.ranks,
                "servers": self.servers, "workers": self.ranks - self.servers, "run": self.folder}


@dataclass
class Sweep:
    name: str
    runs: list
    sbatch: dict
    parallel: int = 0
    command: str = "mpirun -np {ranks} {build}/bin/fluentps-train"


def scalar(where, name, value):
    if isinstance(value, (dict, list)) or "\n" in text_of(value):
        raise Mistake(f"{where}: {name} is {value!r}; one value is wanted, several belong into [grid]")
    if name in OWN_OPTIONS:
        raise Mistake(f"{where}: {name} is set by submit.py" + ("; give config files in [sweep]" if name == "config" else ""))
    return value


def table(data, where, name):
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise Mistake(f"{where}: {name} is no table; write it as [{name}]")
    return found


def read_data(path):
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Mistake(f"{path} is no TOML: {error}") from error
    for name in data:
        if name not in TABLES:
            raise Mistake(f"{path}: unknown table [{name}]; there are {', '.join(sorted(TABLES))}")
    for name, value in table(data, path, "sweep").items():
        kind = SETTINGS.get(name)
        if kind is None:
            raise Mistake(f"{path}: unknown {name} in [sweep]; there are {', '.join(SETTINGS)}")
        if not isinstance(value, kind) or (kind is list and not all(isinstance(each, str) for each in value)):
            raise Mistake(f"{path}: {name} in [sweep] is {value!r}; a {'list of texts' if kind is list else kind.__name__} is wanted")
    return data


def axis_of(path, where, name, values):
    """The values of one axis of the grid, each as the options that it sets: its own name, or those of a table."""
    if not isinstance(values, list) or not values:
        raise Mistake(f"{path}: {name} in {where} is {values!r}; a list of one or more values is wanted")
    settings = [value if isinstance(value, dict) else {name: value} for value in values]
    return [{key: scalar(f"{path}: {where}", key, value) for key, value in each.items()} for each in settings]


def grid_of(data, path, scale):
    """The axes by name; those that [quick.grid] or [full.grid] names too have the values given there."""
    grid = table(data, path, "grid")
    changed = table(table(data, path, scale), f"{path}: [{scale}]", "grid")
    for name in changed:
        if name not in grid:
            raise Mistake(f"{path}: {name} in [{scale}.grid] is not in [grid]")
    return {name: axis_of(path, f"[{scale}.grid]" if name in changed else "[grid]", name, changed.get(name, values))
            for name, values in grid.items()}


def combinations(data, path, scale):
    """Every point of the grid, then the runs of [[runs]], each as (what is special in it, all its options)."""
    common = {name: scalar(f"{path}: [options]", name, value) for name, value in table(data, path, "options").items()}
    grid = grid_of(data, path, scale)
    points = [{k: v for part in parts for k, v in part.items()} for parts in itertools.product(*grid.values())] if grid else []
    extra = data.get("runs", [])
    if not isinstance(extra, list) or not all(isinstance(each, dict) for each in extra):
        raise Mistake(f"{path}: runs is no list of tables; write each as [[runs]]")
    for each in extra:
        points.append({name: scalar(f"{path}: [[runs]]", name, value) for name, value in each.items()})
    if not points:
        raise Mistake(f"{path} has no runs; give a [grid] or [[runs]]")
    return [(point, {**common, **point}) for point in points]


def count_ranks(where, options, config_text):
    """Servers and ranks; the servers may stand in a config file, of which the last one wins, as in the program."""
    in_files = re.findall(r"^\s*servers\s*=\s*(\d+)", "\n".join(config_text), re.MULTILINE)
    servers = options.get("servers", int(in_files[-1]) if in_files else 1)
    given = {name: options.pop(name) for name in COUNTS if name in options}
    for name, value in {**given, "servers": servers}.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise Mistake(f"{where}: {name} is {value!r}; a whole number of 1 or more is wanted")
    if len(given) != 1:
        raise Mistake(f"{where}: give ranks or workers, " + ("not both" if given else "none of them is there"))
    ranks = given.get("ranks", given.get("workers", 0) + servers)
    if ranks <= servers:
        raise Mistake(f"{where}: {ranks} ranks with {servers} servers leave no worker")
    return servers, ranks


def identity_of(run, config_text):
    """Readable, and other for every other option, number of ranks or content of a config file."""
    given = (run.ranks, sorted((name, text_of(value)) for name, value in run.options.items()), config_text)
    readable = "_".join(re.sub(r"[^A-Za-z0-9.+]+", "-", part).strip("-") for part in run.label.split("_"))
    return f"{readable[:60]}_{hashlib.sha256(repr(given).encode()).hexdigest()[:8]}".lstrip("_")


def read_sweep(path, scale):
    data = read_data(path)
    settings = table(data, path, "sweep")
    name = settings.get("name", Path(path).stem) + ("" if scale == "full" else f"-{scale}")
    if not re.fullmatch(r"[\w.+-]+", name):
        raise Mistake(f"{path}: name is '{name}'; letters, digits and . + - _ are possible")
    changes = {key: scalar(f"{path}: [{scale}]", key, value) for key, value in table(data, path, scale).items() if key != "grid"}
    config_text = []
    for each in settings.get("config", []):
        try:
            config_text.append((ROOT / each).read_text(encoding="utf-8"))
        except OSError as error:
            raise Mistake(f"{path}: config {each} cannot be read: {error.strerror}") from error
    runs = []
    for point, options in combinations(data, path, scale):
        options = {**options, **changes}
        label = "_".join(f"{key}-{text_of(value)}" for key, value in point.items() if key not in changes)
        servers, ranks = count_ranks(f"{path}: {label or 'run'}", options, config_text)
        run = Run(label, servers, ranks, options)
        run.arguments = [f"--config={each}" for each in settings.get("config", [])]
        run.arguments += [f"--{key}={text_of(value)}" for key, value in options.items()]
        run.folder = results() / name / identity_of(run, config_text)
        if run.folder in {each.folder for each in runs}:
            if not changes:
                raise Mistake(f"{path}: two runs are the same: {label}; make them differ, by seed for instance")
            continue  # --scale has made two of them equal
        runs.append(run)
    sbatch = {key: text_of(scalar(f"{path}: [sbatch]", key, value)) for key, value in table(data, path, "sbatch").items()}
    for key in set(sbatch) & {"array", "ntasks", "output"}:
        raise Mistake(f"{path}: {key} in [sbatch] is set by submit.py")
    sweep = Sweep(name, runs, sbatch, settings.get("parallel", 0))
    sweep.command = settings.get("command", sweep.command)
    return sweep


# --- The state of a run -------------------------------------------------------------------------------------------------
@functools.lru_cache
def site(name, default):
    """A setting of jobs/env.sh; the environment wins, as it does there."""
    script = f'. "{ROOT}/jobs/env.sh" && printf %s "${{{name}:-}}"'
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=ROOT)
    return found.stdout or default


def results():
    if not hasattr(results, "folder"):
        results.folder = ROOT / site("FLUENTPS_RESULTS", "results")
    return results.folder


def build():
    return site("FLUENTPS_BUILD", "build")


def trace_is_closed(folder):
    """Whether every rank has closed its trace; fluentps-trace looks for the attribute `done` of each."""
    command = [ROOT / build() / "bin" / "fluentps-trace", "info", folder]
    found = subprocess.run([*shlex.split(site("FLUENTPS_PREFIX", "")), *map(str, command)], capture_output=True, text=True)
    ranks = [line.split() for line in found.stdout.splitlines() if re.match(r"\s*\d+\s+(server|worker) \d", line)]
    return found.returncode == 0 and bool(ranks) and all(words[-1] == "closed" for words in ranks)


def state_of(run):
    """new, done, failed, or begun: it runs, waits for more time, or was killed together with its script."""
    parts = sorted(int(each.name.split("-")[1]) for each in run.folder.glob("command-*"))
    if not parts:
        return "new"
    ended = run.folder / f"exit-{parts[-1]}"
    if not ended.exists() or ended.read_text().strip() == str(RESUMABLE):
        return "begun"
    good = ended.read_text().strip() == "0" and trace_is_closed(run.folder / f"part-{parts[-1]}")
    return "done" if good else "failed"


def queued_folders(sweep):
    """Folders of the runs that Slurm still has, from the manifests of the arrays it knows."""
    ids = {each.stem.split("-")[-1]: each for each in (results() / sweep.name).glob("manifest-*.txt")}
    if not ids:
        return set()
    found = subprocess.run(["squeue", "--noheader", "--array", "--me", "--format=%F %K"], capture_output=True, text=True)
    folders = set()
    for line in found.stdout.splitlines():
        job, task = line.split()
        if job in ids and task.isdigit():
            folders.add(ids[job].read_text().splitlines()[int(task)])
    return folders


# --- Running --------------------------------------------------------------------------------------------------------------
def write_options(run):
    run.folder.mkdir(parents=True, exist_ok=True)
    (run.folder / "options").write_text("".join(f"{each}\n" for each in run.arguments), encoding="utf-8")


def largest_array():
    found = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True)
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", found.stdout, re.MULTILINE)
    if found.returncode != 0 or not match:
        raise Mistake(f"Slurm does not answer (scontrol show config): {found.stderr.strip() or found.stdout.strip()}; use --local")
    return max(1, int(match.group(1)))


def submit(sweep, runs, dry_run):
    """An array per number of ranks, cut where the cluster's MaxArraySize asks for it."""
    limit = largest_array()
    runs = sorted(runs, key=lambda run: run.ranks)
    for ranks, group in itertools.groupby(runs, key=lambda run: run.ranks):
        group = list(group)
        for first in range(0, len(group), limit):
            submit_array(sweep, ranks, group[first:first + limit], dry_run)


def submit_array(sweep, ranks, runs, dry_run):
    most = f"%{sweep.parallel}" if sweep.parallel else ""
    folder = results() / sweep.name
    command = ["sbatch", "--parsable", "--hold", f"--array=0-{len(runs) - 1}{most}", f"--ntasks={ranks}",
               f"--output={folder}/slurm-%A_%a.log", *(f"--{key}={value}" for key, value in sweep.sbatch.items()),
               "jobs/sweep.sbatch", str(folder)]
    if dry_run:
        print(shlex.join(command), *(f"  {run.folder}" for run in runs), sep="\n")
        return
    for run in runs:
        write_options(run)
    shell = f'. "{ROOT}/jobs/env.sh" && exec "$@"'
    found = subprocess.run(["bash", "-c", shell, "submit", *command], capture_output=True, text=True, cwd=ROOT)
    if found.returncode != 0:
        raise Mistake(f"sbatch refused: {found.stderr.strip()}")
    job = found.stdout.strip().split(";")[0]
    # The job was held until here: its number is the manifest's name, by which a later call finds what is queued.
    (folder / f"manifest-{job}.txt").write_text("".join(f"{run.folder}\n" for run in runs), encoding="utf-8")
    subprocess.run(["scontrol", "release", job], check=True)
    print(f"job {job}: {len(runs)} runs of {ranks} ranks, manifest {folder}/manifest-{job}.txt")


def local_command(sweep, run, part):
    """The template, then all options that it does not name itself."""
    try:
        head = shlex.split(sweep.command.format(**run.placeholders(), build=build()))
    except (KeyError, ValueError, IndexError) as error:
        raise Mistake(f"command '{sweep.command}': {error} is no option of the run {run.label}") from error
    named = {name.replace("_", "-") for name in re.findall(r"{(\w+)}", sweep.command)}
    arguments = [each for each in run.arguments if each[2:].split("=")[0] not in named]
    return [*head, *arguments, f"--out={run.folder}", f"--run-id=part-{part}"]


def execute(command, log_path):
    """Runs it to its end. Returns the exit code and what it cost; processes that it waited for count."""
    begin = time.monotonic()
    with open(log_path, "ab") as log:
        try:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT)
        except OSError as error:
            raise Mistake(f"{command[0]}: {error.strerror}; see command in [sweep]") from error
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cost = {"wall_s": time.monotonic() - begin, "processor_s": usage.ru_utime + usage.ru_stime, "memory_mib": usage.ru_maxrss / 1024}
    return process.returncode, cost


def run_one(sweep, run):
    """Returns whether it is done, a line that says so, and the processor time."""
    part = len(list(run.folder.glob("command-*")))
    command = local_command(sweep, run, part)
    write_options(run)
    environment = "".join(f"{k}={v}\n" for k, v in sorted(os.environ.items()) if ENVIRONMENT.match(k))
    (run.folder / f"environment-{part}").write_text(environment, encoding="utf-8")
    (run.folder / f"command-{part}").write_text(shlex.join(command) + "\n", encoding="utf-8")
    code, cost = execute(command, run.folder / "log")
    (run.folder / f"cost-{part}").write_text("".join(f"{name} {value:.2f}\n" for name, value in cost.items()), encoding="utf-8")
    (run.folder / f"exit-{part}").write_text(f"{code}\n", encoding="utf-8")
    good = state_of(run) == "done"
    return good, (f"{'done' if good else f'FAILED (exit code {code})'} {cost['wall_s']:.0f} s {run.folder}" +
                  ("" if good else f", see {run.folder}/log")), cost["processor_s"]


def run_here(todo, jobs, dry_run):
    """`todo`: (sweep, run), of which `jobs` run at once."""
    if dry_run:
        for sweep, run in todo:
            print(shlex.join(local_command(sweep, run, len(list(run.folder.glob("command-*"))))))
        return 0
    failed, processor_s, begin = 0, 0.0, time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for number, (good, line, seconds) in enumerate(pool.map(lambda each: run_one(*each), todo), 1):
                failed += not good
                processor_s += seconds
                print(f"{number}/{len(todo)} {line}", flush=True)
        except BaseException:  # a mistake in the sweep, or Ctrl-C: what has not begun does not begin
            pool.shutdown(cancel_futures=True)
            raise
    if todo:
        print(f"{len(todo)} runs, {failed} failed, {time.monotonic() - begin:.0f} s, processor time {processor_s:.0f} s")
    return FAILED if failed else 0


def write_list(sweep):
    """runs.txt names the runs that the sweep has now; its folder may hold others, of earlier options."""
    folder = results() / sweep.name
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "runs.txt.partial"
    partial.write_text("".join(f"{run.folder.name}\n" for run in sweep.runs), encoding="utf-8")
    partial.replace(folder / "runs.txt")


def missing_runs(sweep, options):
    """The runs to do; says how many there are in which state."""
    states = {run.folder: state_of(run) for run in sweep.runs}
    queued = set() if options.local else queued_folders(sweep)
    wanted = [run for run in sweep.runs if states[run.folder] != "done" and str(run.folder) not in queued]
    if options.missing:
        wanted = [run for run in wanted if states[run.folder] != "new"]
    counts = {state: list(states.values()).count(state) for state in ("done", "failed", "begun", "new")}
    print(f"{sweep.name}: {len(sweep.runs)} runs, " + ", ".join(f"{n} {state}" for state, n in counts.items()) +
          f", {len(queued)} in the queue; to do: {len(wanted)}", flush=True)
    return wanted


def main(arguments):
    parser = argparse.ArgumentParser(prog="submit.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", nargs="+", help="sweep files, e.g. configs/sweeps/example.toml")
    parser.add_argument("--dry-run", action="store_true", help="print commands only")
    parser.add_argument("--missing", action="store_true", help="only runs that have begun and are neither done nor queued")
    parser.add_argument("--local", action="store_true", help="run here, with [sweep] command")
    parser.add_argument("--jobs", type=int, default=1, help="with --local: runs at once (default 1)")
    parser.add_argument("--scale", choices=["quick", "full"], default="full",
                        help="the tables of that name change options and grid")
    options = parser.parse_args(arguments)
    try:
        if options.jobs < 1:
            raise Mistake(f"--jobs is {options.jobs}; it must be 1 or more")
        sweeps = [read_sweep(path, options.scale) for path in options.sweep]
        todo = [(sweep, missing_runs(sweep, options)) for sweep in sweeps]
        for sweep in sweeps if not options.dry_run else []:
            write_list(sweep)
        if options.local:
            return run_here([(sweep, run) for sweep, runs in todo for run in runs], options.jobs, options.dry_run)
        for sweep, runs in todo:
            if runs:
                submit(sweep, runs, options.dry_run)
    except Mistake as mistake:
        print(f"submit.py: {mistake}", file=sys.stderr)
        return USAGE
    except FileNotFoundError as error:
        print(f"submit.py: {error.filename} was not found; without Slurm use --local", file=sys.stderr)
        return USAGE
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
