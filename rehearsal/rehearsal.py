"""Configuration and environment of a rehearsal, with stand-ins for data, weights and providers."""

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import get_args

import yaml

from pieline.config import Config, RehearsalSettings
from pieline.core.code import code_digest
from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_text, sha256, write_text
from pieline.core.yamls import read_yaml
from pieline.models.llm import LLMEntry
from pieline.models.registry import Registry, load_registry
from rehearsal.answers.book import Answers
from rehearsal.bill import Fault
from rehearsal.corpora import write_corpora
from rehearsal.formats import api_bases
from rehearsal.providers import FaultProfile, Providers
from rehearsal.weights.standins import common_words, write_weights

FAULTS = 0.005
"""Fraction of requests that get each kind of fault, if faults are enabled."""


class Rehearsal:
    """Rehearsal of a run: its stand-ins and the configuration that uses them.

    Args:
        settings: Section `rehearsal` of the configuration.
        root: Project folder relative to the working directory.
        folder: Folder of the stand-ins, relative to the working directory.
    """

    def __init__(
        self, settings: RehearsalSettings, root: Path, folder: Path = Path("standins")
    ) -> None:
        self.settings = settings
        self.root = root
        self.folder = folder

    @property
    def port(self) -> int:
        """Port of the providers' stand-in.

        The port depends only on the folder's path, so that repeated rehearsals are identical.
        """
        place = str(self.folder.absolute()).encode()
        return 20_000 + int.from_bytes(hashlib.sha256(place).digest()[:4], "big") % 12_000

    @property
    def address(self) -> str:
        """Host and port of the providers' stand-in."""
        return f"127.0.0.1:{self.port}"

    def applied(self, config: Config) -> Config:
        """Return the configuration with data and providers replaced by the stand-ins."""
        recordings = os.path.relpath("recordings", self.root)
        llm = config.llm.model_copy(
            update={
                "api_bases": api_bases(f"http://{self.address}"),
                "recordings_folder": Path(recordings),
            }
        )
        return config.model_copy(
            update={"data": "released", "mirror": str(self.folder / "mirror"), "llm": llm}
        )

    @property
    def models(self) -> Path:
        """Path of the rehearsal's models.yaml, in which every served model has a revision."""
        return self.folder / "models.yaml"

    def environment(self, registry: Registry) -> dict[str, str]:
        """Return environment variables with the stand-in's address and placeholder API keys."""
        keys = {
            entry.api_key_env
            for entry in registry.values()
            if isinstance(entry, LLMEntry) and entry.api_key_env
        }
        return dict.fromkeys(sorted(keys), "rehearsal") | {"PIELINE_REHEARSAL_SERVER": self.address}

    def prepare(self) -> None:
        """Write corpora, weights and `models`, unless they are up to date.

        Entries of models.local.yaml are excluded: a rehearsal runs the papers' grid.
        """
        wanted = canonical_json(
            {
                "size": self.settings.size,
                "seed": self.settings.seed,
                "models": sha256(self.root / "models.yaml"),
                "code": code_digest("rehearsal.corpora", "rehearsal.weights.standins"),
                "prose": [*map(sha256, sorted(Path(__file__).parent.glob("corpora/*.yaml")))],
            }
        )
        made = self.folder / "made.json"
        if made.exists() and read_text(made) == wanted:
            return
        print(
            f"rehearsal: writing corpora and weights to {self.folder} ({self.settings.size} size)",
            file=sys.stderr,
            flush=True,
        )
        shutil.rmtree(self.folder / "mirror", ignore_errors=True)
        write_corpora(self.folder, size=self.settings.size, seed=self.settings.seed)
        entries = read_yaml(self.root / "models.yaml")
        for entry in entries.values():
            # Answers of a served model are recorded only if it has a revision.
            if entry["kind"] == "llm" and entry.get("repository"):
                entry.setdefault("revision", "0" * 40)
        write_text(self.models, yaml.safe_dump(entries, sort_keys=False, allow_unicode=True))
        registry = load_registry(self.models)
        write_weights(self.folder, registry, common_words(self.folder / "mirror"))
        write_text(made, wanted)

    def faults(self, config: Config) -> FaultProfile:
        """Return the latency and fault rates of the providers' stand-in."""
        return FaultProfile(
            seed=self.settings.seed,
            latency_s=self.settings.latency_s,
            rates=dict.fromkeys(get_args(Fault), FAULTS) if self.settings.faults else {},
            max_attempts=config.llm.max_attempts,
        )

    def start(self, config: Config, registry: Registry) -> None:
        """Start the providers' stand-in in a thread that ends with this process.

        Args:
            config: Configuration returned by `applied`.
            registry: Models.

        Raises:
            UserError: The configuration or models.yaml is invalid, or the server cannot listen at
                its address.
        """
        answers = Answers(config.model_dump_json(), self.models, self.root, Path())
        server = Providers(answers.text, registry, self.folder, self.faults(config), self.port)
        try:
            server.__enter__()
        except OSError as error:
            raise UserError(
                f"cannot listen at {self.address}: {error.strerror}",
                where=self.folder,
                hint="stop the other rehearsal in this folder",
            ) from None
