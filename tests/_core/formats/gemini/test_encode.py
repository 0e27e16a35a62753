"""What each family of Gemini's models accepts, and the version of the API that the user chooses."""

import pytest

from llm_provider import Client, RequestError
from llm_provider._core.formats.gemini.encode import choose_version
from llm_provider.simulator import Simulator


def test_the_base_url_precedes_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_version("https://example.com") is None
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "beta")
    assert choose_version("https://example.com") == "v1beta"
    assert choose_version("https://example.com/v2") == "v2"
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "../x")
    with pytest.raises(RequestError, match="GOOGLE_GENAI_API_VERSION"):
        choose_version(None)


@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("ending", ["", "/v1beta", "variable"])
def test_every_operation_uses_it(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, transport: str, ending: str
) -> None:
    server = simulator.url("gemini")
    if ending == "variable":
        monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v1beta")
    else:
        server += ending
    with Client(transport=transport, cache="off") as client:  # type: ignore[arg-type]  # one of its words
        client.call("gemini-3.8-flash", "Hi", base_url=server)
        list(client.stream("gemini-3.8-flash", "Hi", base_url=server))
        client.embed("gemini-embedding-001", ["Hi"], base_url=server)
    version = "v1beta" if ending else "v1"
    paths = [request.path for request in simulator.requests()]
    assert len(paths) == 3
    assert all(path.count("/v1") == 1 and f"/{version}/models/" in path for path in paths)
