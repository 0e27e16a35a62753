"""Options of background jobs that are wrong, and parameters that contradict them."""

from collections.abc import Callable
from typing import Any

import pytest

from background_server import BackgroundServer
from llm_provider import Client, LLMError, RequestError, UnsupportedParameterError

MakeClient = Callable[..., Client]

MODEL = "gpt-5.5"


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("call", {"background_options": {"completion_window": "2h"}}, "delivery='background'"),
        ("call_many", {"background_options": {"completion_window": "2h"}}, "delivery='background'"),
        ("call", {"delivery": "background", "background_options": {"completion_window": "1h"}}, "soonest"),
        ("call", {"delivery": "background", "background_options": {"window": "2h"}}, "completion_window"),
        ("call", {"delivery": "batch"}, "'live' or 'background'"),
        ("call", {"delivery": "background", "fallback": ["gpt-5.4"]}, "fallback"),
        ("call", {"delivery": "background", "in_batch": "wait"}, "in_batch"),
        ("call", {"delivery": "background", "store": False}, "store"),
        ("call", {"delivery": "background", "cache": "off"}, "cache='refresh'"),
        ("call_many", {"delivery": "background", "cache": "off"}, "cache='refresh'"),
        ("call_many", {"delivery": "background", "batch_size": 2}, "batch_size"),
        ("call_many", {"delivery": "background", "max_tool_rounds": 2, "tools": [print]}, "max_tool_rounds"),
        ("call", {"delivery": "background", "endpoint": "chat"}, "delivery"),
        (
            "call",
            {
                "delivery": "background",
                "background_options": {"completion_window": "2h"},
                "service_tier": "flex",
            },
            "service_tier",
        ),
        ("stream", {"delivery": "background"}, "stream"),
        ("call", {"extra_body": {"background": True}}, "delivery='background'"),
        ("call", {"extra_body": {"background": True}, "delivery": "background"}, "delivery='background'"),
        ("call_many", {"extra_body": {"background": True}}, "delivery='background'"),
        ("call_many", {"extra_body": {"background": True}, "delivery": "batch"}, "delivery='background'"),
    ],
)
def test_what_contradicts_a_job_is_refused_by_name(
    server: BackgroundServer, make_client: MakeClient, function: str, options: Any, words: str
) -> None:
    client, many = make_client(), function == "call_many"
    with pytest.raises((RequestError, UnsupportedParameterError)) as caught:
        result: Any = getattr(client, function)(MODEL, ["Hi"] if many else "Hi", **options)
        if many and isinstance(result[0], LLMError):
            raise result[0]
    assert words in str(caught.value)
    assert not server.bodies
