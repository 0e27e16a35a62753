"""What a host of one's own may say about itself."""

import pickle
import re
from typing import Any, get_args

import pytest

from llm_provider import Host, RequestError
from llm_provider._providers.openai_chat.encode import ACCEPTS
from llm_provider._requests.host import PARAMETERS, Tokenizer
from llm_provider._requests.routing import EmbeddingLimits
from llm_provider._tokens.vocabularies import VOCABULARIES

URL = "http://10.0.0.7:8000/v1"


def test_its_names_are_those_of_the_rooms_above() -> None:
    assert ACCEPTS.keys() == PARAMETERS
    assert get_args(Tokenizer) == VOCABULARIES
    limits = dict.fromkeys(EmbeddingLimits._fields, 7)
    host = Host("my-lab", f"{URL}/", embeddings=limits, lacks=["n", "dimensions"], accepts=["top_k"])
    assert host.urls == (URL,)
    assert pickle.loads(pickle.dumps(host)) == host


WRONG: list[tuple[str, Any, str]] = [
    ("name", "Lab", "lower-case letters, digits, '_' and '-', such as 'lab', not 'Lab'"),
    ("name", None, "the name of a host must be"),
    (
        "urls",
        "10.0.0.7/v1",
        "host 'lab': url '10.0.0.7/v1' is not an http or https URL: write 'http://10.0.0.7/v1'",
    ),
    ("urls", "http://me:secret@a/v1", "url may hold no user, password"),
    ("urls", "http://a/v1/chat/completions", "ends with the path of an endpoint: write 'http://a/v1'"),
    ("urls", [], "urls must be an address, .* or a list of them, not "),
    ("urls", [URL, None], "or a list of them"),
    ("urls", [URL, f"{URL}/"], f"urls has '{URL}' twice"),
    ("dialect", "vlm", "dialect must be one of openai, vllm, .*, not 'vlm'; did you mean 'vllm'"),
    ("tokenizer", "gpt2", "tokenizer must be one of o200k_base"),
    ("key_variable", "sk-live-1", "key_variable must be the name of an environment variable"),
    ("accepts", "top_k", "accepts must be a list of parameters"),
    ("accepts", ["n"], "each of accepts must be one of allowed_tools, .*, not 'n'"),
    ("lacks", ["topk"], "each of lacks must be one of .*, not 'topk'; did you mean 'top_k'"),
    ("prices", {"input": 1}, r"prices\['input'\] must be a dict of numbers, such as {'input': 1}, not 1"),
    ("prices", {"m": {"imput": 1}}, r"each name in prices\['m'\] must be .*; did you mean 'input'"),
    ("prices", {"m": {"input": "1"}}, r"prices\['m'\]\['input'\] must be a number of USD, 0 or more"),
    ("prices", {"m": {"input": -1}}, r"prices\['m'\]: input '-1' is not a plain decimal"),
    ("prices", {"m": {"input": float("nan")}}, "input 'NaN' is not a plain decimal"),
    ("prices", {"=m": {"input": 1}}, "model '=m' is not a model's name"),
    ("limits", {"*": {"context_window": 0.5}}, "must be a whole number from 1 on, not 0.5"),
    ("limits", [], r"limits must be a dict by model, such as {'\*': {'context_window': 1}}"),
    ("embeddings", {"text": 1}, "each name in embeddings must be one of texts, .*; did you mean 'texts'"),
]


@pytest.mark.parametrize(("field", "value", "problem"), WRONG)
def test_a_wrong_value_is_refused_with_its_remedy(field: str, value: Any, problem: str) -> None:
    with pytest.raises(RequestError, match=problem) as refused:
        Host(**{"name": "lab", "urls": URL, field: value})
    assert not re.search("secret|sk-live", str(refused.value))
