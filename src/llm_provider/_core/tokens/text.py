"""How many tokens a text probably has, judged by its words, signs and scripts, without a tokenizer. Pure.

The number is a weighted sum of counts, such as the letters of long words, with weights for each vocabulary.
`python -m benchmarks tokens` measures the error against real tokenizers.
"""

import re
from collections import Counter
from typing import NamedTuple

from .tokenizer import load_stop_words, load_weights

_WORD = re.compile("[A-ZÀ-Þ]?[a-zß-ɏ\u1e00-\u1eff\u0300-\u036f]+|[A-ZÀ-Þ\u0100-\u024f\u1e00-\u1eff]+")
_DIGITS = re.compile(r"[0-9]+")
_SIGNS = re.compile(r"[!-/:-@\[-^`{-~]+|_+")
_SIGN_BEFORE_A_WORD = re.compile(r"[!-/:-@\[-`{-~](?=[A-Za-z])")
_NUMBER_AFTER_A_SPACE = re.compile(" [0-9]")
_INDENTS = re.compile("  +|\t+")
_HEXADECIMAL = re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{4,}\b")
_LONG_RUN = re.compile(r"[A-Za-z0-9+/=_-]{20,}")
_CHANGE = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_CHANGES_OF_RANDOM_LETTERS = 0.42
"""Changes between small letters, capitals and digits per character, from which on a run of 20 characters or
more counts as random, such as base64. Names in camel case have fewer."""

_LONG_WORD, _VERY_LONG_WORD = 6, 11

_LEAST_STOP_WORDS, _SHARE_OF_STOP_WORDS, _BEFORE_ENGLISH = 2, 0.08, 1.2
"""A text is in the language of most of its stop words if these are so many different ones, this share of its
words, and this many times those of English."""

_SCRIPTS = {
    "western": "À-ÖØ-öø-ÿ",
    "eastern": "Ā-ɏ",
    "vietnamese letter": "\u0300-\u036f\u1e00-\u1eff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "cyrillic": "\u0400-\u052f",
    "hebrew": "\u0590-\u05ff",
    "arabic": "\u0600-\u06ff\ufb50-\ufdff",
    "devanagari": "\u0900-\u097f",
    "bengali": "\u0980-\u09ff",
    "tamil": "\u0b80-\u0bff",
    "indic": "\u0a00-\u0b7f\u0c00-\u0dff",
    "thai": "\u0e00-\u0eff",
    "hangul": "\u1100-\u11ff\uac00-\ud7af",
    "kana": "\u3040-\u30ff",
    "chinese": "\u3400-\u9fff\uf900-\ufaff",
    "caucasian": "\u0530-\u058f\u10a0-\u10ff",
    "southeast": "\u1000-\u109f\u1780-\u17ff",
    "wide sign": "\u3000-\u303f\uff00-\uffef",
    "punctuation": "\u00a0-\u00bf\u2010-\u203e",
    "symbol": "\u00d7\u00f7\u2040-\u2bff",
    "joiner": "\ufe0f\u200b-\u200f\u20e3\U0001f3fb-\U0001f3ff",
    "flag": "\U0001f1e6-\U0001f1ff",
    "emoji": "\U00010000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0010ffff",
    "other": "\u0080-\u009f\u0250-\u02ff\u0700-\u08ff\u0f00-\u0fff\u1200-\u177f\u1800-\u1dff\u2000-\u200a"
    "\u2c00-\u2fff\u3100-\u33ff\ua000-\uabff\ud7b0-\uf8ff\ufe00-\ufe0e\ufe10-\ufeff\ufff0-\uffff",
}
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")
_RUN = re.compile("|".join(f"(?P<{name.replace(' ', '_')}>[{block}]+)" for name, block in _SCRIPTS.items()))
_ACCENTS = ("western", "eastern", "vietnamese_letter")
_RUSSIAN_LETTERS = re.compile("[ыэёЫЭ]")
_LEAST_RUSSIAN_LETTERS = 0.01
"""Share of the letters from which on Cyrillic text is Russian. Vocabularies know Russian best."""

_LETTERS_OF_A_LANGUAGE = {
    "czech": "ěřů",
    "german": "ß",
    "hungarian": "őű",
    "polish": "łąęż",
    "portuguese": "ãõ",
    "romanian": "țșă",
    "spanish": "ñ¿",
    "turkish": "ğış",
    "vietnamese": "ơưđạảấầếềộợ",
}
"""Letters that few other languages have. Each counts as a stop word."""

_LONG_TEXT, _SLICES, _SLICE = 20_000, 10, 1_000
"""Characters from which on a text is long; the number and the length of the slices that are read of it."""


class TextTokens(NamedTuple):
    """Tokens of English and code, and of other languages, where tokenizers differ much more."""

    english: float
    other: float


def text_tokens(text: str, vocabulary: str = "o200k_base") -> TextTokens:
    """About how many tokens a text has in a vocabulary. Only some slices of a long text are read."""
    if len(text) > _LONG_TEXT:
        step = len(text) // _SLICES
        slices = "\n".join(text[number * step : number * step + _SLICE] for number in range(_SLICES))
        english, other = text_tokens(slices, vocabulary)
        scale = len(text) / (_SLICES * _SLICE)
        return TextTokens(english * scale, other * scale)
    weights = load_weights()[vocabulary]
    parts = (
        sum((weights.get(name, 0.0) * count for name, count in part.items()), 0.0) for part in counts(text)
    )
    return TextTokens(*parts)


def counts(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """The counts that the weights belong to: for English and code, and for other languages.

    >>> english, other = counts("Straße 1234")
    >>> english["digit groups"], other
    (2, {'western': 1, 'western runs': 1})
    """
    other = {} if text.isascii() else _scripts(text)
    rest, random = _remove_random_letters(text)
    words = _WORD.findall(rest)
    capitals = [len(word) for word in words if len(word) > 1 and word.isupper()]
    numbers = [len(run) for run in _DIGITS.findall(rest)]
    signs = [len(run) for run in _SIGNS.findall(rest)]
    english = {
        **random,
        "capitals": sum(capitals),
        "digits": sum(numbers),
        "digit groups": sum((length + 2) // 3 for length in numbers),
        "numbers": len(numbers),
        "numbers after spaces": len(_NUMBER_AFTER_A_SPACE.findall(rest)),
        "signs": len(signs),
        "further signs": sum(signs) - len(signs),
        "signs before words": len(_SIGN_BEFORE_A_WORD.findall(rest)),
        "lines": rest.count("\n"),
        "indents": len(_INDENTS.findall(rest)),
    }
    language = _language_of(rest, words)
    small = [len(word) for word in words if len(word) == 1 or not word.isupper()]
    if language is None:
        english["words"] = len(small)
        for name, least in (("long words", _LONG_WORD), ("very long words", _VERY_LONG_WORD)):
            english[name] = sum(length - least for length in small if length > least)
    else:
        other = {name: count for name, count in other.items() if not name.startswith(_ACCENTS)}
        other[f"{language} words"], other[f"{language} letters"] = len(small), sum(small)
    return english, other


def _remove_random_letters(text: str) -> tuple[str, dict[str, int]]:
    """The text without hexadecimal numbers and base64, and how many characters these have."""
    hexadecimal = _HEXADECIMAL.findall(text)
    if hexadecimal:
        text = _HEXADECIMAL.sub("\0", text)
    before = len(text)
    removed = 0

    def remove(match: re.Match[str]) -> str:
        nonlocal removed
        run = match[0]
        if len(_CHANGE.findall(run)) < _CHANGES_OF_RANDOM_LETTERS * len(run):
            return run
        removed += 1
        return "\0"

    text = _LONG_RUN.sub(remove, text)
    return text, {"hexadecimal": sum(map(len, hexadecimal)), "random letters": before - len(text) + removed}


def _language_of(text: str, words: list[str]) -> str | None:
    """The language of most stop words and accents; None for English, for code and where there are few."""
    votes: dict[str, int] = {}
    different: dict[str, int] = {}
    if not text.isascii():
        for language, letters in _LETTERS_OF_A_LANGUAGE.items():
            letters_found = sum(map(text.count, letters))
            if letters_found:
                votes[language], different[language] = letters_found, 1
    languages = load_stop_words()
    for word, count in Counter(words).items():
        for language in languages.get(word.lower(), ()):
            votes[language] = votes.get(language, 0) + count
            different[language] = different.get(language, 0) + 1
    english = votes.pop("english", 0)
    if not votes:
        return None
    language = max(votes, key=votes.__getitem__)
    least = max(_SHARE_OF_STOP_WORDS * len(words), _BEFORE_ENGLISH * english)
    return language if votes[language] >= least and different[language] >= _LEAST_STOP_WORDS else None


def _scripts(text: str) -> dict[str, int]:
    """The characters of each script that is not ASCII, and the runs of such characters."""
    counts: dict[str, int] = {}
    # Most characters of most texts are ASCII, which the long expression is slow to pass.
    for run in (run for piece in _BEYOND_ASCII.findall(text) for run in _RUN.finditer(piece)):
        name = run.lastgroup or ""
        counts[name] = counts.get(name, 0) + run.end() - run.start()
        counts[f"{name} runs"] = counts.get(f"{name} runs", 0) + 1
    letters = counts.get("cyrillic", 0)
    if letters and len(_RUSSIAN_LETTERS.findall(text)) >= _LEAST_RUSSIAN_LETTERS * letters:
        counts["russian"], counts["russian runs"] = counts.pop("cyrillic"), counts.pop("cyrillic runs")
    return counts
