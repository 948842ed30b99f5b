r"""Kill a run with all its processes at random times and restart it until it completes.

Usage: python tools/kill_and_resume.py --kills 5 --within 100 --directory runs/rehearsal -- \
    python -m rehearsal --size small -- --cores 2
"""

import argparse
import contextlib
import random
import subprocess
import sys
import time

import psutil


def kill_all(process: psutil.Process) -> int:
    """Kill a process and its descendants with SIGKILL; return their number."""
    process.suspend()  # so that it starts no more processes
    processes = [process, *process.children(recursive=True)]
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(processes, timeout=60)
    return len(processes)


def main() -> int:
    """Run and kill a command repeatedly, then run it to its end; return the last exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--within", type=float, required=True, help="maximum seconds until a kill")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", default=".", help="working directory of snakemake")
    parser.add_argument("command", nargs="+", help="command that runs snakemake, after --")
    arguments = parser.parse_args()
    snakemake = [sys.executable, "-m", "snakemake"]
    moments = random.Random(arguments.seed)  # noqa: S311 - no secret
    for number in range(arguments.kills):
        run = subprocess.Popen(arguments.command)
        moment = moments.uniform(0, arguments.within)
        time.sleep(moment)
        ended = run.poll() is not None
        killed = 0 if ended else kill_all(psutil.Process(run.pid))
        run.wait()
        print(f"kill {number + 1}: {killed} processes after {moment:.0f} s", file=sys.stderr)
        subprocess.run([*snakemake, "--unlock", "--directory", arguments.directory], check=True)
    return subprocess.run(arguments.command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
