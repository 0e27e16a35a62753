"""Markdown as HTML for notebooks, with the extra `markdown`: by markdown-it, and then by nh3's list of tags.

Raw HTML is text, an image is its description and address, and a link is its text and address, because a
notebook would load a remote image, whose address can carry a prompt out.
"""

import functools
from typing import Any

_TAGS = frozenset({
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "em", "strong", "s", "code",
    "pre", "br", "hr", "table", "thead", "tbody", "tr", "th", "td",
})  # fmt: skip
"""The tags that a text may make, without attributes but the first number of a list."""


def render(content: str) -> str | None:
    """A text as HTML of few tags; None where the extra is not installed."""
    parser, clean = _load()
    if parser is None:
        return None
    html: str = clean(
        parser.render(content), tags=_TAGS, attributes={"ol": {"start"}}, url_schemes=set(), link_rel=None
    )
    return html


@functools.cache
def _load() -> tuple[Any, Any]:
    """The parser and the sanitizer. Both are None if one is absent."""
    try:
        import nh3
        from markdown_it import MarkdownIt
        from markdown_it.common.utils import escapeHtml
    except ImportError:
        return None, None
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

    def open_link(_: Any, tokens: Any, at: int, __: Any, state: Any) -> str:
        state.setdefault("links", []).append(str(tokens[at].attrGet("href")))
        return ""

    def close_link(_: Any, __: Any, ___: int, ____: Any, state: Any) -> str:
        return f" ({escapeHtml(state['links'].pop())})"

    def show_image(_: Any, tokens: Any, at: int, __: Any, ___: Any) -> str:
        return str(escapeHtml(f"[{tokens[at].content}] ({tokens[at].attrGet('src')})"))

    for name, rule in (("link_open", open_link), ("link_close", close_link), ("image", show_image)):
        parser.add_render_rule(name, rule)
    return parser, nh3.clean
