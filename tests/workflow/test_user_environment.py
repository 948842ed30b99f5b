"""Outputs do not depend on the environment of the user, and a clone may be in any folder."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, copy_project, run_snakemake, succeed

from pieline.core.environment import reproducible_variables

DISPLAYS = [
    "paper_tables/jam_datasets.csv",
    "paper_tables/figures/idiots_recall_specificity.pdf",
]
TRAINING = "results/training/jam/english/minilm-tagger/seed-5/training.json"
SETTINGS = (
    "text.usetex: True\nfont.size: 20\nfigure.dpi: 60\nbackend: nosuch\naxes.facecolor: red\n"
)


def hostile(folder: Path) -> dict[str, str]:
    """Create files that a user may have, and return variables that a user may have set."""
    (folder / "settings/matplotlib").mkdir(parents=True)
    (folder / "settings/matplotlib/matplotlibrc").write_text(SETTINGS)
    (folder / "modules").mkdir()
    for name in ("json", "numpy", "pydantic", "sitecustomize"):
        (folder / f"modules/{name}.py").write_text("raise SystemExit('shadowed')")
    (folder / "bashrc").write_text("export MPLBACKEND=nosuch PYTHONOPTIMIZE=2; echo noise\n")
    return {
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MATPLOTLIBRC": str(folder / "settings/matplotlib/matplotlibrc"),
        "XDG_CONFIG_HOME": str(folder / "settings"),
        "PYTHONPATH": str(folder / "modules"),
        "PYTHONHASHSEED": "7",
        "PYTHONOPTIMIZE": "2",
        "PYTHONSAFEPATH": "1",
        "PYTHONUTF8": "0",
        "PYTHONWARNINGS": "error",
        "PYTHONIOENCODING": "ascii:strict",
        "LC_ALL": "tr_TR.UTF-8",
        "LANG": "tr_TR.UTF-8",
        "TZ": "Pacific/Kiritimati",
        "BASH_ENV": str(folder / "bashrc"),
        "OMP_NUM_THREADS": "7",
        "OMP_THREAD_LIMIT": "1",
        "MKL_CBWR": "COMPATIBLE",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "NPY_DISABLE_CPU_FEATURES": "AVX2",
        "ACCELERATE_MIXED_PRECISION": "bf16",
        "SENTENCE_TRANSFORMERS_HOME": str(folder),
        "GIT_DIR": str(folder / "nosuch"),
        "COLUMNS": "20",
        "FORCE_COLOR": "1",
        "SOURCE_DATE_EPOCH": "1000000000",
        "TEXINPUTS": str(folder),
    }


def test_tables_figures_and_a_training_have_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    variables = hostile(tmp_path)
    # matplotlib reads a file in the working directory before any other.
    (finished / "matplotlibrc").write_text(SETTINGS)
    made = [path for name in DISPLAYS for path in finished.glob(f"{name.rpartition('.')[0]}.*")]
    made += [path for path in (finished / TRAINING).parent.rglob("*") if path.is_file()]
    assert len(made) > 10
    before = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
    for path in made:
        path.unlink()
    # Only the jobs of these files; none of the tables and figures depends on the training.
    targets = ["--force", "--rerun-triggers", "mtime", "--", *DISPLAYS, TRAINING]
    succeed(finished, "--cores", "2", *targets, environment=variables)
    after = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
    assert [path for path in made if before[path] != after[path]] == []


def test_variables_that_locate_something_are_kept(tmp_path: Path) -> None:
    kept = {
        "HF_HOME": "/data/hub",
        "HF_TOKEN": "token",
        "CUDA_VISIBLE_DEVICES": "1",
        "OPENAI_API_KEY": "key",
        "https_proxy": "http://proxy",
        "PATH": "/bin",
        "TMPDIR": "/scratch",
        "PIELINE_VLLM": "vllm serve",
        "SLURM_CONF": "/etc/slurm.conf",
    }
    result = reproducible_variables(kept | hostile(tmp_path))
    assert kept.items() <= result.items()
    changed = {"MPLBACKEND", "MATPLOTLIBRC", "PYTHONHASHSEED", "PYTHONUTF8", "LC_ALL", "TZ"}
    names = hostile(tmp_path / "again").keys() - changed - {"XDG_CONFIG_HOME"}
    assert names & result.keys() == set()
    for name in changed:
        assert result[name] == reproducible_variables({})[name]


@pytest.mark.full
def test_a_clone_with_its_environment_in_a_folder_with_spaces_and_quotes(tmp_path: Path) -> None:
    """`make` puts the environment into the clone, so that Python's path has the same characters."""
    project = copy_project(tmp_path / "the project's folder & [more] #1")
    (project / ".venv").symlink_to(sys.prefix)
    python = project / ".venv/bin" / Path(sys.executable).name
    assert python.exists()
    result = subprocess.run(
        [python, "-m", "snakemake", "--cores", "1", "paper_tables/idiots_dataset.tex"],
        cwd=project,
        env=os.environ | {"PYTHONPATH": str(project / "src"), "PIELINE_NO_PATCHES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert (project / "paper_tables/idiots_dataset.tex").exists()


@pytest.fixture(scope="module")
def windows_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clone the repository as Git for Windows does."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    folder = tmp_path_factory.mktemp("windows") / "project"
    options = ("-c", "core.autocrlf=true", "-c", "core.eol=crlf")
    command = ["git", *options, "clone", "--quiet", str(ROOT), str(folder)]
    subprocess.run(command, check=True, env=reproducible_variables(os.environ))
    return folder


def test_a_checkout_on_windows_has_the_same_bytes(windows_checkout: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--eol"],
        cwd=windows_checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(listed.stdout.splitlines()) > 500
    assert [line for line in listed.stdout.splitlines() if "w/crlf" in line] == []


def test_a_checkout_on_windows_runs(windows_checkout: Path) -> None:
    succeed(windows_checkout, "-n", "all")


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs Linux")
def test_a_read_only_working_directory(tmp_path: Path) -> None:
    """Not even root can write to this folder."""
    arguments = ("--snakefile", str(ROOT / "Snakefile"), "--directory", "/sys/kernel")
    result = run_snakemake(ROOT, "-n", *arguments, "all")
    assert result.returncode == 2
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert errors == [
        "error: /sys/kernel: Permission denied; check path, permissions and free space"
    ]
    assert "Traceback" not in result.stderr
    assert "NameError" not in result.stderr


@pytest.mark.skipif(
    bool(os.geteuid()) or not shutil.which("setpriv"), reason="needs root and setpriv"
)
@pytest.mark.parametrize("case", ["no name", "no home", "container"])
def test_a_uid_without_a_name_or_a_home(case: str, project: Path) -> None:
    """As with `docker run --user`."""
    variables = {"HOME": str(project), "USER": "me"}
    if case == "no name":
        del variables["USER"]
    elif case == "no home":
        variables["HOME"] = "/proc"
    else:
        lines = (project / "envs/Containerfile").read_text(encoding="utf-8").splitlines()
        words = " ".join(line[4:] for line in lines if line.startswith("ENV ")).split()
        variables = dict(word.split("=", 1) for word in words)
    for path in (project, *project.rglob("*")):
        os.chown(path, 12345, 12345)
    result = subprocess.run(
        ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups",
         # The interpreter may be in the home of root.
         "--inh-caps=+dac_override", "--ambient-caps=+dac_override",
         sys.executable, "-m", "snakemake", "-n", "results/datasets/idiots/sentences.jsonl"],
        cwd=project, text=True, capture_output=True, check=False,
        env=variables | {"PATH": os.environ["PATH"], "PYTHONPATH": str(project / "src")},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    assert (project / ".snakemake/cache").is_dir() == (case == "no home")
