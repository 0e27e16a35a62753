"""Every Python example of the README and of docs/, and every command of the README, runs on the simulator."""

import builtins
import os
import re
import shlex
import subprocess
import textwrap
from pathlib import Path

import pytest

from llm_provider.simulator import Simulator

README = Path(__file__).parents[2] / "README.md"
PAGES = (README, *sorted((README.parent / "docs").rglob("*.md")))
BLOCK = re.compile(r"(<!-- not run: [^>]*-->\n)?```(python|sh)\n(.*?)```", re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page in one language, without those that say why they are not run."""
    examples = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [code for skipped, named, code in examples if named == language and not skipped]


def page_name(page: Path) -> str:
    """The path of a page without its suffix."""
    return page.relative_to(README.parent).with_suffix("").as_posix().removeprefix("docs/")


EXAMPLES = [pytest.param(code, id=f"{page_name(page)}-{number}")
            for page in PAGES for number, code in enumerate(blocks(page, "python"))]  # fmt: skip


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and mkdocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_there_are_examples() -> None:
    assert len(blocks(README, "python")) >= 5
    assert {page.name for page in PAGES if blocks(page, "python")} >= {"calls.md", "errors.md", "cache.md"}


def run(code: str, warm_python: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*warm_python, "-c", code], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


@pytest.mark.parametrize("code", EXAMPLES)
@pytest.mark.sampled(5)
def test_example(code: str, simulator: Simulator, warm_python: list[str], tmp_path: Path) -> None:
    (directory := tmp_path / "example").mkdir()
    completed = run(code, warm_python, directory)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.strip()


SHOWN = re.compile(
    r"```python\n((?:(?!```).)*)```\n\n(?:```(?:text)?\n(.*?)```|((?:    [^\n]*\n)+))", re.DOTALL
)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        pytest.param(code, fenced or textwrap.dedent(indented), id=f"{page_name(page)}-{number}")
        # Other pages show times, or another run.
        for page in (README.parent / "docs" / "costs.md",)
        for number, (code, fenced, indented) in enumerate(SHOWN.findall(page.read_text(encoding="utf-8")))
    ],
)
def test_an_example_prints_what_its_page_shows(
    code: str, shown: str, simulator: Simulator, warm_python: list[str], tmp_path: Path
) -> None:
    completed = run(code, warm_python, tmp_path)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert shown.strip() in "\n".join(map(str.rstrip, completed.stdout.splitlines()))


@pytest.mark.parametrize("code", blocks(README, "python"))
def test_an_example_of_the_readme_is_short(code: str) -> None:
    assert len([line for line in code.splitlines() if line.strip()]) <= 12


def test_the_commands_of_the_readme(simulator: Simulator, warm_python: list[str], tmp_path: Path) -> None:
    # `test_packaging.py` has the command that is installed.
    program = tmp_path / "bin" / "llm-provider"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(warm_python)} -m llm_provider "$@"\n')
    program.chmod(0o755)
    (tmp_path / "error.log").write_text("disk full\n")
    (tmp_path / "prompts.txt").write_text("What is 1+1?\nWhat is 2+2?\n")
    programs = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    (commands,) = blocks(README, "sh")
    for command in commands.splitlines():
        completed = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": programs},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (completed.returncode, completed.stderr) == (0, ""), command
        assert completed.stdout.strip(), command


def test_the_readme_is_short() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    assert text.count("](") <= 12


def test_every_parameter_is_in_its_table() -> None:
    from llm_provider import BatchParameters

    page = README.parent / "docs" / "calls.md"
    table = page.read_text(encoding="utf-8").partition("## Parameters")[2].partition("\n## ")[0]
    assert set(BatchParameters.__annotations__) <= set(re.findall(r"`([a-z_]+)`", table))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_name_it_mentions_exists(page: Path) -> None:
    import llm_provider

    for name in re.findall(r"`([a-z_]+_many|[A-Z][A-Za-z]+Error)`", page.read_text(encoding="utf-8")):
        assert name in llm_provider.__all__ or hasattr(builtins, name), name


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_file_it_links_to_exists(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"
        assert "--" not in (anchor or ""), "GitHub and mkdocs make different anchors of such a heading"
