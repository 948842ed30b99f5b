"""Downloads are complete and verified or leave no file, and every raw file can be read."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
import yaml
from support import MIRROR, ROOT, needs_mirror, run_snakemake

from pieline.core import upstream
from pieline.core.errors import UserError
from pieline.core.files import git_blob, write_text
from pieline.core.texts import text_key
from pieline.core.upstream import (
    UpstreamFile,
    copy_file,
    download,
    is_released,
    load_upstream,
)
from pieline.studies.idiolink.datasets.tuples import read_released_tuples
from pieline.studies.idiolink.originals.pairs import read_candidates
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.jam.originals import read_released_originals
from pieline.studies.jam.raw.id10m import read_id10m
from tools import fetch_public

CONTENT = b"the real thing\n" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
BLOB = hashlib.sha1(b"blob 15000\0" + CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "_FIRST_WAIT_SECONDS", 0)


class Handler(BaseHTTPRequestHandler):
    """Server of `/whole` and other content; `faults` are the first replies."""

    faults: list[str]
    ranges: list[str | None]
    content = CONTENT
    tag = '"1"'

    def do_GET(self) -> None:
        fault = self.faults.pop(0) if self.faults else ""
        self.ranges.append(asked := self.headers["Range"])
        if fault.isdecimal():
            self.send_error(int(fault))
            return
        if fault == "changed":
            type(self).content, type(self).tag = CONTENT[::-1], '"2"'
        content = self.content if self.path == "/whole" else b"something else"
        continues = asked and self.headers["If-Range"] == self.tag
        body = content[int(asked[6:-1]) :] if continues else content
        self.send_response(206 if continues else 200)
        self.send_header("Content-Length", str(len(body)))
        if fault != "untagged":
            self.send_header("ETag", self.tag)
        self.end_headers()
        self.wfile.write(body[:700] if fault in ("cut", "untagged") else body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def handler() -> type[Handler]:
    return type("Fresh", (Handler,), {"faults": [], "ranges": []})


@pytest.fixture
def server(handler: type[Handler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_the_first_download_records_an_unknown_digest(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests, output = tmp_path / "digests", tmp_path / "file"
    kept = digests / "x" / "y.tsv.sha256"
    for how in ("recorded as that of", "the same as at", "the same as at"):
        download(UpstreamFile(url=f"{server}/whole"), output, name="x/y.tsv", digests=digests)
        assert kept.read_text() == f"{DIGEST}\n"
        message = f"no digest is known; SHA-256 is {DIGEST}, {how} the first download in {kept}\n"
        assert capsys.readouterr().err.endswith(f"x/y.tsv: {message}")
    output.unlink()
    with pytest.raises(UserError, match=f"expected {DIGEST}; .* since the first download; delete"):
        download(UpstreamFile(url=f"{server}/other"), output, name="x/y.tsv", digests=digests)
    assert not output.exists()
    # A known digest is not recorded.
    known = UpstreamFile(url=f"{server}/whole", sha256=DIGEST)
    download(known, output, name="known", digests=digests)
    assert [path.name for path in digests.rglob("*.sha256")] == ["y.tsv.sha256"]
    assert "no digest" not in capsys.readouterr().err


def test_a_mirror_file_is_checked_or_reported_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "mirror.tsv"
    source.write_bytes(CONTENT)
    for known, count in ({}, 1), ({}, 1), ({"sha256": DIGEST}, 0), ({"git_blob": BLOB}, 0):
        upstream = UpstreamFile(url=None, **known)
        copy_file(source, tmp_path / "file", upstream=upstream, hint="", name="x/y.tsv")
        message = f"x/y.tsv: no digest is known; SHA-256 is {DIGEST}, copied from {source}\n"
        assert capsys.readouterr().err == message * count
    other = UpstreamFile(url=None, git_blob="0" * 40)
    message = (
        rf"mirror\.tsv: Git object is {BLOB}, expected 0{{40}}; replace the file in the mirror"
    )
    with pytest.raises(UserError, match=message):
        copy_file(source, tmp_path / "refused", upstream=other, hint="")
    assert not (tmp_path / "refused").exists()


def test_a_git_object_name_checks_a_download(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests, output = tmp_path / "digests", tmp_path / "file"
    known = {"git_blob": BLOB}
    download(UpstreamFile(url=f"{server}/whole", **known), output, name="file", digests=digests)
    assert output.read_bytes() == CONTENT
    assert "no digest" not in capsys.readouterr().err
    output.unlink()
    message = f"Git object is [0-9a-f]{{40}}, expected {BLOB}; the file changed upstream$"
    with pytest.raises(UserError, match=message):
        download(UpstreamFile(url=f"{server}/other", **known), output, name="f", digests=digests)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"\0", CONTENT, b"x" * (1 << 18) + b"\r\n"])
def test_git_object_names_equal_those_of_git(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    command = ["git", "hash-object", "--no-filters", path]
    assert git_blob(path) == subprocess.check_output(command, text=True).strip()


def test_a_file_is_released_if_all_known_digests_match(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    other = {"sha256": "0" * 64, "git_blob": "0" * 40}
    for known, released in [
        ({"sha256": DIGEST}, True),
        ({"git_blob": BLOB}, True),
        ({"sha256": DIGEST, "git_blob": BLOB}, True),
        ({"sha256": DIGEST, "git_blob": other["git_blob"]}, False),
        ({"sha256": other["sha256"], "git_blob": BLOB}, False),
        ({"git_blob": other["git_blob"]}, False),
        ({}, False),
    ]:
        assert is_released({"x": path}, {"x": UpstreamFile(url=None, **known)}) is released, known
    assert not is_released({"x": path}, {"y": UpstreamFile(url=None, sha256=DIGEST)})


def test_public_files_have_digests_and_are_pinned_to_a_commit() -> None:
    """No commit of ID10M-JAM's variants is known."""
    known = load_upstream(ROOT / "data/upstream.yaml")
    variants = {f"id10m-jam/variants/{language}.json" for language in ("english", "german")}
    assert {name for name, file in known.items() if not file.identity} == {
        *variants,
        "idiots/idioms_sentences.tsv",
    }
    assert all(file.url for file in known.values())
    urls = {name: str(file.url) for name, file in known.items()}
    unpinned = {name for name, url in urls.items() if not re.search("/[0-9a-f]{40}/", url)}
    assert unpinned == variants


@needs_mirror
def test_the_mirror_has_the_public_files_digests() -> None:
    known = load_upstream(ROOT / "data/upstream.yaml")
    paths = {name: MIRROR / name for name in known if (MIRROR / name).exists()}
    tuples = {name for name in paths if "triplets" in name}
    assert tuples == {
        f"idiolink/{split}/triplets_{split}_{texts}.jsonl"
        for split in ("train", "val")
        for texts in ("full", "span")
    }
    assert {name: known[name].mismatch(path) for name, path in paths.items()} == dict.fromkeys(
        paths, ""
    )


@needs_mirror
@pytest.mark.parametrize("split", ["train", "val"])
def test_mined_tuples_of_spans_have_the_same_texts(split: str) -> None:
    """One of the two files is enough, because the queries state their spans."""
    folder = MIRROR / "idiolink" / split
    spans = {
        text_key(query.sentence): query.span for query in read_texts(folder / "queries.json", Query)
    }
    read = [
        [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in (f"triplets_{split}_full.jsonl", f"triplets_{split}_span.jsonl")
    ]
    assert len(read[0]) == len(spans)
    for full, of_span in zip(*read, strict=True):
        assert of_span == full | {"query_span": spans[text_key(full["query"])]}


@pytest.mark.parametrize(
    ("path", "faults", "message"),
    [
        ("/whole", ["cut"] * 99, "cannot download|download ended"),
        ("/other", [], f"SHA-256 is [0-9a-f]{{64}}, expected {DIGEST}; the file changed upstream"),
        ("/absent", ["404"], "HTTP status 404; check the network, or save the file as name"),
        # Nothing listens at this port.
        ("http://127.0.0.1:9/file", [], "cannot download: .*; check the network"),
    ],
)
def test_bad_download_leaves_nothing(
    server: str,
    handler: type[Handler],
    tmp_path: Path,
    path: str,
    faults: list[str],
    message: str,
) -> None:
    url = urljoin(server, path)
    handler.faults[:] = faults
    with pytest.raises(UserError, match=message) as caught:
        download(UpstreamFile(url=url, sha256=DIGEST), tmp_path / "file", name="name")
    assert url in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("faults", "ranges"),
    [
        (["cut", "cut"], [None, "bytes=700-", "bytes=1400-"]),
        (["503", "cut", "429"], [None, None, "bytes=700-", "bytes=700-"]),
        # Without a version of the content, a part of it is of no use.
        (["untagged"], [None, None]),
    ],
)
def test_a_download_is_continued(
    server: str,
    handler: type[Handler],
    tmp_path: Path,
    faults: list[str],
    ranges: list[str | None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    handler.faults[:] = faults
    download(UpstreamFile(url=f"{server}/whole", sha256=DIGEST), tmp_path / "file", name="name")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert handler.ranges == ranges
    assert capfd.readouterr().err.count("name: ") == len(faults)


def test_parts_of_two_versions_are_not_combined(
    server: str, handler: type[Handler], tmp_path: Path
) -> None:
    handler.faults[:] = ["cut", "changed"]
    download(UpstreamFile(url=f"{server}/whole"), tmp_path / "file", name="name")
    assert (tmp_path / "file").read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize(("status", "attempts"), [("502", 5), ("403", 1)])
def test_attempts_end(
    server: str, handler: type[Handler], tmp_path: Path, status: str, attempts: int
) -> None:
    handler.faults[:] = [status] * 9
    with pytest.raises(UserError, match=f"HTTP status {status}"):
        download(UpstreamFile(url=f"{server}/whole"), tmp_path / "file", name="name")
    assert len(handler.ranges) == attempts


def test_a_git_lfs_pointer_is_named(tmp_path: Path) -> None:
    pointer = tmp_path / "dev_english.tsv"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    with pytest.raises(UserError, match=r"dev_english\.tsv: a Git LFS pointer .*`git lfs pull`"):
        copy_file(pointer, tmp_path / "copy", hint="", upstream=UpstreamFile(url=None))
    with pytest.raises(UserError, match=r"dev_english\.tsv: a Git LFS pointer"):
        read_id10m(pointer, split="dev")


def verify_line(project: Path, start: str, *arguments: str) -> str:
    """Return the command of `make verify` with a program."""
    command = ["make", "--dry-run", "--assume-old=.venv/.ready", "verify", *arguments]
    shown = subprocess.check_output(command, cwd=project, text=True).replace("\\\n", " ")
    [line] = [line for line in shown.splitlines() if start in line]
    return line


def test_make_verify_downloads_in_a_fresh_clone(
    server: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MIRROR", "PIELINE_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    listed = {"id10m/test_english.tsv": {"url": f"{server}/whole", "sha256": DIGEST}}
    # Nothing listens at this port.
    closed = {"id10m/test_german.tsv": {"url": "http://127.0.0.1:9/a", "sha256": DIGEST}}
    unknown = {name: {"url": "http://127.0.0.1:9/b"} for name in fetch_public.names()}
    (project / "data/upstream.yaml").write_text(
        yaml.safe_dump(unknown | listed | closed), encoding="utf-8"
    )
    fetch = subprocess.run(
        [sys.executable, *shlex.split(verify_line(project, "tools/fetch_public.py"))[1:]],
        cwd=project, text=True, capture_output=True, check=True,
        env=os.environ | {"PYTHONPATH": str(project / "src")},
    )  # fmt: skip
    (line,) = fetch.stdout.splitlines()
    assert line.startswith("not reachable, so what they decide is not counted: ")
    assert "id10m/test_german.tsv" in line
    assert "id10m/test_english.tsv" not in line
    name = "results/raw/id10m/test_english.tsv"
    command = shlex.split(verify_line(project, ".venv/bin/snakemake "))[1:-1]
    result = run_snakemake(project, *command, name)
    assert result.returncode == 0, result.stderr[-4000:]
    assert (project / "runs/released" / name).read_bytes() == CONTENT
    (project.parent / "shared/mirror").mkdir(parents=True)
    for arguments, folder in ((), "../shared/mirror"), (("MIRROR=other",), "other"):
        line = verify_line(project, "tools/fetch_public.py", *arguments)
        assert line.endswith(f"runs/public --mirror '{folder}'")


def test_public_files_are_linked_downloaded_or_named(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The configuration counts variants only if they are there."""
    mirror, folder = tmp_path / "mirror", tmp_path / "public"
    first, second = fetch_public.VARIANTS
    write_text(mirror / first, "[]")
    known = {
        first: UpstreamFile(url="http://127.0.0.1:9/a"),
        second: UpstreamFile(url=f"{server}/whole", sha256=DIGEST),
        "id10m/changed.tsv": UpstreamFile(url=f"{server}/other", sha256=DIGEST),
        "id10m/closed.tsv": UpstreamFile(url="http://127.0.0.1:9/b"),
    }
    for names, source in ([first], "none"), ([*known], "released"):
        lacking = fetch_public.collect(names, known, folder, mirror=mirror)
        written = yaml.safe_load(fetch_public.configuration(folder))
        assert written == {"mirror": str(folder), "jam": {"variants": {"source": source}}}
    assert lacking == ["id10m/changed.tsv", "id10m/closed.tsv"]
    assert f"SHA-256 is {hashlib.sha256(b'something else').hexdigest()}" in capsys.readouterr().err
    assert (folder / first).resolve() == mirror / first
    assert (folder / second).read_bytes() == CONTENT
    # Downloaded files are kept, and a file of the mirror replaces them.
    assert fetch_public.collect([second], {}, folder, mirror=None) == []
    write_text(mirror / second, "[]")
    fetch_public.collect([second], {}, folder, mirror=mirror)
    assert (folder / second).read_text() == "[]"


def test_file_without_public_url(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no public URL is known; set mirror"):
        download(UpstreamFile(url=None, sha256=DIGEST), tmp_path / "file", name="x/y")


def test_an_invalid_entry_in_the_upstream_list_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "upstream.yaml"
    path.write_text("a/b:\n  url: ftp://example.org\n  sha256: null\n")
    with pytest.raises(UserError, match=r"upstream\.yaml: a/b: url"):
        load_upstream(path)


READERS: dict[str, Callable[[Path], list[Any]]] = {
    "id10m/*.tsv": lambda path: read_id10m(path, split="x"),
    "id10m-jam/*.json": read_released_originals,
    "idiolink/*.csv": read_candidates,
    "idiolink/*/*.json": lambda path: read_texts(
        path, Document if path.stem == "indexes" else Query
    ),
    "idiolink/*/*.jsonl": lambda path: read_released_tuples(
        path,
        read_texts(path.with_name("queries.json"), Query),
        read_texts(path.with_name("indexes.json"), Document),
    ),
}
"""The reader of each file in the mirror."""


@needs_mirror
def test_every_file_of_the_mirror_is_read() -> None:
    paths = {path for path in MIRROR.rglob("*") if path.is_file() and path.name != "SHA256SUMS"}
    assert paths
    for pattern, read in READERS.items():
        for path in MIRROR.glob(pattern):
            assert read(path), path
            paths.remove(path)
    assert not paths, "no reader is meant for these"
