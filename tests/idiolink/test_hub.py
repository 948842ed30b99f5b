"""Weights from a stand-in for the Hub: listing, downloading, and loading from the cache."""

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from run_script import run_script
from support import ROOT
from tiny_models import SENTENCES, save_tiny, tiny_entry

from pieline.cli import command
from pieline.config import load_config
from pieline.core.errors import UserError
from pieline.core.yamls import read_yaml
from pieline.models import hub as hub_module
from pieline.models.adding import add_model
from pieline.models.embedder import EmbedderEntry
from pieline.models.fetching import (
    RequiredCheckpoint,
    fetch,
    obstacles,
    pin_commits,
    required_checkpoints,
    summary,
)
from pieline.models.hub import HubCheckpoint
from pieline.models.reference import entry_deviations
from pieline.models.registry import load_registry
from pieline.studies.idiolink.predictions.embedding import embed_documents
from pieline.studies.idiolink.predictions.encoders import (
    load_encoder,
    weights_digests,
)
from rehearsal.weights.anatomy import Anatomy
from rehearsal.weights.checkpoints import save_checkpoint, save_code

COMMIT = "a" * 40
WEIGHTS = bytes(range(256)) * 4096
FILES = {
    "config.json": b"{}",
    "model.safetensors": WEIGHTS,
    "1_Pooling/config.json": b"{ }",
    "pytorch_model.bin": b"pickle",
    "onnx/model.onnx": b"onnx",
    "README.md": b"text",
}
LOADED = {"config.json", "model.safetensors", "1_Pooling/config.json"}
GOOD_TOKEN = "hf_accepted"


@dataclass
class Hub:
    """Stand-in with files by repository, and the requests that it received."""

    address: str = ""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    breaks: set[str] = field(default_factory=set)
    """Files whose download always fails halfway."""
    failures: int = 0
    """Number of next downloads that the server answers with status 503."""
    asked: list[str] = field(default_factory=list)

    def publish(self, name: str, folder: Path) -> None:
        self.files[name] = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }


class Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        self.hub.asked.append(self.path)
        parts = self.path.partition("?")[0].strip("/").split("/")
        is_api = parts[0] == "api"
        name = "/".join(parts[2:4] if is_api else parts[:2])
        asked, rest = (parts[4:5], parts[5:]) if is_api else (parts[2:3], parts[3:])
        files = self.hub.files.get(name)
        token = self.headers.get("Authorization", "")
        if files is None:
            self.answer({}, status=401, error="RepoNotFound")
        elif rest and rest[0] not in {COMMIT, "main"}:
            self.answer({}, status=404, error="RevisionNotFound")
        elif (
            asked in (["auth-check"], ["resolve"])
            and name in self.hub.gated
            and (token != f"Bearer {GOOD_TOKEN}")
        ):
            self.answer({}, status=403 if token else 401, error="GatedRepo")
        elif asked == ["resolve"]:
            self.send_file("/".join(rest[1:]), files)
        elif asked == ["tree"]:
            self.answer([
                {"type": "file", "path": path, "size": len(body), "oid": digest(body)}
                for path, body in files.items()
            ])  # fmt: skip
        else:
            siblings = [{"rfilename": path, "size": len(body)} for path, body in files.items()]
            gated = "manual" if name in self.hub.gated else False
            self.answer({"id": name, "sha": COMMIT, "gated": gated, "siblings": siblings})

    do_HEAD = do_GET

    def send_file(self, path: str, files: dict[str, bytes]) -> None:
        if path not in files:
            self.answer({}, status=404, error="EntryNotFound")
            return
        if self.command == "GET" and self.hub.failures:
            self.hub.failures -= 1
            self.answer({}, status=503)
            return
        body = files[path]
        start = int(self.headers.get("Range", "bytes=0-")[6:].split("-")[0])
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{digest(body)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(body) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        if self.command == "GET":
            is_cut = path in self.hub.breaks
            self.wfile.write(body[start : len(body) // 2] if is_cut else body[start:])
            self.close_connection = is_cut

    def answer(self, value: Any, *, status: int = 200, error: str = "") -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        if error:
            self.send_header("X-Error-Code", error)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def digest(body: bytes) -> str:
    return hashlib.sha1(body).hexdigest()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    stand_in = Hub(files={"org/model": dict(FILES)})
    handler = type("OwnHandler", (Handler,), {"hub": stand_in})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        stand_in.address = f"http://127.0.0.1:{server.server_port}"
        use_hub(monkeypatch, stand_in.address)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        monkeypatch.setenv("HF_TOKEN", "")
        yield stand_in
        server.shutdown()


def use_hub(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    use_hub(monkeypatch, "http://127.0.0.1:9")


def entry(name: str = "org/model", **fields: Any) -> EmbedderEntry:
    hub_fields = {"source": "hub", "path": None, "checkpoint": name, "revision": COMMIT}
    return tiny_entry(Path(), **hub_fields | fields)


def fetched(*entries: Any) -> list[RequiredCheckpoint]:
    """Download all files of the entries, and return the checkpoints that are then listed."""
    named = {f"model-{number}": item for number, item in enumerate(entries)}
    list(fetch(required_checkpoints(named)))
    return required_checkpoints(named)


def snapshot_files(tmp_path: Path) -> set[str]:
    folder = tmp_path / "hub/models--org--model/snapshots" / COMMIT
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


class TestFiles:
    @pytest.mark.parametrize(
        ("checkpoint", "left_out"),
        [
            (HubCheckpoint("x"), {"pytorch_model.bin", "model-00001-of-00002.safetensors"}),
            (HubCheckpoint("x", pickled=True), {"model.safetensors",
                                                "model-00001-of-00002.safetensors"}),
        ],
    )  # fmt: skip
    def test_only_one_format_of_the_weights_is_needed(
        self, checkpoint: HubCheckpoint, left_out: set[str]
    ) -> None:
        loaded = {
            "config.json", "model.safetensors", "model-00001-of-00002.safetensors", "spiece.model",
            "merges.txt", "tokenizer.json", "pytorch_model.bin", "2_Dense/config.json", "code.py",
            "chat_template.jinja",
        }  # fmt: skip
        never = {
            "onnx/model.onnx_data", "model.gguf", "tf_model.h5", "flax_model.msgpack", "README.md",
            "original/consolidated.00.pth", "consolidated.safetensors",
        }  # fmt: skip
        assert set(checkpoint.needed(loaded | never)) == loaded - left_out

    def test_parts_are_needed_without_a_single_file(self) -> None:
        parts = [f"model-0000{part}-of-00002.safetensors" for part in (1, 2)]
        assert HubCheckpoint("x").needed(parts) == parts


class TestListing:
    def test_lists_sizes_without_downloading(self, hub: Hub, tmp_path: Path) -> None:
        [checkpoint] = required_checkpoints({"one": entry(), "other": entry(label="same weights")})
        assert checkpoint.models == ("one", "other")
        assert checkpoint.size == checkpoint.missing == len(WEIGHTS) + 5
        assert checkpoint.state == "to download"
        assert not (tmp_path / "hub").exists()
        assert "1 checkpoint of 0.0 GB; 0.0 GB to download" in summary([checkpoint])

    def test_chat_models_are_listed(self, hub: Hub) -> None:
        chat = SimpleNamespace(
            kind="llm", source="hub", repository="org/model", revision=COMMIT, checkpoint="openai/x"
        )
        gguf = SimpleNamespace(**vars(chat) | {"path": "onnx/model.onnx"})
        repository, one = required_checkpoints(
            {"chat": chat, "gguf": gguf, "api": SimpleNamespace(source="api")}
        )
        assert (repository.size, one.size) == (len(WEIGHTS) + 5, 4)

    def test_a_chat_model_without_a_commit_is_not_downloaded(
        self, hub: Hub, tmp_path: Path
    ) -> None:
        chat = SimpleNamespace(
            kind="llm", source="hub", repository="org/model", label="Chat", parameters="1B"
        )
        [checkpoint] = required_checkpoints({"chat": chat})
        assert (checkpoint.state, checkpoint.missing) == ("no commit is pinned", 2_000_000_000)
        hint = "org/model/commits/main, with all 40 digits, as revision to the entry of Chat"
        with pytest.raises(UserError, match=f"^1 checkpoint not downloaded: org/model: .*{hint}"):
            list(fetch([checkpoint]))
        assert not hub.asked
        assert not (tmp_path / "hub").exists()
        # Another model may use the main branch.
        [checkpoint] = required_checkpoints({"chat": chat, "embedder": entry(revision=None)})
        assert checkpoint.state == "to download"

    def test_without_network_sizes_are_estimated(self, hub: Hub, no_network: None) -> None:
        known = entry(parameters="1.5B", dtype="bfloat16")
        checkpoints = required_checkpoints({"known": known, "unknown": entry("org/other")})
        assert [item.missing for item in checkpoints] == [3_000_000_000, None]
        assert [item.state for item in checkpoints] == ["not in the cache; size estimated",
                                                  "not in the cache"]  # fmt: skip
        assert "2 checkpoints of about 3.0 GB; about 3.0 GB to download" in summary(checkpoints)
        [message] = obstacles(checkpoints)
        assert "127.0.0.1:9 cannot be reached" in message
        with pytest.raises(UserError, match=r"cannot be reached.*; run this on a machine with"):
            list(fetch(checkpoints))

    def test_checkpoints_of_the_full_grid_are_listed(
        self, hub: Hub, no_network: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        raw = read_yaml(ROOT / "config/paper.yaml")
        raw["idiolink"]["leave_out"] = {"bge-multilingual-gemma2": "too large"}
        config = load_config(raw).model_dump_json()
        run_script(
            "weights",
            input={"models": ROOT / "models.yaml"},
            params={"config": config, "root": ROOT, "fetch": False},
        )
        printed = capsys.readouterr().out
        # Embedders, a base model for fine-tuning, taggers, and the model with attention analysis.
        for name in ("gritlm-7b", "e5-base-v2", "gbert", "llama-3.2-3b"):
            assert printed.count(f" {name} ") == 1
        # Models that come with a package, use an API, or are left out.
        for name in ("sbert", "gpt-4o", "bge-multilingual-gemma2"):
            assert f" {name} " not in printed
        assert printed.count("cannot be reached") == 1

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"revision": "b" * 40}, r"org/model at bbbbbbbb: the hub has no such commit; fix"),
            ({"checkpoint": "org/none"}, "org/none at aaaaaaaa: the hub has no such repository"),
            ({"pickled": True, "checkpoint": "org/plain"}, "no pickled weights at this commit"),
        ],
    )
    def test_an_invalid_entry_gives_a_one_line_error(
        self, hub: Hub, fields: dict[str, Any], message: str
    ) -> None:
        hub.files["org/plain"] = {"model.safetensors": b"x"}
        with pytest.raises(UserError, match=f"^1 checkpoint not downloaded: .*{message}"):
            fetched(entry(), entry(**fields))
        assert required_checkpoints({"good": entry()})[0].state == "in the cache"


class TestGated:
    @pytest.mark.parametrize(
        ("token", "reason"),
        [("", "HF_TOKEN is not set"), ("hf_other", "the account of HF_TOKEN has not")],
    )
    def test_links_the_page_and_downloads_the_others(
        self, hub: Hub, token: str, reason: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hub.files["org/gated"], hub.gated = dict(FILES), {"org/gated"}
        monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(UserError) as caught:
            fetched(entry("org/gated"), entry())
        assert f"downloading it requires accepting its license ({reason})" in str(caught.value)
        assert f"accept it at {hub.address}/org/gated and set HF_TOKEN" in str(caught.value)
        assert not token or token not in str(caught.value)
        assert required_checkpoints({"open": entry()})[0].state == "in the cache"

    def test_is_downloaded_after_accepting_the_license(
        self, hub: Hub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hub.gated = {"org/model"}
        monkeypatch.setenv("HF_TOKEN", GOOD_TOKEN)
        assert required_checkpoints({"gated": entry()})[0].state == "to download"
        assert fetched(entry())[0].state == "in the cache"


UNPINNED = """\
model:
  {kind: embedder, label: A, licence: MIT, checkpoint: org/model, source: hub, max_length: 9,
   trained_with_instructions: false, instruction_format: instruct_query, published_as: A}
"""


class TestPinning:
    def test_weights_of_unpinned_entries_are_pinned(self, hub: Hub, tmp_path: Path) -> None:
        models, own = tmp_path / "models.yaml", tmp_path / "models.local.yaml"
        models.write_text(UNPINNED)
        own.write_text(UNPINNED.replace("model:", "mine:").replace("label: A", "label: B"))
        pinned, lines = pin_commits(required_checkpoints(load_registry(models)), models)
        assert lines == [f"model: {own} now pins org/model to {COMMIT}"]
        registry = load_registry(models)
        assert (registry["model"].revision, registry["mine"].revision) == (COMMIT, None)
        assert own.read_text().endswith(f'\nmodel:\n  revision: "{COMMIT}"\n')
        assert list(fetch(pinned)) == [f"1 of 1: org/model at {COMMIT[:8]}, 0.0 GB"]
        [item, unpinned] = required_checkpoints(registry)
        assert (item.state, item.checkpoint.revision) == ("in the cache", COMMIT)
        assert pin_commits([item, unpinned], models)[1] == []
        spec = json.loads(registry["mine"].execution_spec())
        del spec["batch_size"]  # changes no number
        reference = {"A": [spec]}
        assert entry_deviations(registry["model"], reference) == ()

    @pytest.mark.parametrize(
        ("fields", "shipped"),
        [
            ("revision: b, label: Mine", UNPINNED),
            ("label: Mine", UNPINNED),
            ("revision: b", UNPINNED.replace("source: hub", "source: hub, revision: a")),
            ("revision: b", UNPINNED.replace("source: hub", "source: folder, path: x")),
        ],
    )
    def test_entries_can_only_be_pinned(self, tmp_path: Path, fields: str, shipped: str) -> None:
        (tmp_path / "models.yaml").write_text(shipped)
        (tmp_path / "models.local.yaml").write_text(f"model: {{{fields}}}")
        with pytest.raises(UserError, match="also has a model 'model'; rename your model"):
            load_registry(tmp_path / "models.yaml")


class TestAdding:
    def test_an_entry_of_the_hub_pins_the_commit(
        self,
        hub: Hub,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        folder = save_tiny("bert", tmp_path / "saved", pooling="mean")
        prompt = {"prompts": {"query": "Instruct: Find it\nQuery:", "document": ""}}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompt))
        (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
        hub.publish("org/tiny", folder)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "models.yaml").write_text("")
        command(["model", "add", "mine", "org/tiny"])
        [download, score] = capsys.readouterr().out.splitlines()[-2:]
        assert (download.split()[-1], score.split()[-1]) == ("weights", "all")
        added = load_registry("models.yaml")["mine"]
        assert isinstance(added, EmbedderEntry)
        assert (added.label, added.licence, added.revision) == ("tiny", "CC-BY-NC-4.0", COMMIT)
        assert (added.trained_with_instructions, added.overrides) == (True, ("prompts",))
        assert added.instruction_format == "instruct_query_unspaced"
        assert added.parameters is not None
        # The listing with the weights is not in the cache yet: only small files were downloaded.
        assert HubCheckpoint("org/tiny", COMMIT).cached() is None
        assert fetched(added)[0].state == "in the cache"

    def test_an_unknown_repository_is_a_one_line_error(
        self, hub: Hub, no_network: None, tmp_path: Path
    ) -> None:
        (tmp_path / "models.yaml").write_text("")
        with pytest.raises(UserError, match=r"cannot be reached.*; there is no such folder either"):
            add_model("mine", "org/none", {}, tmp_path / "models.yaml")


class TestFetching:
    def test_downloads_the_loaded_files_once(self, hub: Hub, tmp_path: Path) -> None:
        [checkpoint] = fetched(entry())
        assert (checkpoint.state, checkpoint.missing) == ("in the cache", 0)
        assert snapshot_files(tmp_path) == LOADED
        hub.asked.clear()
        assert fetched(entry()) == [checkpoint]
        assert hub.asked == []

    def test_resumes_with_missing_files(
        self, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        hub.breaks = {"model.safetensors"}
        with pytest.raises(UserError, match=r"^org/model at aaaaaaaa: the download was interrupted:"
                                            ".*run the same command again"):  # fmt: skip
            fetched(entry())
        [half] = required_checkpoints({"model": entry()})
        assert half.missing == len(WEIGHTS)
        hub.breaks, hub.asked = set(), []
        assert fetched(entry())[0].state == "in the cache"
        assert {path.rpartition("/")[2] for path in hub.asked if "/resolve/" in path} == {
            "model.safetensors"
        }
        assert (tmp_path / f"hub/models--org--model/snapshots/{COMMIT}/model.safetensors"
                ).read_bytes() == WEIGHTS  # fmt: skip

    def test_errors_of_the_server_are_retried_a_few_times(self, hub: Hub, tmp_path: Path) -> None:
        hub.failures = 2
        assert fetched(entry())[0].state == "in the cache"
        assert hub.failures == 0
        assert snapshot_files(tmp_path) == LOADED

        hub.files["org/other"] = FILES
        hub.failures = 1000
        with pytest.raises(UserError, match=r"the download was interrupted: .*503"):
            fetched(entry("org/other"))

    def test_insufficient_disk_space_is_an_error_before_the_download(
        self, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
        with pytest.raises(UserError, match=r"hub: 0.0 GB to download, 0.0 GB"):
            fetched(entry())
        assert not (tmp_path / "hub").exists()

    def test_insufficient_quota_is_an_error_before_the_download(
        self, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = tmp_path / "bin/fallocate"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho 'fallocate: failed: Disk quota exceeded' >&2; exit 1\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        with pytest.raises(UserError, match=r"0\.0 GB to download: Disk quota exceeded"):
            fetched(entry())
        assert not (tmp_path / "hub").exists()


class TestLoading:
    def test_without_network_a_one_line_error_names_the_command(
        self, hub: Hub, no_network: None
    ) -> None:
        with pytest.raises(UserError) as caught:
            load_encoder(entry(), device="cpu")
        for part in ("org/model at aaaaaaaa", "cannot be reached", "`snakemake --cores 1 weights`"):
            assert part in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_an_unresponsive_hub_times_out(self, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
        released = threading.Event()
        monkeypatch.setattr(HubCheckpoint, "_dry_run", lambda *arguments: released.wait())
        monkeypatch.setattr(hub_module, "HUB_TIMEOUT_S", 0.1)
        with pytest.raises(UserError, match=r"cannot be reached \(no answer in 0.1 s\)"):
            entry_checkpoint().snapshot()
        released.set()

    def test_offline_mode_is_respected(self, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(UserError, match=r"incomplete in .*, and HF_HUB_OFFLINE is set; run"):
            load_encoder(entry(), device="cpu")
        assert hub.asked == []

    @pytest.mark.parametrize("revision", [COMMIT, None])
    def test_complete_snapshots_are_loaded_without_a_request(
        self, hub: Hub, revision: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = save_tiny("bert", tmp_path / "bert", pooling="cls")
        (folder / "1_Pooling/pytorch_model.bin").write_bytes(b"not fetched")
        hub.publish("org/model", folder)
        expected = vectors(tiny_entry(folder))
        # The first job downloads the weights if allowed; later jobs, on any node, send no requests.
        assert np.array_equal(vectors(entry(revision=revision)), expected)
        hub.asked.clear()
        assert np.array_equal(vectors(entry(revision=revision)), expected)
        assert hub.asked == []
        listing = HubCheckpoint("org/model", revision).cached()
        assert listing is not None
        assert listing.commit == COMMIT
        assert weights_digests(entry()) == {}

    def test_remote_code_of_another_repository_is_included(
        self, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        anatomy, code = Anatomy("nomic", "mean"), tmp_path / "nomic-code"
        save_code(code)
        local = save_checkpoint(anatomy, tmp_path / "local")
        expected = vectors(tiny_entry(local, trust_remote_code=True, pooling="mean"))
        folder = save_checkpoint(replace(anatomy, code_in="org/code"), tmp_path / "nomic")
        hub.publish("org/model", folder)
        hub.publish("org/code", code)
        remote = entry(trust_remote_code=True, pooling="mean", code_revision=COMMIT)
        checkpoints = fetched(remote)
        assert [(item.checkpoint.repository, item.models) for item in checkpoints] == [
            ("org/model", ("model-0",)), ("org/code", ("model-0",)),
        ]  # fmt: skip
        hub.asked.clear()
        monkeypatch.setattr(
            "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules")
        )
        assert np.array_equal(vectors(remote), expected)
        assert hub.asked == []

    def test_a_snapshot_downloaded_by_another_program_is_accepted(
        self, hub: Hub, tmp_path: Path, no_network: None
    ) -> None:
        """Such a snapshot has no list of files, so its completeness is unknown."""
        folder = tmp_path / "hub/models--org--model/snapshots" / COMMIT
        save_tiny("bert", folder)
        assert len(vectors(entry(pooling="mean"))) == len(SENTENCES)


def entry_checkpoint() -> HubCheckpoint:
    return HubCheckpoint("org/model", COMMIT)


def vectors(model: EmbedderEntry) -> Any:
    return embed_documents(
        load_encoder(model, device="cpu"), SENTENCES, batch_size=3, progress=False
    )
