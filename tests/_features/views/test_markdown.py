"""Markdown in notebooks: what it renders, and that a text makes nothing else."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._features.views import blocks, markdown
from support import response

pytest.importorskip("nh3")
pytest.importorskip("markdown_it")

HOSTILE = """# Steps

3. *Take* **34 - 17**, ~~not~~ `17 < 18`

```html
<script>alert(1)</script>
```

| a | b |
|---|--:|
| 1 | 2 |

<img src=x onerror=alert(1)> <b>bold</b>

<div onclick="alert(1)">
block
</div>

![secret](https://evil.example/p.png?q=secret "t") [a page](https://evil.example/?q=1&r=2)
<https://evil.example/auto> [run](javascript:alert(1)) ![i](data:image/svg+xml,x) [reference][r] \ud800

[r]: https://evil.example/r
"""


class Tags(HTMLParser):
    """The tags and the attributes of some HTML as a browser finds them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[tuple[str, tuple[str, ...]]] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.add((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_it_is_rendered_by_a_list_of_what_it_may_make() -> None:
    page = Tags(blocks.text(HOSTILE))
    assert page.found - {("div", ("dir", "style"))} == {
        *((tag, ()) for tag in ("h1", "li", "em", "strong", "s", "code", "pre", "p", "br")),
        *((tag, ()) for tag in ("table", "thead", "tbody", "tr", "th", "td")), ("ol", ("start",)),
    } - {("br", ())}  # fmt: skip
    for shown in (
        "17 < 18", "<script>alert(1)</script>", "<img src=x onerror=alert(1)> <b>bold</b>",
        '<div onclick="alert(1)">', "[secret] (https://evil.example/p.png?q=secret)",
        "a page (https://evil.example/?q=1&r=2)", "[run](javascript:alert(1))", "(https://evil.example/r)",
    ):  # fmt: skip
        assert shown in page.text


def test_of_a_response_it_loads_nothing() -> None:
    html = response(HOSTILE)._repr_html_()
    assert "<h1>Steps</h1>" in html
    assert not re.search(
        r"<(img|a|script|link|iframe|svg|object|embed)\b|\bon\w+=[^&]*>|url\(", html.replace("&lt;", "")
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from([*"<>&\"'`*_[]()!#|\n\\ ab", "![", "](", "<a href='http://x'>", "http://x", "<!--"])
    )
)
def test_no_text_makes_another_tag(parts: list[str]) -> None:
    found = Tags(markdown.render("".join(parts)) or "").found
    assert {tag for tag, _ in found} <= markdown._TAGS
    assert {name for _, names in found for name in names} <= {"start"}


def test_without_the_extra_it_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "_load", lambda: (None, None))
    html = blocks.text(HOSTILE)
    assert "# Steps" in html
    assert {tag for tag, _ in Tags(html).found} == {"div", "pre"}
