"""What each family of Gemini's models accepts."""

import pytest

from llm_provider._providers.gemini.models import family_of


@pytest.mark.parametrize(
    ("model", "efforts", "sampling", "version"),
    [
        ("gemini-2.5-pro", {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}, True, "v1"),
        ("gemini-2.5-flash-image", {}, True, "v1"),
        ("gemini-flash-latest", {"low": "low", "medium": "medium", "high": "high"}, True, "v1beta"),
        ("gemini-3.8-flash", {"low": "low", "medium": "medium", "high": "high"}, False, "v1"),
    ],
)
def test_the_first_family_that_matches_counts(
    model: str, efforts: dict[str, str | int], sampling: bool, version: str
) -> None:
    family = family_of(model)
    assert (family.efforts, family.sampling, family.version) == (efforts, sampling, version)
