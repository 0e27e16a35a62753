"""Which servers may be sent a request, and the key with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._errors import RequestError
from llm_provider._requests.base_url import checked_base_url
from llm_provider._requests.routing import resolve


@pytest.mark.parametrize(
    "base_url",
    [
        "https://api.example.com/v1",
        "https://8.8.8.8/v1",
        "http://localhost:8000/v1",
        "http://127.0.0.1:8000",
        "http://[::1]:8000/v1",
        "http://10.1.2.3",
        "http://192.168.0.9:11434/v1",
        "http://172.16.0.1",
        "http://100.64.1.2:8000/v1",
        "http://gpu-box:8000/v1",
        "http://gpu.local/v1",
        "http://vllm.internal/v1",
        "http://a.localhost/v1",
        "http://2130706433/v1",
        "http://[::ffff:127.0.0.1]/v1",
        "http://0.0.0.0:8000",
    ],
)
def test_may_be_sent_a_key(base_url: str) -> None:
    assert checked_base_url(base_url) == checked_base_url(base_url + "/") == base_url
    target = resolve("local/m", base_url + "/")
    assert (target.base_url, target.custom_base_url) == (base_url, True)


@pytest.mark.parametrize(
    ("base_url", "problem"),
    [
        ("http://api.openai.com/v1", "use https"),
        ("http://8.8.8.8/v1", "use https"),
        ("http://134744072/v1", "use https"),
        ("http://localhost.example.com", "use https"),
        ("http://[2001:4860:4860::8888]/", "use https"),
        ("https://169.254.169.254/latest", "link-local"),
        ("http://169.254.169.254", "link-local"),
        ("http://169.254.169.254.", "link-local"),
        ("http://2852039166/", "link-local"),
        ("http://0xa9fea9fe/", "link-local"),
        ("http://0251.0376.0251.0376/", "link-local"),
        ("http://169.254.43518/", "link-local"),
        ("http://[fe80::1]/", "link-local"),
        ("http://[fe80::1%25eth0]/", "link-local"),
        ("http://[::ffff:169.254.169.254]/", "link-local"),
        ("http://metadata.google.internal/", "not the address of a provider"),
        ("ftp://localhost/", "not an http or https URL"),
        ("file:///etc/passwd", "not an http or https URL"),
        ("localhost:8000", "not an http or https URL"),
        ("https://", "not an http or https URL"),
        ("http://[::1/", "not a URL"),
        ("http://localhost:99999/", "not a URL"),
        ("http://localhost:8000/v1\n", "not an http or https URL"),
        ("http://localhost /v1", "not the address of a provider"),
        (" http://localhost/v1", "not the address of a provider"),
        ("https://good.example\\.evil.example/", "not the address of a provider"),
        ("https://user:secret@example.com/v1", "api_key="),
        ("https://user:secret@[/", "api_key="),
        ("https://example.com/v1?key=secret", "api_key="),
        ("https://example.com/v1#secret", "api_key="),
    ],
)
def test_may_not(base_url: str, problem: str) -> None:
    with pytest.raises(RequestError, match=problem) as caught:
        checked_base_url(base_url)
    assert "secret" not in str(caught.value)


@given(st.text(max_size=40) | st.text(max_size=20).map("http://".__add__))
def test_any_text_is_a_url_or_our_error(base_url: str) -> None:
    try:
        assert checked_base_url(base_url) == base_url.rstrip("/")
    except RequestError:
        return
