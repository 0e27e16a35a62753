"""The functions that can deliver in batches take the same parameters."""

from __future__ import annotations

from llm_provider import BatchParameters, EmbedParameters, Parameters
from llm_provider._requests.delivery_parameters import DeliveryParameters


def test_batches_and_embeddings_have_them_and_single_calls_do_not() -> None:
    names = DeliveryParameters.__annotations__.keys()
    assert names <= BatchParameters.__annotations__.keys()
    assert names <= EmbedParameters.__annotations__.keys()
    assert names.isdisjoint(Parameters.__annotations__)
