"""The page of sizes says what an installation has."""

import re

import pytest

from benchmarks.install_size import PAGE, SDKS, closure, measure_sizes


def test_the_page_is_true_within_a_tenth() -> None:
    """The environment may have other releases, and an older Python a package more."""
    page = PAGE.read_text(encoding="utf-8")
    (told,) = re.findall(r"\*\*(\d+) packages, ([\d.]+) MB\*\*", page)
    sizes = measure_sizes()
    assert len(sizes) == pytest.approx(int(told[0]), rel=0.1)
    assert sum(sizes.values()) / 1e6 == pytest.approx(float(told[1]), rel=0.1)
    shown = {
        name: float(size)
        for name, size in re.findall(r"^\| (\S+) \| \S+ \| ([\d.]+) \| [a-z]", page, re.MULTILINE)
    }
    large = {name: size / 1e6 for name, size in sizes.items() if size > 1e6}
    assert {name: shown.get(name) for name in large} == pytest.approx(large, rel=0.25)


@pytest.mark.parametrize("sdk", SDKS)
def test_an_sdk_brings_what_no_other_needs(sdk: str) -> None:
    alone = closure(without=set(SDKS) - {sdk})
    assert alone & set(SDKS) == {sdk}
    assert {"aiohttp", "diskcache", "orjson"} < alone
    assert ("cryptography" in alone) == (sdk == "google-genai")
