"""A token with its log probability."""

from __future__ import annotations

import dataclasses
import pickle

from llm_provider import TokenLogprob
from llm_provider._types.logprobs import token_from_dict


def test_a_dict_of_a_token_is_read_again() -> None:
    token = TokenLogprob(token="a", logprob=-0.1, id=3, top=(TokenLogprob(token="b", logprob=-2.0),))
    assert token_from_dict(dataclasses.asdict(token)) == token
    assert pickle.loads(pickle.dumps(token)) == token
