"""What the system tests share: running programs under mpirun, and looking at what they leave behind."""
import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("FLUENTPS_BUILD", "build")
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@dataclass
class Result:
    code: int
    out: str
    err: str
    seconds: float

    @property
    def text(self):
        return self.out + self.err

    def sentences(self):
        """The program's own messages, without mpirun's."""
        return [line for line in self.err.splitlines() if line.startswith("fluentps")]


def environment(extra=None):
    return {**os.environ, **MPI_ENVIRONMENT, **(extra or {})}


def start(command, env=None, **options):
    """Starts in a process group of its own."""
    return subprocess.Popen([str(each) for each in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            errors="replace", start_new_session=True, env=environment(env), cwd=ROOT, **options)


def end_group(process):
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            return
        time.sleep(1)


def finish(process, timeout):
    begin = time.time()
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end_group(process)
        out, err = process.communicate()
        pytest.fail(f"did not end within {timeout} s\n{out}\n{err}")
    return Result(process.returncode, out, err, time.time() - begin)


def run(command, env=None, timeout=120, **options):
    return finish(start(command, env, **options), timeout)


def mpirun(ranks, *arguments, program="fluentps-train", env=None, timeout=120, options=(), expect=0):
    """Runs build/bin/PROGRAM on RANKS ranks; fails the test where the exit code is another than `expect` (None: any)."""
    result = run(["mpirun", *options, "-np", ranks, BUILD / "bin" / program, *arguments], env, timeout)
    if expect is not None:
        assert result.code == expect, f"exit code {result.code}, expected {expect}\n{result.out}\n{result.err}"
    return result


def trace_tool(*arguments, expect=0, timeout=60):
    result = run([BUILD / "bin" / "fluentps-trace", *arguments], timeout=timeout)
    if expect is not None:
        assert result.code == expect, result.text
    return result


def ranks_of(run_dir, role):
    """Rank groups of a merged run by role, in order of index."""
    file = h5py.File(Path(run_dir) / "run.h5", "r")
    groups = [group for name, group in file.items() if name.startswith("rank-")]
    chosen = [g for g in groups if as_text(g.attrs["role"]) == role]
    return sorted(chosen, key=lambda g: int(as_text(g.attrs["role_index"])))


def as_text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def weights(path):
    """All tensors of a weights file by name."""
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def flat(path):
    return numpy.concatenate([value.ravel() for _, value in sorted(weights(path).items())])


def only_run(out):
    runs = [each for each in Path(out).iterdir() if each.is_dir()]
    assert len(runs) == 1, runs
    return runs[0]


def shared_memory():
    """Files in /dev/shm that no living process has mapped: those of runs that go on beside this test are no left-overs."""
    left = set(os.listdir("/dev/shm"))
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            left -= set(re.findall(r" /dev/shm/(\S+)", maps.read_text(errors="replace")))
        except OSError:  # gone meanwhile
            pass
    return left


def of_this_test(pid):
    """False for what another worker of pytest-xdist started."""
    own = os.environ.get("PYTEST_XDIST_WORKER")
    try:
        return own is None or f"PYTEST_XDIST_WORKER={own}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def our_processes():
    """Ranks of ours that are alive."""
    found = subprocess.run(["pgrep", "-f", str(BUILD / "bin" / "fluentps-train")], capture_output=True, text=True).stdout
    return {pid for pid in re.findall(r"\d+", found) if of_this_test(pid)}


def running_rank(rank):
    """Process of this MPI rank of the one run that goes on, or None."""
    for pid in our_processes():
        with contextlib.suppress(OSError):
            if f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                return int(pid)
    return None


def pid_of(rank, deadline_s=15):
    until = time.time() + deadline_s
    while (pid := running_rank(rank)) is None:
        if time.time() > until:
            pytest.fail(f"rank {rank} does not run")
        time.sleep(0.1)
    return pid


def kill_whole_job(process):
    """SIGKILL to all ranks at once. Open MPI's files in /dev/shm stay behind when none of its ranks lives to remove them;
    they are removed here. Returns what mpirun said."""
    ranks, shared = our_processes(), set()
    for act in (lambda pid: shared.update(re.findall(r"/dev/shm/\S+", Path(f"/proc/{pid}/maps").read_text())),
                lambda pid: os.kill(int(pid), signal.SIGKILL)):
        for pid in ranks:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                act(pid)
    result = finish(process, 30)
    for path in shared:
        Path(path).unlink(missing_ok=True)
    return result


@pytest.fixture
def clean_after():
    """Nothing is left in /dev/shm and no rank is left alive."""
    before = shared_memory()
    yield
    deadline = time.time() + 10
    while (shared_memory() - before or our_processes()) and time.time() < deadline:
        time.sleep(0.2)
    assert not shared_memory() - before
    assert not our_processes()
