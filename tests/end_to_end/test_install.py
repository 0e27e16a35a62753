"""The README's own lines install the package into an empty environment, and its first example runs there.

It takes a minute for each Python, and pip downloads 50 packages: `make test-install` runs it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from end_to_end.test_readme import README, blocks
from llm_provider.simulator import Simulator
from tools.release import build_distributions

ROOT = README.parent

pytestmark = [pytest.mark.install, pytest.mark.timeout(900)]


def install_lines() -> list[str]:
    """The commands of the README's first block."""
    section = README.read_text(encoding="utf-8").partition("## Install")[2].partition("```\n")[2]
    lines = section.partition("```")[0].splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.strip()]


def interpreter(version: str, environment: Mapping[str, str]) -> str | None:
    """The path of an installed Python; None if there is none."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    options = {**environment, "PYENV_VERSION": version, "UV_PYTHON_DOWNLOADS": "never"}
    completed = subprocess.run(
        [uv, "python", "find", "--no-project", "--system", version],
        env=options, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return completed.stdout.strip() if completed.returncode == 0 else None


def run(command: str | list[str], environment: Mapping[str, str], folder: Path) -> str:
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_the_lines_are_those_of_pip() -> None:
    lines = install_lines()
    assert lines[0] == "pip install llm-provider-call"
    assert "pip install ." in lines
    assert all(re.fullmatch(r"pip install \S+", line) for line in lines)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what would be published: that of a release, or the last commit as it is built now."""
    if named := os.environ.get("LLM_PROVIDER_DISTRIBUTIONS"):
        return Path(named).resolve()
    folder = tmp_path_factory.mktemp("distributions")
    build_distributions(folder)
    return folder


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_first_example_runs_after_the_first_line(
    version: str,
    simulator: Simulator,
    tmp_path: Path,
    users_environment: Mapping[str, str],
    distributions: Path,
) -> None:
    python = interpreter(version, users_environment)
    if python is None:
        released = (
            "LLM_PROVIDER_DISTRIBUTIONS" in os.environ
        )  # which is checked in each Python, or not released
        (pytest.fail if released else pytest.skip)(f"Python {version} is not installed")
    run([python, "-m", "venv", "environment"], users_environment, tmp_path)
    programs = tmp_path / "environment" / "bin"
    path = f"{programs}{os.pathsep}{users_environment['PATH']}"
    published = {"PATH": path, "PIP_FIND_LINKS": str(distributions)}  # not on the index before the release
    clean = {name: value for name, value in users_environment.items() if not name.startswith("PYTHON")}
    (wheel,), (source,) = distributions.glob("*.whl"), distributions.glob("*.tar.gz")
    built = [f"pip install --force-reinstall --no-deps {path}" for path in (wheel, source)]
    for position, line in enumerate([*install_lines(), *built]):
        run(line, {**clean, **published}, ROOT)
        assert run([str(programs / "pip"), "check"], clean, tmp_path).startswith("No broken requirements")
        called = {**{name: value for name, value in os.environ.items() if name in clean}, "PATH": path}
        called |= {name: os.environ[name] for name in os.environ if name not in users_environment}
        called.pop("PYTHONPATH", None)
        example = blocks(README, "python")[0]
        output = run([str(programs / "python"), "-I", "-W", "error", "-c", example], called, tmp_path)
        # The second line asks a new cache only once.
        assert re.match(r"4\n[\d.e-]+ USD for \d+ tokens\n0\.0\n", output), (position, output)


FORK = "diskcache-community==5.8.1"
"""A fork of diskcache with the same files, and a module of another name. Nothing depends on it."""
READ = """
import sys
from llm_provider import Client
from llm_provider.simulator import Simulator
with Simulator() as simulator, Client(cache_dir=sys.argv[1]) as client:
    before = client.cache.verify()
    client.call("gpt-6.1-sol", "Hi", base_url=simulator.url("openai"), api_key="k")
    print(before.entries, bool(before), client.cache.verify().entries)
"""
ALIAS = """
import sys
import diskcache_community
import diskcache_community.core
sys.modules["diskcache"] = diskcache_community
sys.modules["diskcache.core"] = diskcache_community.core
"""
TESTS_OF_THE_CACHE = (
    "tests/_core/store",
    "tests/_features/cache_care",
    "tests/_features/second_level",
    "tests/end_to_end/test_security.py",
)
LAYOUT = """
import contextlib, importlib.metadata, sqlite3, sys
from pathlib import Path
from llm_provider import Client
from llm_provider.simulator import Simulator
with Simulator() as simulator, Client(cache_dir=sys.argv[1]) as client:
    client.call("gpt-6.1-sol", "Hi", base_url=simulator.url("openai"), api_key="k")
for path in sorted(Path(sys.argv[1]).rglob("cache.db")):
    with contextlib.closing(sqlite3.connect(path)) as database:
        for (sql,) in database.execute("SELECT sql FROM sqlite_master ORDER BY name"):
            print(str(sql).replace("'", '"'))  # they quote the words of triggers in two ways
        query = "SELECT key, value FROM Settings WHERE key NOT IN ('count', 'size') ORDER BY key"
        print(database.execute(query).fetchall())
"""


def test_the_cache_works_with_the_fork_of_diskcache(
    tmp_path: Path, users_environment: Mapping[str, str]
) -> None:
    """The tests of the cache in an environment of the same pins with the fork in the place of diskcache."""
    clean = {name: value for name, value in users_environment.items() if not name.startswith("PYTHON")}
    uv, python = Path(sys.executable).with_name("uv"), tmp_path / "environment" / "bin" / "python"
    pins = (ROOT / "constraints" / "with-litellm.txt").read_text(encoding="utf-8")
    others = re.sub(r"^diskcache==.*\n(?: .*\n)*", "", pins, flags=re.MULTILINE)
    assert others != pins
    (tmp_path / "pins.txt").write_text(others, encoding="utf-8")
    install = [str(uv), "pip", "install", "--quiet", "--no-deps", "--python", str(python)]
    run([str(uv), "venv", "--quiet", "--python", sys.executable, str(tmp_path / "environment")], clean, ROOT)
    run([*install, "--require-hashes", "-r", str(tmp_path / "pins.txt")], clean, ROOT)
    run([*install, FORK], clean, ROOT)
    run([*install, "--no-build-isolation", "--editable", "."], clean, ROOT)
    names = run([str(uv), "pip", "freeze", "--python", str(python)], clean, ROOT).splitlines()
    assert [name for name in names if name.startswith("diskcache")] == [FORK]
    (packages,) = tmp_path.glob("environment/lib/python*/site-packages")
    (packages / "diskcache.py").write_text(ALIAS, encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "tests")]
    told = run([str(python), "-m", "pytest", *options, *TESTS_OF_THE_CACHE], clean, ROOT)
    assert re.search(r"\b[1-9]\d\d+ passed", told), told
    programs = {"fork": str(python), "diskcache": sys.executable}
    layouts = [
        run([program, "-c", LAYOUT, str(tmp_path / name)], clean, ROOT) for name, program in programs.items()
    ]
    assert layouts[0] == layouts[1] != ""
    for written, read in (("fork", "diskcache"), ("diskcache", "fork")):
        assert run([programs[read], "-c", READ, str(tmp_path / written)], clean, ROOT) == "1 True 2\n"
