"""The packages are imported inside fixtures and tests: `make test` collects these modules without them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_provider._requests.routing import COMPATIBLE_HOSTS
from llm_provider.simulator import Simulator

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_tool(llm_simulator: Simulator, tmp_path: Path) -> Run:
    """Runs a command of the packages' environment, with folders of its own, against the simulator."""
    folders = {
        "LLM_USER_PATH": str(tmp_path / "llm"),
        "LLM_PROVIDER_CACHE_DIR": str(tmp_path / "cache"),
        "INSPECT_LOG_DIR": str(tmp_path / "logs"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    variables = {**os.environ, **llm_simulator.environment(*COMPATIBLE_HOSTS), **folders}

    def run(command: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).parent / command
        return subprocess.run(
            [program, *arguments],
            input=given, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=100,
        )  # fmt: skip

    return run
