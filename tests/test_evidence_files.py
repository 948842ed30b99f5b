"""Evidence files, and cached digests of large files."""

import os
from pathlib import Path

import pytest

from pieline.core import files
from pieline.core.errors import UserError
from pieline.core.evidence import check_evidence, evidence_of, packages_behind, write_evidence
from pieline.core.files import cached_sha256, read_json, sha256


@pytest.fixture
def written_files(tmp_path: Path) -> tuple[Path, Path, str]:
    """Create a source, a file made from it, and evidence; return the three paths."""
    source, output = tmp_path / "source.txt", tmp_path / "output.jsonl"
    source.write_text("source")
    output.write_text("output")
    place = evidence_of(str(output))
    weights = tmp_path / "weights" / "part" / "model"
    weights.parent.mkdir(parents=True)
    weights.write_text("weights")
    write_evidence(place, files=[str(output)], made_from=[str(source), str(tmp_path / "weights")])
    return source, output, place


def test_evidence_paths() -> None:
    assert evidence_of("a/seed-0.run.gz") == evidence_of("a/seed-0.jsonl")
    assert evidence_of("a/{model}/seed-{seed}.jsonl") == "a/{model}/seed-{seed}.evidence.json"


def test_unchanged_files_pass(written_files: tuple[Path, Path, str]) -> None:
    source, output, place = written_files
    check_evidence([place])
    # All files in a folder are included, and temporary files may have been deleted.
    weights = source.parent / "weights" / "part" / "model"
    assert read_json(place)["made_from"] == {str(one): sha256(one) for one in (source, weights)}
    source.unlink()
    check_evidence([str(output), place])


@pytest.mark.parametrize(
    ("which", "content", "problem"),
    [
        (1, "edited", "output.jsonl: was changed after it was written"),
        (1, None, "output.jsonl: is missing"),
        (0, "edited", "source.txt: differs from the file that .*output.jsonl was made from"),
    ],
)
def test_changed_files_are_reported_with_the_command(
    written_files: tuple[Path, Path, str], which: int, content: str | None, problem: str
) -> None:
    path = (written_files[0], written_files[1])[which]
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
        os.utime(path, (0, 0))
    with pytest.raises(UserError, match=rf"{problem}; run snakemake .*--forcerun .*output"):
        check_evidence([written_files[2]])


def test_copied_evidence_is_rejected(written_files: tuple[Path, Path, str]) -> None:
    _, output, place = written_files
    copy = output.with_name("copy.jsonl")
    copy.write_bytes(output.read_bytes())
    Path(evidence_of(str(copy))).write_bytes(Path(place).read_bytes())
    with pytest.raises(UserError, match=r"copy.evidence.json: is a copy of .*output.evidence.json"):
        check_evidence([evidence_of(str(copy))])


def test_packages_of_all_inputs_are_collected(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.jsonl") for name in "abc"]
    for before, path in zip([None, *paths], paths, strict=False):
        Path(path).write_text(path)
        write_evidence(evidence_of(path), files=[path], made_from=[before] if before else [])
    import numpy as np

    packages = packages_behind(paths[2:])
    assert packages.keys() == set(paths)
    assert {versions["numpy"] for versions in packages.values()} == {np.__version__}


def test_a_large_file_is_hashed_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, memory, read = tmp_path / "weights", tmp_path / "memory.json", []
    path.write_bytes(b"first")

    def digest(place: Path) -> str:
        read.append(place)
        return sha256(place)

    monkeypatch.setattr(files, "_LARGE", 4)
    monkeypatch.setattr(files, "sha256", digest)
    first = cached_sha256(path, memory)
    assert cached_sha256(path, memory) == first == sha256(path)
    assert read == [path]
    # Different content with the same length and time stamp.
    state = path.stat()
    path.write_bytes(b"other")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert cached_sha256(path, memory) == sha256(path) != first
    assert read == [path, path]
