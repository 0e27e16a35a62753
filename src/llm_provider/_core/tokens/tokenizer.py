"""The vocabularies of models, and OpenAI's own tokenizer if it is on this machine. Nothing is downloaded.

tiktoken downloads the vocabulary of an encoding when the encoding is first used. So an encoding is used here
only if its file is on disk: in tiktoken's own cache, or inside litellm, which ships some vocabularies.

`weights.csv` has how many tokens each vocabulary makes of words, signs and scripts: a least-squares fit of
relative errors, without negative weights, to the counts of each tokenizer for 7,700 pieces of text: code,
documentation, licences, manual pages and translations of other packages in 41 languages, and made-up numbers,
tables, logs, JSON, addresses, random letters and emoji. No text of this repository is among them, except the
first paragraphs of tests/data/scripts.json. A weight of a script is per character; "runs" are characters of a
script without another between them.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from ..requests.routing import Target, maker_names

_SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
"""Hashes of the vocabulary files of the encodings that current models use. tiktoken knows the same hashes. It
deletes a file with another hash and downloads it again, so such a file is not passed to tiktoken."""

_PIECE = 20_000
"""Characters that are counted at once. A million spaces overflow the stack of tiktoken's regular expressions.
A cut between two pieces adds one token at most."""

_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")

_loading = threading.Lock()


@functools.lru_cache(maxsize=256)
def counter_for(provider: str, model: str) -> Callable[[str], int] | None:
    """A function that counts the tokens of a text as a model of OpenAI does; None if there is none here."""
    vocabulary = vocabulary_of(provider, model)
    if vocabulary not in ENCODINGS or importlib.util.find_spec("tiktoken") is None:
        return None
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model)
    except KeyError:
        # tiktoken does not know new models, nor the names that other hosts give.
        name = vocabulary
    # The encoding of gpt-oss has the same tokens for texts.
    return encoding_counter(name.replace("o200k_harmony", "o200k_base"))


def counter_of_target(target: Target) -> Callable[[str], int] | None:
    """The function of `counter_for` for the tokenizer that a target's host names, else for its model."""
    host = target.route.host
    if host is None or host.tokenizer is None:
        return counter_for(*maker_names(target))
    known = host.tokenizer in ENCODINGS and importlib.util.find_spec("tiktoken") is not None
    return encoding_counter(host.tokenizer) if known else None


@functools.cache
def encoding_counter(name: str) -> Callable[[str], int] | None:
    """A function that counts tokens in an encoding, in half a second and 30 MB; None if it is not here."""
    file = hashlib.sha1(_ADDRESS.format(name).encode(), usedforsecurity=False).hexdigest()
    for folder in _folders():
        with contextlib.suppress(OSError):
            if hashlib.sha256((folder / file).read_bytes()).hexdigest() == _SHA256.get(name):
                break
    else:
        return None
    import tiktoken

    with _loading:
        # tiktoken takes its cache folder only from this variable. litellm sets it permanently when imported.
        before = os.environ.get(_CACHE_VARIABLES[0])
        os.environ[_CACHE_VARIABLES[0]] = str(folder)
        try:
            encoding = tiktoken.get_encoding(name)
        finally:
            if before is None:
                del os.environ[_CACHE_VARIABLES[0]]
            else:
                os.environ[_CACHE_VARIABLES[0]] = before

    def count(text: str) -> int:
        pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
        return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)

    return count


def _folders() -> Iterator[Path]:
    """Folders that may hold a vocabulary: tiktoken's, in its own order, and litellm's."""
    for variable in _CACHE_VARIABLES:
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    yield Path(tempfile.gettempdir(), "data-gym-cache")
    litellm = importlib.util.find_spec("litellm")
    for location in (litellm.submodule_search_locations if litellm is not None else None) or ():
        yield Path(location, "litellm_core_utils", "tokenizers")


VOCABULARIES = ("o200k_base", "cl100k_base", "gemma", "tekken", "deepseek", "qwen", "llama", "qwen_3")
"""OpenAI's two encodings; the vocabularies of Gemma 3, Mistral (Tekken), DeepSeek V4, Qwen 3.6, Llama 3 and
Qwen 3, whose weights of languages were fitted to 6,000 pieces of translations in 90 languages."""

ENCODINGS = VOCABULARIES[:2]
"""The vocabularies that tiktoken has."""

_OLD_OPENAI = re.compile(r"(openai/|ft:)*(gpt-3\.5|gpt-35|gpt-4(-|$)|text-|davinci|babbage|curie|ada)")
_LIKE = tuple(
    (re.compile(pattern), vocabulary)
    for pattern, vocabulary in (
        (r"(.*/)?gpt-oss", "o200k_base"),
        (r"(.*/)?(gemini|gemma|learnlm)", "gemma"),
        (r"(.*/)?(open-)?(mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|voxtral)", "tekken"),
        (r"(.*/)?(deepseek-r1-distill-qwen|qwen-?([12]|3(?!\.[5-9]))|qwq|qvq)", "qwen_3"),
        (r"(.*/)?qwen", "qwen"),
        (r"(.*/)?(deepseek-r1-distill-|meta-)?llama-?[3-9]", "llama"),
        (r"(.*/)?deepseek(?!-r1-distill)", "deepseek"),
    )
)
_OF_PROVIDER = {"gemini": "gemma", "mistral": "tekken", "deepseek": "deepseek"}


def vocabulary_of(provider: str, model: str) -> str | None:
    """The vocabulary of a model, or one like it; None if none is known, as for Anthropic.

    tiktoken names `o200k_base` for all of OpenAI's chat models from gpt-4o to gpt-5, and none newer, so later
    models are assumed to share it. Google does not publish Gemini's vocabulary; Gemma is its open relative.
    """
    name = model.lower()
    if provider == "openai" or name.startswith("openai/"):
        return "cl100k_base" if _OLD_OPENAI.match(name) else "o200k_base"
    return next((like for pattern, like in _LIKE if pattern.match(name)), _OF_PROVIDER.get(provider))


@functools.cache
def load_weights() -> dict[str, dict[str, float]]:
    """Tokens per count of `text.counts`, by vocabulary."""
    rows = [(name, list(map(float, weights))) for name, *weights in _read_table("weights.csv")]
    return {
        vocabulary: {name: weights[column] for name, weights in rows}
        for column, vocabulary in enumerate(VOCABULARIES)
    }


@functools.cache
def load_stop_words() -> dict[str, list[str]]:
    """The languages, with Latin letters, that have a word among their most frequent ones; by word."""
    languages: dict[str, list[str]] = {}
    for language, words in _read_table("stop_words.csv"):
        for word in words.split():
            languages.setdefault(word, []).append(language)
    return languages


def _read_table(name: str) -> list[list[str]]:
    """The rows below the header of a file beside this module. No cell is quoted."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return [line.split(",") for line in lines[1:]]
