"""The environment variables by which programs find a rehearsal's stand-ins.

In a module of its own: huggingface_hub reads them when it is first imported.
"""

import os
import shlex
import sys
from pathlib import Path


def environment(folder: Path) -> dict[str, str]:
    """Environment variables by which programs find the stand-ins below a folder, and ask no hub.

    Copies of remote code have a folder of their own because transformers keeps them by commit: a
    run with the real weights would load the stand-ins' code.
    """
    place = folder.absolute()
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    packages = str(place / "packages")
    return {
        "HF_HUB_CACHE": str(place / "hub"),
        "HF_HUB_OFFLINE": "1",
        "HF_MODULES_CACHE": str(place / "modules"),
        "PIELINE_VLLM": shlex.join([sys.executable, "-m", "rehearsal.weights.vllm"]),
        "PYTHONPATH": os.pathsep.join([packages, *(part for part in others if part != packages)]),
    }
