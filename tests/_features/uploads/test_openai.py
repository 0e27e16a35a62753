"""Uploads to OpenAI's files through its SDK."""

import openai

from llm_provider._core.requests.routing import resolve
from llm_provider._features.uploads.openai import connect, limits
from llm_provider.simulator import Simulator
from support import upload


def test_an_upload_has_the_purpose_of_model_input(simulator: Simulator) -> None:
    uploaded = upload(connect, "gpt-6.1-sol", "application/pdf", b"%PDF-1.7")
    assert uploaded.expires is None, "OpenAI keeps it"
    with openai.OpenAI(api_key="sk-files") as sdk:
        stored = sdk.files.retrieve(uploaded.identifier)
        assert (stored.purpose, stored.bytes, stored.filename) == ("user_data", 8, "llm_provider-1")
        assert sdk.files.content(uploaded.identifier).content == b"%PDF-1.7"


def test_compatible_hosts_have_no_such_files() -> None:
    assert limits(resolve("gpt-6.1-sol")) is not None
    assert limits(resolve("groq/openai/gpt-oss-120b")) is None
