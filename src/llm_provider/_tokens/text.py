"""How many tokens a text probably has, judged by its words and scripts, without a tokenizer. Pure.

Tokenizers differ less than texts do: a word is about one token, a long word more than one, and a Chinese
character a little less than one. The weights below are a least-squares fit to o200k_base, OpenAI's tokenizer
since 2024. The texts of the fit are documentation, licences, code and translations of other packages, every
second part of prices.csv, and the first paragraph of each language in tests/data/scripts.json.
`python -m benchmarks tokens` measures the error on other texts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = re.compile("[A-ZÀ-Þ]?[a-zß-ɏ\u1e00-\u1eff\u0300-\u036f]+|[A-ZÀ-Þ]+")
_WEST = re.compile("[À-ÿ]")
_EAST = re.compile("[Ā-ɏ]")
_DIGITS = re.compile(r"[0-9]{1,3}")
_SIGNS = re.compile(r"(?:[!-/:-@\[-^`{-~]+|_+)(?![A-Za-z])")
_SIGNS_BEFORE_A_WORD = re.compile(r"(?:[!-/:-@\[-^`{-~]+|_+)(?=[A-Za-z])")
_INDENTS = re.compile("  +")

_PER_WORD, _LONG_WORD, _PER_LETTER_MORE = 0.95, 7, 0.22
_PER_DIGITS, _PER_SIGNS, _PER_SIGNS_BEFORE_A_WORD, _PER_INDENT = 1.29, 1.25, 0.56, 0.84

# Further tokens per word in a language with accents: of western Europe, of eastern Europe.
_WESTERN, _EASTERN = 0.2, 0.45
# Accents per word from which on a text counts as written in such a language as a whole.
_ACCENTS_OF_A_LANGUAGE = 0.1

# Tokens per letter of each script.
_SCRIPTS = (
    (0.40, re.compile("[\u0370-\u03ff]")),  # Greek
    (0.32, re.compile("[\u0400-\u052f]")),  # Cyrillic
    (0.44, re.compile("[\u0590-\u05ff]")),  # Hebrew
    (0.37, re.compile("[\u0600-\u06ff]")),  # Arabic, Persian
    (0.39, re.compile("[\u0900-\u0dff]")),  # Devanagari, Bengali, Tamil and their neighbours
    (0.40, re.compile("[\u0e00-\u0eff]")),  # Thai, Lao
    (0.69, re.compile("[\uac00-\ud7af]")),  # Hangul
    (0.67, re.compile("[\u3040-\u30ff]")),  # Kana
    (0.81, re.compile("[\u3400-\u9fff]")),  # Chinese characters
    (0.60, re.compile("[\u0530-\u058f\u1000-\u1dff]")),  # Armenian, Georgian, Khmer, Burmese and others
    (1.00, re.compile("[\u2000-\u2fff\u3000-\u303f\uff00-\uffef]|[\U00010000-\U0010ffff]")),  # signs, emoji
)


_LONG_TEXT, _SLICES, _SLICE = 20_000, 10, 1_000
"""Characters from which on a text is long; the number and the length of the slices that are read of it."""


class TextTokens(NamedTuple):
    """Tokens of a text: those of English and code, and those of other languages and scripts.

    They are separate because tokenizers agree much better about the former than about the latter.
    """

    english: float
    other: float


def text_tokens(text: str) -> TextTokens:
    """About how many tokens a text has. Only some slices of a long text are read.

    >>> round(text_tokens("The quick brown fox jumps over the lazy dog.").english)
    10
    >>> text_tokens("").english
    0.0
    """
    if len(text) > _LONG_TEXT:
        step = len(text) // _SLICES
        latin, other = text_tokens("\n".join(text[n * step : n * step + _SLICE] for n in range(_SLICES)))
        scale = len(text) / (_SLICES * _SLICE)
        return TextTokens(latin * scale, other * scale)
    words = _WORD.findall(text)
    latin = (
        _PER_WORD * len(words)
        + _PER_LETTER_MORE * sum(len(word) - _LONG_WORD for word in words if len(word) > _LONG_WORD)
        + _PER_DIGITS * len(_DIGITS.findall(text))
        + _PER_SIGNS * len(_SIGNS.findall(text))
        + _PER_SIGNS_BEFORE_A_WORD * len(_SIGNS_BEFORE_A_WORD.findall(text))
        + _PER_INDENT * len(_INDENTS.findall(text))
    )
    if text.isascii():
        return TextTokens(latin, 0.0)
    other = sum(weight * len(letters.findall(text)) for weight, letters in _SCRIPTS)
    foreign = 0.0
    for weight, accents in ((_WESTERN, _WEST), (_EASTERN, _EAST)):
        share = min(1.0, len(accents.findall(text)) / max(1, len(words)) / _ACCENTS_OF_A_LANGUAGE)
        latin += weight * len(words) * share
        foreign = max(foreign, share)
    return TextTokens(latin * (1 - foreign), other + latin * foreign)
