"""Set the environment variables of jobs, so that outputs do not depend on the user's variables.

This module must import only the standard library, because it runs before other imports.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_FIXED = {
    # Order of sets, encoding of files, and no packages from the user's home.
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "PYTHONNOUSERSITE": "1",
    # Messages and formats of other programs, and the encoding of paths in the environment's files.
    "LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8",
    "TZ": "UTC",
    # A notebook's backend cannot be imported elsewhere. The null device is an empty settings file.
    "MPLBACKEND": "Agg",
    "MATPLOTLIBRC": os.devnull,
}
_REMOVED = (
    "PYTHON", "LC_", "LANG",
    # Run by every shell, or change how it runs commands.
    "BASH_ENV", "BASH_FUNC_", "SHELLOPTS", "BASHOPTS", "CDPATH", "POSIXLY_CORRECT",
    "COLUMNS", "LINES", "FORCE_COLOR", "CLICOLOR",
    # Another repository, or other settings of git.
    "GIT_",
    # Other kernels, precision or numbers of threads; Snakemake sets the threads of each rule.
    "OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "VECLIB_", "NUMEXPR_",
    "ATEN_", "ONEDNN_", "DNNL_", "NPY_", "SCIPY_", "SKLEARN_", "XLA_", "CUBLAS_",
    "NVIDIA_TF32_OVERRIDE", "TORCH_", "TORCHDYNAMO_", "TORCHINDUCTOR_", "PYTORCH_JIT",
    # Settings of training, distribution, caches and code that entries and rules decide.
    "ACCELERATE_", "FSDP_", "PARALLELISM_CONFIG_", "RANK", "LOCAL_", "WORLD_SIZE", "MASTER_",
    "TRANSFORMERS_", "SENTENCE_TRANSFORMERS_", "TRUST_REMOTE_CODE", "USE_HUB_KERNELS", "USE_T",
    "SOURCE_DATE_EPOCH", "TEXINPUTS", "TEXMFHOME",
)  # fmt: skip
"""Prefixes of the names of environment variables that can change an output or make a job fail."""
_KEPT = (
    "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED", "PYTHONFAULTHANDLER",
    "TRANSFORMERS_OFFLINE", "TRANSFORMERS_VERBOSITY", "TORCH_HOME",
)  # fmt: skip
"""Variables that are not removed, although their names start with a prefix in `_REMOVED`."""


def reproducible_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of environment variables without the user's values that may affect an output.

    Such variables are removed or have a fixed value in the copy. Variables that only locate
    something (caches, tokens, proxies, GPUs) are kept.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if name in _KEPT or not name.startswith(_REMOVED)
    }
    return {**kept, **_FIXED}


def set_reproducible_environment(library: str | Path) -> None:
    """Remove or fix the environment variables of this process that may affect an output.

    Jobs inherit the environment variables of this process.

    Args:
        library: The only folder from which jobs import packages that are not installed.
    """
    library_path = os.path.abspath(library)  # noqa: PTH100 - keeps symbolic links
    variables = {**reproducible_variables(os.environ), "PYTHONPATH": library_path}
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    # time.tzset() is not called, so that this process still shows the user's time.
    os.environ.update(variables)
