"""A real SLURM cluster with accounting on this machine, from the packages in `PACKAGES`.

The cluster listens only on the loopback interface, runs as the calling user, keeps all files in one
folder, and leaves no process behind. It declares two nodes with 8 CPUs, the second with two GPUs
that do not exist. As a program, this module starts the cluster and runs one command:

    python tests/slurm/slurm_cluster.py sinfo
"""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PACKAGES = "slurm-wlm slurmdbd munge mariadb-server-core"
"""Debian's packages of the required programs."""

PROGRAMS = (
    *("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sacct", "scontrol"),
    *("slurmdbd", "mariadbd", "mariadb-install-db", "setpriv"),
)
"""Required programs."""

CONFIGURATION = """\
ClusterName=pieline
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
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
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={ports[3]}
AccountingStoragePass={folder}/munge.socket
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
MailProg=/bin/true
MinJobAge=43200
KillWait=2
GresTypes=gpu
NodeName=node1 NodeAddr=127.0.0.1 NodeHostname=localhost Port={ports[1]} CPUs=8 RealMemory=64000
NodeName=node2 NodeAddr=127.0.0.1 NodeHostname=localhost Port={ports[2]} CPUs=8 RealMemory=64000 \
Gres=gpu:fake:2 Feature=large
PartitionName=cpu Nodes=node1 Default=YES MaxTime=1-00:00:00 State=UP
PartitionName=gpu Nodes=node2 MaxTime=1-00:00:00 State=UP
"""

DATABASE_CONFIGURATION = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[3]}
CommunicationParameters=NoInAddrAny
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""

GRES = """\
AutoDetect=off
NodeName=node2 Name=gpu Type=fake File=/dev/null
NodeName=node2 Name=gpu Type=fake File=/dev/zero
"""


def missing_programs() -> list[str]:
    """Return the required programs that are not installed."""
    return [name for name in PROGRAMS if find_program(name) is None]


def find_program(name: str) -> str | None:
    """Return the path of a program, including folders that are only on root's PATH."""
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"]))


def free_ports(count: int) -> list[int]:
    """Return unused ports of the loopback interface."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class SlurmCluster:
    """Running cluster.

    Attributes:
        folder: Folder of all files of the cluster.
        environment: Environment for commands that use the cluster.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment = os.environ | {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "MYSQL_UNIX_PORT": str(folder / "database.socket"),
        }

    def start(self) -> None:
        """Write the configuration, start the daemons, and wait until both nodes are idle."""
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        for name in ("state", "spool-node1", "spool-node2"):
            (folder / name).mkdir()
        values = {"folder": folder, "ports": free_ports(4), "user": getpass.getuser()}
        (folder / "slurm.conf").write_text(CONFIGURATION.format(**values))
        (folder / "slurmdbd.conf").write_text(DATABASE_CONFIGURATION.format(**values))
        (folder / "slurmdbd.conf").chmod(0o600)
        (folder / "gres.conf").write_text(GRES)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)

        self._launch(
            "munged", "--foreground", "--force", f"--key-file={key}",
            f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed",
        )  # fmt: skip
        self._wait("munged", (folder / "munge.socket").exists)
        self._start_accounting()
        self._launch("slurmctld", "-D", "-f", f"{folder}/slurm.conf")
        for node in ("node1", "node2"):
            self._launch("slurmd", "-D", "-f", f"{folder}/slurm.conf", "-N", node)
        idle = ("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N")
        self._wait("both nodes", lambda: self.output(*idle).split() == ["node1", "node2"])

    def _start_accounting(self) -> None:
        """Start a database, which never waits for the disk, and SLURM's daemon that uses it."""
        options = (
            "--no-defaults", f"--datadir={self.folder}/database", f"--user={getpass.getuser()}",
            "--debug-no-sync", "--innodb-flush-method=nosync", "--innodb-log-file-size=8M",
        )  # fmt: skip
        login = "--auth-root-authentication-method=normal"
        installed = self.run("mariadb-install-db", *options, "--skip-test-db", login)
        assert installed.returncode == 0, installed.stdout + installed.stderr
        place = self.folder / "database.socket"
        self._launch("mariadbd", *options, f"--socket={place}", "--skip-networking")
        self._wait("mariadbd", place.exists)
        self._launch("slurmdbd", "-D")
        clusters = ("sacctmgr", "--noheader", "--readonly", "show", "cluster")
        self._wait("slurmdbd", lambda: self.run(*clusters).returncode == 0)

    def stop(self) -> None:
        """Cancel all jobs, wait until they end, and stop the daemons in reverse order."""
        if self.processes and self.processes[-1].poll() is None:
            self.run("scancel", "--full", "--user", getpass.getuser())
            self._wait("the jobs' end", lambda: not self.output("squeue", "--noheader"))
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def run(self, *command: str, **options: object) -> subprocess.CompletedProcess[str]:
        """Run a command in the environment of the cluster."""
        return subprocess.run(  # type: ignore[call-overload,no-any-return]
            command, env=self.environment, text=True, capture_output=True, check=False, **options
        )

    def output(self, *command: str) -> str:
        """Return the stripped output of a command."""
        return self.run(*command).stdout.strip()

    def jobs(self) -> list[dict[str, str]]:
        """Return the fields of all jobs since the start, from `scontrol show job`."""
        records = self.output("scontrol", "--oneliner", "--all", "show", "job").splitlines()
        return [
            dict(field.split("=", 1) for field in line.split() if "=" in field)
            for line in records
            if line.startswith("JobId=")
        ]

    def steps(self) -> list[str]:
        """Return the log lines of the nodes about each `srun`."""
        logs = (self.folder / f"slurmd-{node}.log" for node in ("node1", "node2"))
        return [
            line for log in logs for line in log.read_text().splitlines() if "launch task" in line
        ]

    def _launch(self, name: str, *arguments: str) -> None:
        log = (self.folder / f"{name}.out").open("ab")
        program = find_program(name)
        assert program, name
        self.processes.append(
            subprocess.Popen(
                # The daemon ends with this process, even if it is killed.
                ["setpriv", "--pdeathsig", "TERM", program, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        )
        log.close()

    def _wait(self, what: str, ready: Callable[[], bool], seconds: float = 180) -> None:
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                raise TimeoutError(f"waited {seconds:.0f} s for {what}:\n{self.logs()}")
            time.sleep(0.1)

    def logs(self) -> str:
        """Return the last log lines of each daemon."""
        parts = []
        for path in sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")]):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            parts.append("\n".join([f"--- {path.name}", *lines]))
        return "\n".join(parts)


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[SlurmCluster]:
    """Context manager that runs a cluster in a folder."""
    cluster = SlurmCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def main(command: Sequence[str]) -> int:
    """Run a command with a cluster and return its exit status; 1 if a program is missing."""
    absent = missing_programs()
    if absent:
        print(f"missing: {', '.join(absent)}; install {PACKAGES}", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        slurm_cluster(Path(folder) / "cluster") as cluster,
    ):
        return subprocess.run(command, env=cluster.environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
