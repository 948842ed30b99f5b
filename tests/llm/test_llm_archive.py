"""Test merging, importing and verifying folders of recordings, and memory limits."""

import io
import os
import resource
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from llm_cases import SOURCE, pack_folder, pair, write

from pieline.cli import command
from pieline.core.errors import UserError
from pieline.llm.archive import (
    import_archive,
    merge,
    recording_files,
    summarize,
    verify,
)
from pieline.llm.recordings import read_answers, read_lines, record, recording

TAMPERED = pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"seed":2', b'"seed":7', "the key is not the digest"),
        (b"sentence 2", b"sentence 9", "the key is not the digest"),
        (b'"sample":0', b'"sample":1', "the key is not the digest"),
        (b"You mark", b"You skip", "the key is not the digest"),
        (b'"answer":{', b'"answer":{"score":1,', r"not an answer \(score: Extra"),
        (b'"answer":{', b'"answer":{"key":"zz",', "not an answer, or its fields include a key"),
        (
            b'"answer":{',
            b'"answer":{"input_tokens":-5,',
            r"not an .* \(input_tokens: Input should be",
        ),
        (b'"text":"yes"', b'"text":7', r"not an answer \(text: Input should be"),
        (b'{"origin":"asked","text":"yes"}', b"null", "not an answer"),
        (b'"sample":0', b'"number":0', "the key is not the digest"),
        (b'"sample":0}}', b'"sample":0}', "not a recording"),
        (b'"sample":0', b'"sample":', "not a recording"),
        (b'"sample":0', b'"sample":NaN', "not a recording"),
    ],
)


def tamper(path: Path, old: bytes, new: bytes) -> int:
    """Change a text in the line of the second question and return the line number."""
    lines = path.read_bytes().split(b"\n")
    (at,) = [number for number, line in enumerate(lines) if b'"seed":2' in line]
    assert old in lines[at]
    # The last occurrence is in the question; a change of the answer breaks no digest.
    lines[at] = new.join(lines[at].rsplit(old, 1))
    path.write_bytes(b"\n".join(lines))
    return at + 1


def pack(archive: Path, *members: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    """Write an archive of these members: (name, content) or the header of a member."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for each in members:
            member, data = each, b""
            if not isinstance(each, tarfile.TarInfo):
                member, data = tarfile.TarInfo(each[0]), each[1]
                member.size = len(data)
            assert isinstance(member, tarfile.TarInfo)
            tar.addfile(member, io.BytesIO(data))
    archive.write_bytes(zstandard.compress(packed.getvalue()))
    return archive


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_merge_keeps_existing_answers_and_reports_conflicts(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    record(ours, [pair(1), pair(2)])
    record(theirs, [pair(2, "no"), pair(3), pair(1)])
    merged = merge(ours, [theirs])[str(theirs)]
    assert (merged.added, merged.conflicts) == (1, (pair(2)[0].key,))
    assert [read_answers(ours)[pair(i)[0].key].text for i in (1, 2, 3)] == ["yes", "yes", "yes"]
    assert merge(ours, [theirs])[str(theirs)].added == 0
    # After git's union merge, lines are sorted again; no answer is removed or used.
    union = tmp_path / "union.jsonl"
    union.write_bytes(ours.read_bytes() + theirs.read_bytes())
    assert ["an earlier line has a different" in problem for problem in verify(union)] == [True]
    with recording(union):
        pass
    lines = [line.value["answer"]["text"] for line in read_lines(union)]
    assert sorted(lines) == ["no", "yes", "yes", "yes"]
    with pytest.raises(UserError, match="an earlier line has a different answer"):
        read_answers(union)


def test_a_source_listed_twice_is_rejected(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "x.jsonl"
    record(source, [pair(1)])
    with pytest.raises(UserError, match=r"a\.jsonl: listed twice"):
        merge(target, [source, source])
    assert not target.exists()


def test_import_of_a_packed_folder(tmp_path: Path) -> None:
    folder, archive = tmp_path / "recordings", tmp_path / "all.tar.zst"
    record(folder / "jam" / "a.jsonl", [pair(i) for i in range(20)])
    record(folder / "b.jsonl", [pair(i, None, finish_reason="length") for i in range(3)])
    with tarfile.open(tmp_path / "all.tar", "w") as tar:
        tar.add(folder / "b.jsonl", "b.jsonl")
        # With a member for the folder, and without locks, as by tar --exclude=.locks.
        tar.add(folder / "jam", "jam", filter=lambda one: None if ".locks" in one.name else one)
    archive.write_bytes(zstandard.compress((tmp_path / "all.tar").read_bytes()))

    other = tmp_path / "other"
    record(other / "b.jsonl", [pair(1, "mine"), pair(9)])
    merged = import_archive(archive, other)
    assert {name: (m.added, len(m.conflicts)) for name, m in merged.items()} == {
        "b.jsonl": (2, 1),
        "jam/a.jsonl": (20, 0),
    }
    assert (other / "jam/a.jsonl").read_bytes() == (folder / "jam/a.jsonl").read_bytes()
    assert read_answers(other / "b.jsonl")[pair(1)[0].key].text == "mine"
    assert recording_files(other) == [other / "b.jsonl", other / "jam" / "a.jsonl"]
    assert summarize(other / "b.jsonl").answers == 4


def test_a_damaged_archive_changes_nothing(tmp_path: Path) -> None:
    folder, archive = tmp_path / "recordings", tmp_path / "a.zst"
    record(folder / "a.jsonl", [pair(1), pair(2)])
    pack_folder(folder, archive)
    content = archive.read_bytes()
    plain = zstandard.decompress(content, max_output_size=1 << 20)
    content = plain.rstrip(b"\0")
    damaged = {
        "cut": content[:-20],
        "no zstd": plain,
        "bytes after it": content + b"abc",
        "more bytes after it": content + b"not a frame of zstd",
        "nothing": b"",
        "nothing packed": zstandard.compress(b""),
        "cut within": zstandard.compress(content[:-20]),
        "cut after a file": zstandard.compress(plain[: -(-len(content) // 512) * 512]),
        "no tar": zstandard.compress(b"{}\n" * 1000),
        "no files": zstandard.compress(bytes(10240)),
        "tampered": zstandard.compress(
            plain.replace(b"yes", b"no!", 1).replace(b"sentence 1", b"s", 1)
        ),
    }
    for what, data in damaged.items():
        archive.write_bytes(data)
        with pytest.raises(UserError, match=r"a\.zst"):
            import_archive(archive, tmp_path / "in")
        assert not (tmp_path / "in" / "a.jsonl").exists(), what


@TAMPERED
def test_a_tampered_line_is_rejected_by_verify_replay_merge_and_import(
    tmp_path: Path, old: bytes, new: bytes, problem: str
) -> None:
    good, bad, target = (tmp_path / f"{name}.jsonl" for name in ("good", "bad", "target"))
    write(good, pair(4))
    write(bad, pair(1), pair(2), pair(3))
    write(target, pair(5))
    assert verify(bad) == []
    at = tamper(bad, old, new)
    (line,) = verify(bad)
    assert line.startswith(f"{bad}:{at}: ")
    before = contents(tmp_path)
    packed = pack(
        tmp_path / "a.zst", ("good.jsonl", good.read_bytes()), ("target.jsonl", bad.read_bytes())
    )
    attempts: dict[str, Callable[[], object]] = {
        rf"bad\.jsonl:{at}: ({problem})": lambda: merge(target, [good, bad]),
        rf"bad.jsonl:[{at}]: ({problem})": lambda: read_answers(bad),
        rf"a\.zst: target\.jsonl:{at}: ({problem})": lambda: import_archive(packed, tmp_path),
    }
    for message, attempt in attempts.items():
        with pytest.raises(UserError, match=message):
            attempt()
    packed.unlink()
    assert contents(tmp_path) == before
    if problem != "not a recording":
        assert read_answers(bad, {pair(1)[0].key}) == {pair(1)[0].key: pair(1)[1]}


REFUSED_NAMES = [
    "../evil.jsonl", "/tmp/evil.jsonl", "a/../../b.jsonl", "x.py", "spending.sqlite",
    ".locks/a.jsonl", ".a.jsonl", "a.jsonl.fresh", "a\\b.jsonl", "A.JSONL/b.jsonl", "a//b.jsonl",
    "a.jsonl/b.jsonl", "./a.jsonl", "", "a\n.jsonl",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_NAMES)
def test_an_archive_contains_only_recordings_within_its_folder(tmp_path: Path, name: str) -> None:
    archive = pack(tmp_path / "a.zst", ("b.jsonl", b""), (name, b""))
    with pytest.raises(UserError, match=r"a\.zst: contains '.*', which is not allowed"):
        import_archive(archive, tmp_path / "in")
    assert not (tmp_path / "in").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_an_archive_contains_only_plain_files(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("a.jsonl")
    member.type, member.linkname = kind, "/etc/passwd"
    archive = pack(tmp_path / "a.zst", member)
    with pytest.raises(UserError, match=r"contains 'a\.jsonl', which is not allowed"):
        import_archive(archive, tmp_path / "in")
    assert not (tmp_path / "in").exists()


@pytest.mark.parametrize(
    ("first", "second"),
    [("a.jsonl", "a.jsonl"), ("a.jsonl", "A.jsonl"), ("\u00e4.jsonl", "A\u0308.jsonl")],
)
def test_a_duplicate_file_name_is_rejected(tmp_path: Path, first: str, second: str) -> None:
    write(tmp_path / "one.jsonl", pair(1))
    lines = (tmp_path / "one.jsonl").read_bytes()
    archive = pack(tmp_path / "a.zst", (first, lines), (second, lines))
    with pytest.raises(UserError, match=rf"a\.zst: contains the file {second} twice"):
        import_archive(archive, tmp_path / "in")
    assert not (tmp_path / "in").exists()


def test_an_archive_of_many_frames_is_read_completely(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    record(folder / "a.jsonl", [pair(i) for i in range(20)])
    pack_folder(folder, tmp_path / "a.zst")
    plain = zstandard.decompress((tmp_path / "a.zst").read_bytes(), max_output_size=1 << 20)
    skipped = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    for cut in (1, 50, len(plain) - 3, len(plain)):
        frames = [zstandard.compress(plain[:cut]), skipped, zstandard.compress(plain[cut:])]
        (tmp_path / "b.zst").write_bytes(b"".join(frames))
        merged = import_archive(tmp_path / "b.zst", tmp_path / f"in {cut}")
        assert merged["a.jsonl"].added == 20


@pytest.mark.full
def test_unpacking_has_a_limit_and_bounded_memory(tmp_path: Path) -> None:
    packer = zstandard.ZstdCompressor(level=1)
    size = 1100 << 20  # more than the memory limit below
    header = tarfile.TarInfo("a.jsonl")
    header.size = size
    comment = tarfile.TarInfo("a.jsonl")
    comment.type, comment.size = tarfile.XHDTYPE, size
    archives = {
        "lines": (header, (b"{" + b" " * 65534 + b"\n") * 16),
        "one line": (header, b"{" * (1 << 20)),
        "no lines": (header, b"\n" * (1 << 20)),
        "a header": (comment, b"1" * (1 << 20)),
    }
    for name, (member, block) in archives.items():
        with (tmp_path / name).open("wb") as raw, packer.stream_writer(raw) as stream:
            stream.write(member.tobuf())
            for _ in range(size >> 20):
                stream.write(block)
            stream.write(bytes(10240))
        assert (tmp_path / name).stat().st_size < 1 << 20

    def imported(name: str, most: str) -> tuple[int, str]:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pieline.cli",
                "recordings",
                "import",
                name,
                "in",
                "--max-size",
                most,
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stderr

    for name, most, what in [
        ("lines", "0.25", "lines: unpacks to more than 0.25 GiB; raise the limit with --max-size"),
        ("lines", "1e-7", "lines: unpacks to more than 107 bytes; raise the limit with --max-size"),
        ("one line", "8", "one line: a.jsonl:1: not a recording"),
        ("no lines", "8", "no lines: a.jsonl:1: not a recording"),
        ("a header", "8", "a header: not a complete .tar.zst file: its headers are too large"),
    ]:
        code, error = imported(name, most)
        assert (code, error.count("\n")) == (2, 1), error
        assert error.startswith(f"error: {what}")
    assert not (tmp_path / "in").exists()


@pytest.mark.parametrize("action", ["import", "verify", "list"])
@pytest.mark.parametrize("path_kind", ["a folder", "missing", "below a file"])
def test_an_unusable_path_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], action: str, path_kind: str
) -> None:
    record(tmp_path / "in" / "a.jsonl", [pair(1)])
    pack_folder(tmp_path / "in", tmp_path / "a.zst")
    (tmp_path / "folder").mkdir()
    bad = {"a folder": "folder", "missing": "nowhere/x", "below a file": "a.zst/x"}[path_kind]
    place, source = str(tmp_path / bad), str(tmp_path / "in")
    before = contents(tmp_path)
    arguments = {
        "import": [[place, source], [str(tmp_path / "a.zst"), str(tmp_path / "a.zst/x")]],
        "verify": [[f"{place}/y"]],
        "list": [[f"{place}/y"]],
    }[action]
    for each in arguments:
        with pytest.raises(SystemExit) as ended:
            command(["recordings", action, *each])
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert (error.startswith("error: "), error.count("\n")) == (True, 1)
        assert str(tmp_path) in error
    assert contents(tmp_path) == before
