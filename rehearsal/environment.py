"""Environment variables that make programs use a rehearsal's stand-ins.

This module must not import huggingface_hub, which reads the variables when it is first imported.
"""

import os
import shlex
import sys
from pathlib import Path


def environment(folder: Path) -> dict[str, str]:
    """Return environment variables that make programs use the stand-ins in a folder, offline.

    Remote code is cached in a separate folder, because transformers identifies it by commit: with
    a shared cache, a run with the real weights would load the stand-ins' code.
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
