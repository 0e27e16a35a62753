"""Which versions of the anthropic and google-genai SDKs pass the tests of the lowest ones.

    make sdk-versions

Each row of `VERSIONS` gets an environment of its own: the packages of constraints/lowest.txt, and the two
SDKs with what they need. The arguments are the tests.
"""

import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parents[1]
PAGE = HERE / "benchmarks" / "results" / "sdk_versions.md"
UV = HERE / ".venv" / "bin" / "uv"
VERSIONS = (
    ("0.84.0", "1.65.0"),
    ("0.93.0", "1.75.0"),
    ("0.125.0", "2.0.0"),
    ("1.0.0", "2.8.0"),
    ("1.17.0", "2.34.0"),
    ("2.0.0", "3.0.0"),
    ("2.14.0", "3.6.1"),
)
HEADER = """\
# Versions of the SDKs

`make sdk-versions` on {day}, CPython {python}: the tests of the lowest versions ({tests}), each row in an
environment of its own.

| anthropic | google-genai | passed | skipped | failed |
|---|---|---:|---:|---:|
"""


def main() -> None:
    """Test each row of `VERSIONS`, and write the table."""
    tests = sys.argv[1:]
    python = sys.version.partition(" ")[0]
    page = HEADER.format(day=f"{datetime.now(UTC):%Y-%m-%d}", python=python, tests=", ".join(tests))
    for anthropic, google in VERSIONS:
        with tempfile.TemporaryDirectory() as folder:
            counts = count_tests(install(Path(folder), anthropic, google), tests)
        page += f"| {anthropic} | {google} | {' | '.join(f'{count:,}' for count in counts)} |\n"
        sys.stderr.write(page.splitlines()[-1] + "\n")
    PAGE.write_text(page, encoding="utf-8")


def install(folder: Path, anthropic: str, google: str) -> Path:
    """An environment with two SDKs. Returns its interpreter."""
    python, pins = folder / "environment" / "bin" / "python", folder / "pins.txt"
    lines = (HERE / "constraints" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    free = ("anthropic", "google-genai", "google-auth", "websockets", "llm-provider-call")
    kept = [line.partition(" \\")[0] for line in lines if re.match(r"[a-z0-9]", line)]
    kept = [line for line in kept if line.partition("=")[0] not in free]
    sdks = [f"anthropic[aiohttp]=={anthropic}", f"google-genai[aiohttp]=={google}"]
    pins.write_text("\n".join((*kept, *sdks)), encoding="utf-8")
    run(UV, "venv", "--quiet", "--python", sys.executable, python.parents[1])
    run(UV, "pip", "install", "--quiet", "--no-build", "--python", python, "--requirement", pins)
    return python


def count_tests(python: Path, tests: list[str]) -> tuple[int, int, int]:
    """How many tests passed, were skipped, and failed."""
    command = [str(python), "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--timeout", "60", *tests]
    environment = {"PYTHONPATH": str(HERE / "src")}
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    end = done.stdout.splitlines()[-1]
    passed, skipped, failed, broken = (
        int(found[1]) if (found := re.search(rf"(\d+) {word}", end)) else 0
        for word in ("passed", "skipped", "failed", "error")
    )
    return passed, skipped, failed + broken


def run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True)  # noqa: S603


if __name__ == "__main__":
    main()
