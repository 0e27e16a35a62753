"""What a host of one's own may say about itself."""

import pickle
from typing import get_args

from llm_provider import Host
from llm_provider._core.formats.openai_chat.encode import ACCEPTS
from llm_provider._core.requests.routing import EmbeddingLimits
from llm_provider._core.tokens.tokenizer import VOCABULARIES
from llm_provider._features.hosts.host import PARAMETERS, Tokenizer

URL = "http://10.0.0.7:8000/v1"


def test_its_names_are_those_of_the_rooms_above() -> None:
    assert ACCEPTS.keys() == PARAMETERS
    assert get_args(Tokenizer) == VOCABULARIES
    # Hosts by name take texts alone.
    limits = dict.fromkeys(set(EmbeddingLimits._fields) - {"media"}, 7)
    host = Host("my-lab", f"{URL}/", embeddings=limits, lacks=["n", "dimensions"], accepts=["top_k"])
    assert host.urls == (URL,)
    assert pickle.loads(pickle.dumps(host)) == host
