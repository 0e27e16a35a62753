"""Which servers may be sent a request, and the key with it."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Client
from llm_provider._core.errors import NotFoundError, RequestError
from llm_provider._core.requests.base_url import check_base_url
from llm_provider._core.requests.routing import ROUTES, Route, resolve
from raw_server import RawServer, answering
from support import ask

_FORBIDDEN = {
    "169.254.169.254": "link-local",
    "169.254.170.2": "link-local",
    "100.100.100.200": "cloud's metadata",
    "168.63.129.16": "cloud's metadata",
    "192.0.0.192": "cloud's metadata",
    "metadata.google.internal": "not the address of a provider",
    "metadata.goog": "not the address of a provider",
    "metadata": "not the address of a provider",
    "evil.example": "use https",
    "8.8.8.8": "use https",
}


@st.composite
def _spellings(draw: st.DrawFn, hosts: Iterable[str]) -> tuple[str, str]:
    """A host, and a spelling of it that a resolver, or the client before it, takes for the same."""
    host = draw(st.sampled_from(sorted(hosts)))
    numbers = [int(part) for part in host.split(".") if part.isdigit()]
    spelled = host
    if len(numbers) == 4:
        first, second, third, fourth = numbers
        whole = int.from_bytes(bytes(numbers))
        spelled = draw(
            st.sampled_from(
                [
                    host, str(whole), hex(whole), oct(whole).replace("o", ""), ".".join(map(hex, numbers)),
                    ".".join(f"0{number:o}" for number in numbers),
                    f"{first}.{second}.{third * 256 + fourth}",
                    f"{first}.{second * 65536 + third * 256 + fourth}",
                    f"[::ffff:{host}]", f"[64:ff9b::{host}]", f"[64:ff9b:1::{host}]", f"[::{host}]",
                    f"[2002:{first:02x}{second:02x}:{third:02x}{fourth:02x}::1]",
                ]
            )
        )  # fmt: skip
    if spelled.startswith("["):
        return host, spelled
    written = ""
    for character in spelled:
        others = [character, character.upper(), f"%{ord(character):02x}"]
        if character == ".":
            others += ["\u3002", "\uff0e", "\uff61"]
        elif character.isascii() and character.isalnum():
            others.append(chr(ord(character) + 0xFEE0))
        written += draw(st.sampled_from(others))
    return host, written + draw(st.sampled_from(["", ".", "。", "%2e"]))


@given(_spellings(_FORBIDDEN), st.sampled_from(["", ":80", ":8000/v1"]))
def test_no_spelling_of_a_host_gets_past_the_check(spelling: tuple[str, str], rest: str) -> None:
    host, written = spelling
    with pytest.raises(RequestError) as caught:
        check_base_url(f"http://{written}{rest}")
    if not written.startswith("["):
        assert _FORBIDDEN[host] in str(caught.value)


@given(_spellings(["api.example.com", "xn--bcher-kva.example"]), st.sampled_from(["", ":443", "/v1", "/v1/"]))
def test_every_spelling_of_a_name_is_one_server(spelling: tuple[str, str], rest: str) -> None:
    host, written = spelling
    checked = check_base_url(f"https://{written}{rest}")
    assert checked.lower() == f"https://{host}{rest}".rstrip("/")
    assert resolve("local/m", f"https://{written}{rest}").base_url == checked


@pytest.mark.parametrize("server", ["http://evil。example/v1", "https://100.100.100.200."])
@pytest.mark.parametrize(
    "route", [row for row in ROUTES.values() if row.base_url_variable], ids=lambda route: route.provider
)
def test_the_variable_of_every_route_is_checked(
    route: Route, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(route.base_url_variable, server)
    with pytest.raises(RequestError, match="base_url"):
        resolve(f"{route.provider}/model")


@given(st.text(max_size=40) | st.text(max_size=20).map("http://".__add__))
def test_any_text_is_a_url_or_our_error(base_url: str) -> None:
    try:
        checked = check_base_url(base_url)
    except RequestError:
        return
    assert check_base_url(checked) == checked
    assert checked == base_url.rstrip("/") or checked.isascii()


@pytest.mark.parametrize(
    ("model", "path", "hint"),
    [
        ("claude-haiku-5-5", "/v1", "; the SDK adds /v1/messages to the base URL: write '{root}'"),
        ("claude-haiku-5-5", "/api/v1/", "; the SDK adds /v1/messages to the base URL: write '{root}/api'"),
        ("claude-haiku-5-5", "/v1/proxy", ""),
        ("gpt-6.1-sol", "", "; base URLs of OpenAI's format mostly end with /v1: try '{root}/v1'"),
        ("local/mine", "/api", "; base URLs of OpenAI's format mostly end with /v1: try '{root}/api/v1'"),
        ("local/mine", "/v1", ""),
        ("gpt-6.1-sol", "/openai/v4", ""),
        (
            "gemini-3.8-flash",
            "/v1beta/openai",
            "; that URL has OpenAI's format: write '{root}' for Gemini's own",
        ),
        ("gemini-3.8-flash", "/v1beta", ""),
        ("claude-sonet-5-5", "", "; did you mean claude-sonnet-5-5"),
        ("anthropic/claude-hiku-5-5", "", "; did you mean anthropic/claude-haiku-5-5"),
        ("gpt-61-sol", "/v1", "; did you mean gpt-6.1-sol"),
        ("gemini-3.8-flsh", "", "; did you mean gemini-3.8-flash"),
        ("litellm/openai/gpt-61-sol", "", "; did you mean litellm/openai/gpt-6.1-sol"),
        # A model that is known, and a name that is like none.
        ("gpt-6.1-sol", "/v1", ""),
        ("gpt-9-mine", "/v1", ""),
    ],
)
@pytest.mark.parametrize("way", ["call", "stream", "call_many"])
def test_a_404_names_what_may_be_wrong(
    plain_client: Client, monkeypatch: pytest.MonkeyPatch, model: str, path: str, hint: str, way: str
) -> None:
    said = json.dumps({"error": {"message": "Not Found", "status": "NOT_FOUND"}}).encode()
    if model.startswith("litellm/"):
        monkeypatch.setenv("OPENAI_API_KEY", "key")
    with RawServer(answering(said, status=404)) as server, pytest.raises(NotFoundError) as caught:
        ask(plain_client, way, model, base_url=server.root + path, api_key="key")
    message, expected = caught.value.message, hint.format(root=server.root)
    assert message.endswith(expected) if not expected.startswith("; did") else expected in message
    assert expected or "; " not in message
