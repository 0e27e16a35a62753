"""Text that a terminal shows and does not execute."""

_ESCAPED = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F))
"""The control characters, which begin every command to a terminal, and the marks that reverse what follows.

The isolating marks of right-to-left scripts end with their line, so they stay.
"""

_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _ESCAPED} | {0x0D: ""}
"""A carriage return would let a text cover what stands before it."""


def escape_controls(text: str) -> str:
    r"""A text with escapes in the place of control characters. Line breaks and tabs stay.

    >>> escape_controls("copied\x1b]52;c;aGk=\x07 \u202eback\r\n")
    'copied\\x1b]52;c;aGk=\\x07 \\u202eback\n'
    """
    return text.translate(_ESCAPES)
