"""A Slurm cluster of four emulated nodes on this machine, for as long as it is asked for.

Every daemon has its own configuration, ports and files below one folder, so an installed Slurm is neither used nor touched.
Each node's slurmd lives in namespaces of its own: its ranks see another host name and their own /dev/shm, as on a cluster.
"""
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

NODES = 4
CPUS = 8  # declared, whatever the machine has
GPUS = 4  # too: a name that Slurm counts
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "sinfo", "squeue", "unshare")
ENDED = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}

CONFIGURATION = """\
ClusterName=emulated
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=200000,batch_sched_delay=0,defer_batch=no,bf_interval=1
MpiDefault=none
ReturnToService=2
MaxArraySize={max_array}
MinJobAge=3600
KillWait=5
OverTimeLimit=1
MailProg=/bin/true
{nodes}
PartitionName=main Nodes=n[1-{count}] Default=YES MaxTime=60 State=UP
"""


class Unavailable(Exception):
    """Slurm cannot be started here; the text says why."""


def free_ports(count):
    """Taken from below the range that the system hands out itself."""
    found = []
    for port in range(17000 + os.getpid() % 4000, 32000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise Unavailable("no free ports between 17000 and 32000")


class Cluster:
    def __init__(self, folder, max_array=1000):
        missing = [each for each in PROGRAMS if shutil.which(each) is None and not Path("/usr/sbin", each).exists()]
        if missing:
            raise Unavailable(f"{', '.join(missing)} not found; apt-get install slurm-wlm munge, or make slurm-deps")
        if os.geteuid() != 0:
            raise Unavailable("slurmd needs root")
        self.folder = Path(folder)
        self.daemons = []
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        try:
            self._configure(max_array)
            self._start()
        except BaseException:
            self.stop()
            raise

    def _configure(self, max_array):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        ports = free_ports(NODES + 1)
        nodes = "\n".join(f"NodeName=n{k} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={ports[k]} CPUs={CPUS} "
                          f"RealMemory=64000 Gres=gpu:{GPUS} Feature={'big' if k == 1 else 'small'} State=UNKNOWN" for k in range(1, NODES + 1))
        text = CONFIGURATION.format(host=socket.gethostname(), ports=ports, folder=self.folder, nodes=nodes, count=NODES,
                                    max_array=max_array)
        (self.folder / "slurm.conf").write_text(text, encoding="utf-8")
        for k in range(GPUS):
            (self.folder / f"gpu{k}").touch()
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/gpu[0-{GPUS - 1}]\n", encoding="utf-8")
        # Slurm's PMIx names its folders by job only: four nodes need a place each, mounted in _start.
        (self.folder / "pmix").mkdir()
        (self.folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={self.folder}/pmix\n", encoding="utf-8")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)

    def _daemon(self, name, *command):
        log = open(self.folder / f"{name}.out", "wb")
        environment = {**os.environ, **self.environment, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        process = subprocess.Popen([str(each) for each in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                   env=environment, cwd=self.folder)
        self.daemons.append((name, process))

    def _start(self):
        at = self.folder
        self._daemon("munged", "munged", "--foreground", "--force", f"--socket={at}/munge.socket", f"--key-file={at}/munge.key",
                     f"--pid-file={at}/munge.pid", f"--log-file={at}/munge.log", f"--seed-file={at}/munge.seed")
        self._until(lambda: (at / "munge.socket").exists(), "munged made no socket", 10)
        self._daemon("slurmctld", "slurmctld", "-D")
        for k in range(1, NODES + 1):
            (at / f"spool-n{k}").mkdir()
            inside = (f"mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs {at}/pmix && hostname n{k} && "
                      f"exec slurmd -D -N n{k}")
            self._daemon(f"slurmd-n{k}", "unshare", "--mount", "--uts", "sh", "-c", inside)
        self._until(lambda: self.call("sinfo", "-h", "-o", "%T %D", check=False).stdout.split() == ["idle", str(NODES)],
                    "the nodes did not become idle", 30)

    def _until(self, condition, complaint, timeout_s):
        deadline = time.time() + timeout_s
        while not condition():
            dead = [name for name, process in self.daemons if process.poll() is not None]
            if dead or time.time() > deadline:
                logs = "\n".join(self.read(f"{name}.out")[-500:] for name in dead or [n for n, _ in self.daemons])
                raise Unavailable(f"{complaint}{', ended: ' + ' '.join(dead) if dead else ''}: {logs}")
            time.sleep(0.2)

    def read(self, name):
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self):
        """Jobs first, then exactly the daemons that were started here."""
        if len(self.daemons) > 2:
            self.call("scancel", "--user=root", check=False)
            deadline = time.time() + 15
            while time.time() < deadline and self.call("squeue", "-h", "-t", "R,CG", check=False).stdout.strip():
                time.sleep(0.2)
        for _, process in reversed(self.daemons):
            process.terminate()
        for _, process in reversed(self.daemons):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.daemons = []

    def call(self, *command, check=True, env=None, cwd=None, timeout=60):
        result = subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=timeout, cwd=cwd,
                                env={**os.environ, **self.environment, **(env or {})})
        if check:
            assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
        return result

    def job(self, number):
        """What scontrol says of a job, or of one task of an array (123_4)."""
        text = self.call("scontrol", "show", "job", "-o", number).stdout.splitlines()[0]
        return dict(each.split("=", 1) for each in text.split() if "=" in each)

    def wait(self, number, timeout_s=60):
        """Until a job has ended; returns what scontrol says of it."""
        deadline = time.time() + timeout_s
        while True:
            job = self.job(number)
            if job["JobState"] in ENDED:
                return job
            assert time.time() < deadline, f"job {number} is still {job['JobState']} ({job.get('Reason')})"
            time.sleep(0.3)
