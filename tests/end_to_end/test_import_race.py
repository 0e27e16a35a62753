"""A first call while another thread imports an SDK whose modules the call's own SDK needs too."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from llm_provider.simulator import Simulator

PROGRAM = """
import importlib, json, sys, threading, time
url, model, delay, *imported = sys.argv[1:]
import openai
from llm_provider import Client
told = []

def work():
    with Client(cache="off") as client:
        try:
            told.append(client.call(model, "Hi", base_url=url, api_key="k", max_retries=0).text)
        except Exception as error:
            told.append(f"{type(error).__name__}: {error}")

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
time.sleep(float(delay))
for name in imported:
    importlib.import_module(name)
for thread in threads:
    thread.join()
print(json.dumps(told))
"""
MODELS = {
    "openai": "gpt-6.1-sol",
    "anthropic": "claude-sonnet-5-5",
    "gemini": "gemini-3.8-flash",
    "together_ai": "together_ai/zai-org/GLM-5.3",
}


OTHERS = ("httpx2", "anthropic", "google.genai")


@pytest.mark.parametrize("provider", MODELS)
def test_the_first_call_waits_for_it(simulator: Simulator, provider: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, simulator.url(provider), MODELS[provider], "0.0", *OTHERS],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout) == ["echo: Hi"] * 4, ran.stderr
