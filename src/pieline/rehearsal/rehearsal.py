"""A rehearsal: the configuration, the environment and the programs that put stand-ins in place."""

import atexit
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pieline.config import Config, RehearsalSettings
from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_text, sha256, write_text
from pieline.llm import guard
from pieline.models.llm import LLMEntry
from pieline.models.registry import Registry
from pieline.rehearsal.corpora import write_corpora
from pieline.rehearsal.interpreter import write_command
from pieline.rehearsal.providers import BASES
from pieline.rehearsal.weights import write_weights

_READY_WITHIN_S = 60.0


class Rehearsal:
    """Stand-ins of a run, and the run's configuration with them.

    Args:
        settings: the section `rehearsal` of the configuration.
        root: folder of the project, as seen from the working directory.
        mirror: folder of real files, which take the place of those made.
        folder: of the stand-ins, in the working directory.
    """

    def __init__(
        self,
        settings: RehearsalSettings,
        root: Path,
        *,
        mirror: str | None,
        folder: Path = Path("standins"),
    ) -> None:
        self.settings = settings
        self.root = root
        self.mirror = mirror
        self.folder = folder

    @property
    def address(self) -> str:
        """Where the providers' stand-in listens.

        One port a working directory, so that every run of a rehearsal is like the one before.
        """
        place = str(self.folder.absolute()).encode()
        port = 20_000 + int.from_bytes(hashlib.sha256(place).digest()[:4], "big") % 12_000
        return f"{self.settings.host}:{port}"

    def applied(self, config: Config) -> Config:
        """The configuration with the stand-ins in the places of data and providers."""
        recordings = os.path.relpath("recordings", self.root)
        llm = config.llm.model_copy(
            update={
                "api_bases": {
                    provider: f"http://{self.address}{path}" for provider, path in BASES.items()
                },
                "recordings_folder": Path(recordings),
            }
        )
        return config.model_copy(
            update={"data": "released", "mirror": str(self.folder / "mirror"), "llm": llm}
        )

    def environment(self, registry: Registry) -> dict[str, str]:
        """Variables under which jobs find the stand-ins, and no real key."""
        keys = {
            entry.api_key_env
            for entry in registry.values()
            if isinstance(entry, LLMEntry) and entry.api_key_env
        }
        return dict.fromkeys(sorted(keys), "rehearsal") | {
            "HF_HUB_CACHE": str((self.folder / "hub").absolute()),
            "HF_HUB_OFFLINE": "1",
            "PIELINE_REHEARSAL_SERVER": self.address,
            "PATH": self._before("bin", "PATH"),
            "PYTHONPATH": self._before("packages", "PYTHONPATH"),
        }

    def _before(self, name: str, variable: str) -> str:
        """A folder of the stand-ins before all others of a search path."""
        first = str((self.folder / name).absolute())
        others = [part for part in os.environ.get(variable, "").split(os.pathsep) if part != first]
        return os.pathsep.join([first, *others])

    def prepare(self, registry: Registry) -> None:
        """Make corpora and weights, unless they are there as these settings want them."""
        wanted = canonical_json(
            {
                "size": self.settings.size,
                "seed": self.settings.seed,
                "models": sha256(self.root / "models.yaml"),
                "upstream": sha256(self.root / "data" / "upstream.yaml"),
                "mirror": self.mirror and str(Path(self.mirror).absolute()),
                "code": _digest_of(Path(__file__).parent),
            }
        )
        made = self.folder / "made.json"
        if made.exists() and read_text(made) == wanted:
            return
        print(
            f"rehearsal: making corpora and weights in {self.folder} ({self.settings.size} size)",
            file=sys.stderr,
            flush=True,
        )
        for name in ("mirror", "hub", "packages", "bin"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        write_corpora(
            self.folder,
            size=self.settings.size,
            seed=self.settings.seed,
            mirror=Path(self.mirror) if self.mirror else None,
        )
        write_weights(self.folder, registry)
        write_text(made, wanted)

    def start(self, config: Config, *, here: bool) -> None:
        """Start the providers' stand-in, and the Python that jobs are forked from.

        Both end with this process, however it ends.

        Args:
            config: as applied.
            here: whether jobs run on this machine and as its children.

        Raises:
            UserError: a server did not start.
        """
        log = Path("logs/rehearsal")
        log.mkdir(parents=True, exist_ok=True)
        given = self.folder / "config.json"
        write_text(given, config.model_dump_json())
        host, port = self.address.rsplit(":", 1)
        providers = ["-m", "pieline.rehearsal.providers", "--state", str(self.folder)]
        providers += ["--config", str(given), "--models", str(self.root / "models.yaml")]
        providers += ["--root", str(self.root), "--host", host, "--port", port]
        server = _guarded(providers, log / "providers.log")
        if here:
            # A socket's name may have but 107 bytes.
            place = Path(tempfile.mkdtemp(prefix="rehearsal-"))
            atexit.register(shutil.rmtree, place, ignore_errors=True)
            write_command(self.folder / "python", place / "socket")
            os.environ["PATH"] = self._before("python", "PATH")
            _guarded(
                ["-m", "pieline.rehearsal.interpreter", str(place / "socket")],
                log / "interpreter.log",
            )
        end = time.monotonic() + _READY_WITHIN_S
        while not _listens(host, int(port)):
            if server.poll() is not None or time.monotonic() > end:
                raise UserError(
                    "the providers' stand-in does not start",
                    where=log / "providers.log",
                    mend="see what it says there",
                )
            time.sleep(0.1)


def _guarded(arguments: list[str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a Python program that ends with this process."""
    reading, writing = os.pipe()
    _HELD.append(writing)
    with log.open("ab") as stream:
        started = subprocess.Popen(
            [sys.executable, guard.__file__, str(reading), sys.executable, *arguments],
            stdout=stream,
            stderr=stream,
            pass_fds=[reading],
        )
    os.close(reading)
    return started


_HELD: list[int] = []
"""What the servers see the end of when this process ends."""


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def _digest_of(folder: Path) -> str:
    """Of all modules below a folder."""
    files = sorted(folder.rglob("*.py"))
    return hashlib.sha256("".join(map(sha256, files)).encode()).hexdigest()
