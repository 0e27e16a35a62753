"""Whether packages that people use beside this library fit into one environment with it.

    python -m tools.neighbours

uv resolves each package together with this one, as `pip install` would, and nothing is installed. The table
has the versions of the SDKs that both accept. A package does not fit if there is no resolution, or only one
with an older release of it than it has alone.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parents[1]
PAGE = HERE / "benchmarks" / "results" / "neighbours.md"
UV = HERE / ".venv" / "bin" / "uv"
SDKS = ("anthropic", "google-genai", "openai")
NEIGHBOURS = (
    "agno[anthropic,google]", "aisuite[anthropic,google]", "any-llm-sdk[anthropic,gemini]",
    "autogen-ext[anthropic]", "bespokelabs-curator", "browser-use", "camel-ai", "crewai",
    "crewai[anthropic,google-genai]", "deepeval", "dspy", "google-adk", "haystack-ai", "inspect-ai",
    "instructor[anthropic,google-genai]", "langchain-anthropic", "langchain-google-genai", "langfuse",
    "lighteval", "litellm", "llama-index-llms-anthropic", "llama-index-llms-google-genai",
    "llm-anthropic", "llm-gemini", "lm-eval", "magentic[anthropic]", "marvin", "mem0ai",
    "mirascope[anthropic,google]", "mlflow", "openai-agents", "opik", "outlines[anthropic,gemini]",
    "pydantic-ai", "ragas", "semantic-kernel[anthropic,google]", "smolagents",
    "strands-agents[anthropic,gemini]", "verdict", "weave",
)  # fmt: skip
_LONGEST = 240.0
"""Seconds for a resolution. Where there is none, uv tries one old release after the other."""
HEADER = """\
# Beside other packages

`python -m tools.neighbours` on {day}, for CPython 3.12 on Linux: each package resolved alone and together
with this one. {fits} of {all} fit.

| package | release | beside this library | anthropic | google-genai | openai |
|---|---|---|---|---|---|
"""


def main() -> None:
    """Resolve all, and write the table."""
    rows = list(describe_all())
    fits = sum(row[2] == "the same" for row in rows)
    page = HEADER.format(day=f"{datetime.now(UTC):%Y-%m-%d}", fits=fits, all=len(rows))
    PAGE.write_text(page + "".join(f"| {' | '.join(row)} |\n" for row in rows), encoding="utf-8")


def describe_all() -> Iterator[tuple[str, ...]]:
    """One row for each package."""
    for package in NEIGHBOURS:
        name = package.partition("[")[0]
        alone, together = resolve(package), resolve(package, HERE / "pyproject.toml")
        release = alone.get(name, "none")
        beside = together.get(name, "no resolution")
        sdks = (together.get(sdk, "") for sdk in SDKS)
        row = (package, release, "the same" if beside == release else beside, *sdks)
        sys.stderr.write(" ".join(row) + "\n")
        yield row


def resolve(package: str, *sources: Path) -> dict[str, str]:
    """The versions by name; empty where there is no resolution."""
    options = "--quiet --no-header --no-annotate --python-version 3.12"
    command = [str(UV), "pip", "compile", *options.split(), *map(str, sources), "-"]
    try:
        end = subprocess.run(  # noqa: S603
            command, input=package, capture_output=True, text=True, check=False, timeout=_LONGEST
        )
    except subprocess.TimeoutExpired:
        return {}
    return dict(re.findall(r"^([a-z0-9.-]+)(?:\[.*\])?==(\S+)", end.stdout, re.MULTILINE))


if __name__ == "__main__":
    main()
