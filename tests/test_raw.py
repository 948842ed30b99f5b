"""Downloads: what arrives is whole and right, or nothing arrives; and every file can be read."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support import MIRROR, needs_mirror

from pieline.core.errors import UserError
from pieline.core.upstream import UpstreamFile, copy_file, download, load_upstream
from pieline.studies.idiolink.datasets.tuples import read_released_tuples
from pieline.studies.idiolink.originals.released_list import read_candidates
from pieline.studies.idiolink.raw.released import read_texts
from pieline.studies.idiolink.records import Document, Query
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.raw.released import read_released_originals

CONTENT = b"the real thing\n" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/absent":
            self.send_error(404)
            return
        body = CONTENT if self.path in {"/whole", "/cut"} else b"something else"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:100] if self.path == "/cut" else body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_whole_download_arrives(server: str, tmp_path: Path) -> None:
    upstream = UpstreamFile(url=f"{server}/whole", sha256=DIGEST)
    download(upstream, tmp_path / "file", name="file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_the_first_download_decides_where_no_digest_is_known(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests, output = tmp_path / "digests", tmp_path / "file"
    kept = digests / "x" / "y.tsv.sha256"
    for how in ("recorded as that of", "the same as at", "the same as at"):
        download(UpstreamFile(url=f"{server}/whole"), output, name="x/y.tsv", digests=digests)
        assert kept.read_text() == f"{DIGEST}\n"
        told = f"no digest is known; SHA-256 is {DIGEST}, {how} the first download in {kept}\n"
        assert capsys.readouterr().err.endswith(f"x/y.tsv: {told}")
    output.unlink()
    with pytest.raises(UserError, match=f"expected {DIGEST}; .* since the first download; delete"):
        download(UpstreamFile(url=f"{server}/other"), output, name="x/y.tsv", digests=digests)
    assert not output.exists()
    # A digest that is known is not recorded.
    known = UpstreamFile(url=f"{server}/whole", sha256=DIGEST)
    download(known, output, name="known", digests=digests)
    assert [path.name for path in digests.rglob("*.sha256")] == ["y.tsv.sha256"]
    assert "no digest" not in capsys.readouterr().err


def test_a_file_of_a_mirror_without_a_digest_is_told_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "mirror.tsv"
    source.write_bytes(CONTENT)
    for expected, told in ((None, 1), (None, 1), (DIGEST, 0)):
        copy_file(source, tmp_path / "file", expected=expected, mend="", name="x/y.tsv")
        said = f"x/y.tsv: no digest is known; SHA-256 is {DIGEST}, copied from {source}\n"
        assert capsys.readouterr().err == said * told


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/cut", "cannot download|download ended"),
        ("/other", f"SHA-256 is [0-9a-f]{{64}}, expected {DIGEST}; the file changed upstream"),
        ("/absent", "HTTP status 404; check the network, or put the file into a folder as name"),
    ],
)
def test_bad_download_leaves_nothing(server: str, tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        download(UpstreamFile(url=server + path, sha256=DIGEST), tmp_path / "file", name="name")
    assert server + path in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_no_network(tmp_path: Path) -> None:
    upstream = UpstreamFile(url="http://127.0.0.1:9/file", sha256=DIGEST)
    with pytest.raises(UserError, match=r"cannot download: .*; check the network"):
        download(upstream, tmp_path / "file", name="name")
    assert list(tmp_path.iterdir()) == []


def test_file_without_public_url(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no public URL is known; name a mirror"):
        download(UpstreamFile(url=None, sha256=DIGEST), tmp_path / "file", name="x/y")


def test_upstream_list_names_a_wrong_entry(tmp_path: Path) -> None:
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
"""The reader that is meant for each file of the mirror."""


@needs_mirror
def test_every_file_of_the_mirror_is_read() -> None:
    paths = {path for path in MIRROR.rglob("*") if path.is_file() and path.name != "SHA256SUMS"}
    assert paths
    for pattern, read in READERS.items():
        for path in MIRROR.glob(pattern):
            assert read(path), path
            paths.remove(path)
    assert not paths, "no reader is meant for these"
