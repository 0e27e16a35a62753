"""Which servers may be sent a request, and the key with it."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._errors import RequestError
from llm_provider._requests.base_url import check_base_url
from llm_provider._requests.routing import ROUTES, Route, resolve


@pytest.mark.parametrize(
    "base_url",
    [
        "https://api.example.com/v1", "https://8.8.8.8/v1", "http://localhost:8000/v1",
        "http://127.0.0.1:8000", "http://[::1]:8000/v1", "http://10.1.2.3", "http://192.168.0.9:11434/v1",
        "http://172.16.0.1", "http://100.64.1.2:8000/v1", "http://gpu-box:8000/v1", "http://gpu.local/v1",
        "http://vllm.internal/v1", "http://a.localhost/v1", "http://2130706433/v1",
        "http://[::ffff:127.0.0.1]/v1", "http://0.0.0.0:8000",
    ],
)  # fmt: skip
def test_may_be_sent_a_key(base_url: str) -> None:
    assert check_base_url(base_url) == check_base_url(base_url + "/") == base_url
    target = resolve("local/m", base_url + "/")
    assert (target.base_url, target.custom_base_url) == (base_url, True)


REFUSED = {
    "use https": (
        "http://api.openai.com/v1", "http://8.8.8.8/v1", "http://134744072/v1",
        "http://localhost.example.com", "http://[2001:4860:4860::8888]/",
    ),
    "link-local": (
        "https://169.254.169.254/latest", "http://169.254.169.254", "http://169.254.169.254.",
        "http://2852039166/", "http://0xa9fea9fe/", "http://0251.0376.0251.0376/", "http://169.254.43518/",
        "http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[::ffff:169.254.169.254]/",
    ),
    "cloud's metadata": (
        "http://[fd00:ec2::254]/", "https://[fd20:ce::254]/", "https://100.100.100.200/",
    ),
    "not the address of a provider": (
        "https://instance-data.ec2.internal", "http://metadata.google.internal/", "http://localhost /v1",
        " http://localhost/v1", "https://good.example\\.evil.example/",
    ),
    "neither a name nor an address": (
        "http://[::1%25lo]/", "https://[v1.a]/", "https://4294967296/", "https://1.2.3.4.5/",
        "https://a..b/", "https://user%3asecret%40example.com/", "https://example.com%2fsecret/",
    ),
    "not an http or https URL": (
        "https://exa\tmple.com/", "ftp://localhost/", "file:///etc/passwd", "localhost:8000", "https://",
        "http://localhost:8000/v1\n",
    ),
    "not a URL": (
        "http://[::1/", "http://localhost:99999/",
    ),
    "api_key=": (
        "https://user:secret@example.com/v1", "https://user:secret@[/", "https://example.com/v1?key=secret",
        "https://example.com/v1#secret",
    ),
}  # fmt: skip
"""What the message says, and the servers."""


@pytest.mark.parametrize(
    ("problem", "base_url"), [(problem, base_url) for problem in REFUSED for base_url in REFUSED[problem]]
)
def test_may_not(problem: str, base_url: str) -> None:
    with pytest.raises(RequestError, match=problem) as caught:
        check_base_url(base_url)
    assert "secret" not in str(caught.value)


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
