"""Every adapter has what the protocol asks for, and reads the shapes of real replies."""

import pytest

from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.formats.registry import load, load_connection
from llm_provider._core.requests.routing import ROUTES


@pytest.mark.parametrize("name", sorted({route.adapter for route in ROUTES.values()}))
def test_every_route_has_an_adapter_of_the_right_shape(name: str) -> None:
    adapter = load(name)
    for part in ("encode", "decode", "map_error", "assembler"):
        assert callable(getattr(adapter, part))
    assert callable(load_connection(name).connect)
    assert callable(adapter.assembler(EncodedRequest("chat/completions", {})).feed)
