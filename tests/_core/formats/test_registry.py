"""Which module speaks for a route, and in which thread an adapter and its SDK are imported."""

import pytest

from llm_provider._core.errors import RequestError
from llm_provider._core.formats import registry
from llm_provider._core.formats.protocol import EmbeddingFormat
from llm_provider._core.requests.routing import ROUTES, find_route, resolve
from llm_provider.simulator import Simulator
from support import RunScript

SDKS = {"openai": "gpt-6.1-sol", "anthropic": "claude-sonnet-5-5", "google.genai": "gemini/gemini-3.8-flash"}


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.sampled(4)
def test_a_call_imports_its_sdk_in_its_thread(simulator: Simulator, run_script: RunScript, sdk: str) -> None:
    run_script(
        f"""
        import sys, threading, warnings
        from llm_provider import call

        # The warning appears only when an SDK is compiled for the first time.
        warnings.filterwarnings("ignore", "invalid escape sequence")

        class Watching:
            threads = set()

            def find_spec(self, name, path=None, target=None):
                if name in ({sdk!r}, "aiohttp"):
                    self.threads.add(threading.current_thread().name)

        sys.meta_path.insert(0, Watching())
        assert call({SDKS[sdk]!r}, "What is 1+1?", cache="off").text == "2"
        assert Watching.threads == {{"MainThread"}}, Watching.threads
        """,
        **simulator.environment(),
    )


def test_an_sdk_that_is_not_there_is_told_by_the_call(run_script: RunScript) -> None:
    run_script(
        """
        import sys
        from llm_provider import MissingDependencyError, call
        sys.modules["litellm"] = None
        try:
            call("cohere/command-r", "Hi", api_key="k")
        except MissingDependencyError as error:
            assert "pip install" in str(error), error
        else:
            raise AssertionError("called")
        """
    )


@pytest.mark.parametrize("provider", sorted(ROUTES.keys() - {"anthropic"}))
def test_every_route_but_one_has_embeddings(provider: str) -> None:
    module = registry.load_embeddings(find_route(f"{provider}/some-embedding-model"))
    names = {name for name in vars(EmbeddingFormat) if not name.startswith("_")}
    assert names == {"encode", "encode_contents", "payload_of", "limits", "decode", "split", "usage"}
    for name in names:
        assert callable(getattr(module, name))


def test_anthropic_has_none_and_others_are_named() -> None:
    with pytest.raises(RequestError, match="anthropic has no embedding models; use one of text-embedding-3"):
        registry.load_embeddings(resolve("claude-sonnet-5-5"))
