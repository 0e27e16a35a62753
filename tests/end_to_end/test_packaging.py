"""What is shipped: complete, nothing besides, and working in an empty environment outside this folder."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from email import message_from_bytes
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TABLES = ("model_limits.csv", "prices.csv")


class Built(NamedTuple):
    sdist: Path
    wheel: Path


def uv(*arguments: str | Path, environment: Mapping[str, str]) -> str:
    """Run the uv of this environment and return what it prints."""
    program = shutil.which("uv", path=str(Path(sys.executable).parent))
    assert program is not None, "uv is part of the dependency group `build`; run the tests through make"
    command = [program, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env=dict(environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, users_environment: Mapping[str, str]) -> Built:
    """The sdist of this folder, and the wheel built from that sdist alone."""
    target = tmp_path_factory.mktemp("dist")
    options = ("--no-build-isolation", "--python", sys.executable, "--out-dir", target)
    uv("build", "--quiet", *options, environment=users_environment)
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    return Built(sdist, wheel)


@pytest.fixture(scope="module")
def installed(
    built: Built, tmp_path_factory: pytest.TempPathFactory, users_environment: Mapping[str, str]
) -> Path:
    """The folder of programs of an environment that holds the wheel and what it requires, nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    environment = folder / "environment"
    versions = folder / "versions.txt"
    frozen = uv(
        "pip", "freeze", "--exclude-editable", "--python", sys.executable, environment=users_environment
    )
    versions.write_text(frozen)
    uv("venv", "--quiet", "--python", sys.executable, environment, environment=users_environment)
    python = environment / "bin" / "python"
    options = ("--quiet", "--python", python, "--constraints", versions)
    uv("pip", "install", *options, built.wheel, environment=users_environment)
    return python.parent


@pytest.fixture(scope="module")
def metadata(built: Built) -> Message:
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def run(program: Path, *arguments: str, folder: Path) -> str:
    """Run an installed program in an empty folder; its warnings are errors."""
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [str(program), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_and_its_data(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
        for table in TABLES:
            assert archive.read(f"llm_provider/{table}") == (ROOT / table).read_bytes()
    sources = {
        str(path.relative_to(ROOT / "src"))
        for ending in ("*.py", "*.csv", "*.html", "*.css", "*.js", "*.txt")
        for path in (ROOT / "src").rglob(ending)
    }
    assert sources | {"llm_provider/py.typed", *(f"llm_provider/{table}" for table in TABLES)} == {
        name for name in names if name.startswith("llm_provider/")
    }
    assert {PurePosixPath(name).parts[0] for name in names} == {
        "llm_provider",
        "llm_provider_call-0.1.0.dist-info",
    }
    assert "llm_provider_call-0.1.0.dist-info/licenses/LICENSE" in names


def test_the_sdist_holds_what_a_build_needs(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}
    assert {*TABLES, "pyproject.toml", "README.md", "LICENSE", "src/llm_provider/py.typed"} <= names
    assert {
        name for name in names if name.startswith(("tests", "benchmarks", "tools", ".venv", "constraints"))
    } == {"tools/readme_links.py"}


def test_the_metadata_names_python_and_extras(metadata: Message) -> None:
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT AND BSD-3-Clause"
    assert set(re.findall(r"\]\((.{8})", metadata.get_payload())) == {"https://"}  # beside it are no files
    (picture,) = re.findall(r"!\[.*?\]\((.*?)\)", metadata.get_payload())
    assert picture.endswith("/raw/v0.1.0/docs/images/results-page.png")
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "azure", "bedrock", "dspy", "inspect", "litellm", "llm", "lm-eval", "markdown", "mcp", "otel",
        "parquet", "plot", "ray", "simulator", "valkey", "zstd",
    }  # fmt: skip


def test_the_wheel_prices_a_call_outside_the_repository(installed: Path, tmp_path: Path) -> None:
    program = """
from llm_provider import Usage, __file__, price
assert "site-packages" in __file__, __file__
print(price("gpt-6.1-sol", Usage(input_tokens=1_000)))
"""
    assert float(run(installed / "python", "-I", "-c", program, folder=tmp_path)) == 0.002


def test_the_command_line_starts(installed: Path, tmp_path: Path) -> None:
    assert "ask" in run(installed / "llm-provider", "--help", folder=tmp_path)


def test_the_sdks_are_there_and_the_extras_are_not(installed: Path, tmp_path: Path) -> None:
    program = """
import importlib.util
for name in ("openai", "anthropic", "google.genai", "aiohttp", "httpx2", "h2", "litellm", "granian"):
    if importlib.util.find_spec(name):
        print(name, end=" ")
"""
    names = run(installed / "python", "-I", "-c", program, folder=tmp_path)
    assert names.split() == ["openai", "anthropic", "google.genai", "aiohttp", "httpx2", "h2"]


def test_what_is_no_extra_is_imported_without_them(installed: Path, tmp_path: Path) -> None:
    program = """
import importlib, pkgutil, llm_provider
for module in pkgutil.walk_packages(llm_provider.__path__, "llm_provider."):
    if module.name.split(".")[1] not in ("__main__", "integrations", "pytest_plugin", "simulator"):
        importlib.import_module(module.name)
print(llm_provider.usage(), llm_provider.usage()._repr_html_())
"""
    assert "<table>" in run(installed / "python", "-I", "-c", program, folder=tmp_path)


def test_every_extra_that_is_named_exists() -> None:
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = {
        name for file in files for name in re.findall(r"llm-provider-call\[(\w+)\]", file.read_text("utf-8"))
    }
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {"litellm", "simulator"} < named <= extras.keys()


def test_a_zip_file_of_the_package_says_that_it_must_be_unpacked(tmp_path: Path) -> None:
    root = ROOT / "src"
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        for path in root.glob("llm_provider/**/*.py"):
            archive.write(path, path.relative_to(root))
    done = subprocess.run(
        [sys.executable, "-m", "llm_provider", "--version"],
        env={"PATH": "", "PYTHONPATH": str(tmp_path / "package.zip")}, cwd=tmp_path, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "cannot run from a zip file: unpack it" in done.stderr
