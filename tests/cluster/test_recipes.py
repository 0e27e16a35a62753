"""The programs of examples/clusters run, with a row that cannot be answered, and a second run is free."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from llm_provider.simulator import Simulator

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples" / "clusters"


@pytest.mark.parametrize("package", ["daft", "datasets", "pyspark", "dask"])
def test_a_recipe_answers_every_row_once(package: str, llm_simulator: Simulator, tmp_path: Path) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    if package == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    environment = {
        **llm_simulator.environment("openai"),
        "LLM_PROVIDER_CACHE_DIR": str(tmp_path / "cache"),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PYSPARK_PYTHON": sys.executable,
    }
    program = EXAMPLES / f"{package}_rows.py"
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, program], env=environment, capture_output=True, text=True, timeout=400
        )
        assert run.returncode == 0, run.stderr[-3000:]
        rows = run.stdout.split("200 rows, ")
        assert rows[-1].strip() == "1 failed: RequestError", run.stdout
        assert llm_simulator.ledger().requests == 199
