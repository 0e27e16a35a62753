"""What an installation consists of: the size of each package, and what each SDK alone brings.

    python -m benchmarks.install_size            # of this environment, as far as the package requires it
    python -m benchmarks.install_size --top 15   # more rows

Only the packages count that `llm-provider-call` requires, without extras. Sizes are those of the files that pip
has installed, without byte code.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from collections.abc import Iterable, Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "llm-provider-call"
SDKS = ("openai", "anthropic", "google-genai")


def main() -> None:
    """Print the sizes of the largest packages, and what each SDK brings."""
    parser = argparse.ArgumentParser(description="What an installation consists of.")
    parser.add_argument("--top", type=int, default=10, help="rows of the largest packages")
    arguments = parser.parse_args()
    everything = closure([(ROOT, frozenset())])
    sizes = {name: size_of(name) for name in everything}
    print(f"{len(everything)} packages, {sum(sizes.values()) / 1e6:.0f} MB")
    for name, size in sorted(sizes.items(), key=lambda item: -item[1])[: arguments.top]:
        print(f"  {name:28} {size / 1e6:6.1f} MB")
    for sdk in SDKS:
        rest = closure([(ROOT, frozenset())], without={sdk})
        alone = everything - rest
        print(
            f"without {sdk}: {len(alone)} packages and {sum(sizes[one] for one in alone) / 1e6:.1f} MB less"
        )
    for sdk in SDKS:
        rest = closure([(ROOT, frozenset())], without=set(SDKS) - {sdk})
        print(f"with {sdk} alone: {len(rest)} packages, {sum(sizes[one] for one in rest) / 1e6:.0f} MB")


def closure(asked: Iterable[tuple[str, frozenset[str]]], without: Iterable[str] = ()) -> set[str]:
    """The packages that some packages require, themselves included, without those that are left out."""
    seen: set[tuple[str, frozenset[str]]] = set()
    left = list(asked)
    while left:
        name, extras = left.pop()
        if (name, extras) in seen or name in without:
            continue
        seen.add((name, extras))
        left.extend(required_by(name, extras))
    return {name for name, _ in seen}


def required_by(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What a package requires here, with the extras of each."""
    for line in importlib.metadata.requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def size_of(name: str) -> int:
    """The bytes of the files of an installed package."""
    files = importlib.metadata.files(name) or []
    found = [file.locate() for file in files if not str(file).endswith(".pyc")]
    return sum(path.stat().st_size for path in found if path.is_file())  # type: ignore[attr-defined]  # a Path


if __name__ == "__main__":
    main()
