"""The blocks of the views in notebooks."""

import pytest

from llm_provider import CacheMissError, LLMError, RateLimitError
from llm_provider._features.views import blocks as html
from llm_provider._features.views import markdown

HOSTILE = "<script>alert('1')</script>\"&\ud800"
SAFE = "&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;&quot;&amp;?"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without the extra `markdown`, which has tests of its own."""
    monkeypatch.setattr(markdown, "_load", lambda: (None, None))


def test_every_block_shows_text_and_runs_nothing() -> None:
    for block in (html.text, html.code, html.small, html.figure, html.words, html.failure):
        assert SAFE in block(HOSTILE)
        assert "<script>" not in block(HOSTILE)
    assert html.warning(HOSTILE, HOSTILE).count(SAFE) == 2
    assert SAFE in html.fold(HOSTILE, "")
    html_text = html.table([HOSTILE], [[html.words(HOSTILE)]], caption=HOSTILE)
    assert html_text.count(SAFE) == 3
    html.block(html_text).encode()


def test_a_long_text_is_cut_and_says_so() -> None:
    assert len(html.text("word " * 100_000)) < 6_000
    assert "… 495,000 more characters" in html.text("word " * 100_000)
    assert html.text("\n" * 100_000 + "x").count("\n") < 100
    assert "more" not in html.text("x" * 5_000)
    assert html.words("x" * 1_000).count("x" * 199 + "…") == 1
    assert "d" not in html.words("a\nb\nc\n \nd").partition(">")[2].partition("<")[0]


def test_code_in_markdown_is_apart_from_prose() -> None:
    html_text = html.text("Run\n\n```python\nif a < b:\n    pass\n```\n\nor\n\n```\nx | y")
    assert html_text.count("<pre") == 2
    assert ">if a &lt; b:\n    pass</pre>" in html_text
    assert ">or</div>" in html_text
    assert ">x | y</pre>" in html_text
    assert "```" not in html_text
    assert "<pre" not in html.text("a ``` b")
    # Text has the direction of its script.
    assert all('dir="auto"' in block("القاهرة") for block in (html.text, html.words))


def test_a_table_counts_the_rows_that_it_leaves_out() -> None:
    assert "… 1,280 more are not shown" in html.table(["a"], [[html.figure("1")]], left_out=1280)
    assert "<thead" not in html.table([], [[html.figure("1")]])


def test_no_block_has_a_colour_of_its_own() -> None:
    html_text = html.table(["a"], [[html.words("b"), html.failure("c")]], caption="d", left_out=1)
    html_text += html.text("e\n```\nf\n```") + html.code("g") + html.fold("h", "i") + html.warning("j", "k")
    for word in ("color", "background", "#"):
        assert word not in html_text


def test_an_error_as_a_value_shows_its_facts() -> None:
    error: LLMError = RateLimitError(
        "slow <down>", provider="openai", model="m", status=429, code="tpm", request_id="r", attempts=3
    )
    html_text = error._repr_html_()
    assert "<b>⚠ RateLimitError</b> slow &lt;down&gt;" in html_text
    assert "openai · m · HTTP 429 · tpm · request r · 3 attempts · may succeed later" in html_text
    assert len(CacheMissError("x" * 100_000, key="k")._repr_html_()) < 6_000
