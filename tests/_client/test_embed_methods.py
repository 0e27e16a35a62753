"""`Client.embed` and `Client.aembed`. tests/_calls/test_embed.py has what they do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from llm_provider import Client, RequestError
from llm_provider.simulator import Simulator

MODEL = "text-embedding-3-small"


def test_both_methods_share_the_stored_texts(simulator: Simulator, own_cache: Path) -> None:
    with Client(cache_dir=own_cache) as client:
        first = client.embed(MODEL, ["a bird", "a fish"])
        again = asyncio.run(client.aembed(MODEL, ["a fish"]))
    assert (first.cached, again.cached) == (False, True)
    assert again.vectors[0] == first.vectors[1]


def test_defaults_of_the_client_apply_to_an_estimate_too(own_cache: Path) -> None:
    with Client(cache_dir=own_cache, base_url="not a url") as client:
        for function in (client.embed, client.estimate):
            with pytest.raises(RequestError, match="base_url"):
                function(MODEL, ["a"])  # type: ignore[operator]  # either takes both
