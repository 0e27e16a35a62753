"""The batch and file endpoints of Gemini, as the google-genai SDK sees them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from google import genai
from google.genai import types

from llm_provider.simulator import Simulator

MODEL = "gemini-3.8-flash"


@pytest.fixture(scope="module")
def sdk(batch_server: Simulator) -> Any:
    """Kept: the SDK's client closes its connections when nothing refers to it."""
    options = types.HttpOptions(base_url=batch_server.url("gemini"), api_version="v1beta")
    return genai.Client(vertexai=False, api_key="sk-test", http_options=options)


def test_inline_rows_come_back_in_their_order(sdk: Any) -> None:
    rows = [types.InlinedRequest(contents=f"{n}+1?", metadata={"key": str(n)}) for n in range(3)]
    created = sdk.batches.create(model=MODEL, src=rows, config={"display_name": "mine"})
    batch = sdk.batches.get(name=created.name)
    assert (batch.state.name, batch.display_name) == ("JOB_STATE_SUCCEEDED", "mine")
    texts = [one.response.text for one in batch.dest.inlined_responses]
    assert texts == ["1", "2", "3"]
    assert created.name in {one.name for one in sdk.batches.list(config={"page_size": 2})}


def test_rows_of_a_file_come_back_by_their_keys(sdk: Any) -> None:
    lines = [
        json.dumps({"key": f"k{n}", "request": {"contents": [{"role": "user", "parts": [{"text": text}]}]}})
        for n, text in enumerate(["2+2?", "3+3?"])
    ]
    config = types.UploadFileConfig(display_name="rows", mime_type="application/jsonl")
    file = sdk.files.upload(file=io.BytesIO("\n".join(lines).encode()), config=config)
    created = sdk.batches.create(model=MODEL, src=file.name)
    batch = sdk.batches.get(name=created.name)
    found = map(json.loads, sdk.files.download(file=batch.dest.file_name).splitlines())
    texts = {one["key"]: one["response"]["candidates"][0]["content"]["parts"][0]["text"] for one in found}
    assert texts == {"k0": "4", "k1": "6"}
