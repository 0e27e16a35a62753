"""The packages are imported inside fixtures and tests: `make test` collects these modules without them."""

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_provider._core.requests.routing import COMPATIBLE_HOSTS
from llm_provider.simulator import Simulator

Run = Callable[..., "subprocess.CompletedProcess[str]"]


PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"


@pytest.fixture
def examples() -> Callable[[str], list[str]]:
    """The Python examples of docs/integrations.md that have a word."""

    def examples_with(word: str) -> list[str]:
        blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        return [block for block in blocks if word in block]

    return examples_with


@pytest.fixture
def run_tool(llm_simulator: Simulator, tmp_path: Path) -> Run:
    """Runs a command of the packages' environment, with folders of its own, against the simulator."""
    folders = {
        "LLM_USER_PATH": str(tmp_path / "llm"),
        "LLM_PROVIDER_CACHE_DIR": str(tmp_path / "cache"),
        "INSPECT_LOG_DIR": str(tmp_path / "logs"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    variables = {**llm_simulator.environment(*COMPATIBLE_HOSTS), **folders}

    def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).parent / command
        return subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
        )

    return run


@pytest.fixture
def dspy(simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package. Its own warnings are errors once it is imported."""
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "dspy"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import dspy
    return dspy


@pytest.fixture
def lm(dspy: Any) -> Any:
    from llm_provider.integrations.dspy import LM

    return LM("gpt-4.1", max_tokens=500)
