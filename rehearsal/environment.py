"""Where a rehearsal's stand-ins lie, as environment variables tell it.

Apart from the rest, since huggingface_hub reads them when it is first imported.
"""

import os
import shlex
from pathlib import Path


def environment(folder: Path) -> dict[str, str]:
    """Environment variables by which programs find the stand-ins below a folder, and ask no hub.

    Copies of remote code have a place of their own because transformers keeps them by commit for
    ever: a run with the true weights would be given the stand-ins' code.
    """
    place = folder.absolute()
    return {
        "HF_HUB_CACHE": str(place / "hub"),
        "HF_HUB_OFFLINE": "1",
        "HF_MODULES_CACHE": str(place / "modules"),
        "PIELINE_VLLM": shlex.join([str(place / "bin/vllm"), "serve"]),
        "PATH": _before(place / "bin", "PATH"),
        "PYTHONPATH": _before(place / "packages", "PYTHONPATH"),
    }


def _before(folder: Path, variable: str) -> str:
    """A folder before all others of a search path."""
    others = os.environ.get(variable, "").split(os.pathsep)
    return os.pathsep.join([str(folder), *(part for part in others if part != str(folder))])
