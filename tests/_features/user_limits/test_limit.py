"""`Limit`: wrong numbers are refused by name."""

from typing import Any

import pytest

from llm_provider import Limit, RequestError


@pytest.mark.parametrize("name", ["rpm", "tpm", "concurrent"])
@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "10", float("inf"), 2**60])
def test_a_wrong_number_is_refused_by_name(name: str, wrong: Any) -> None:
    with pytest.raises(RequestError, match=f"{name} must be an int above 0"):
        Limit(**{name: wrong})


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(RequestError, match="give rpm, tpm or concurrent"):
        Limit()
