"""OpenAI's own tokenizer, where it is already on this machine. Nothing is ever downloaded for it.

tiktoken fetches the vocabulary of an encoding when it is first used. It is used here only where that file is
on disk: in tiktoken's own cache, or inside litellm, which ships three of them.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

_SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
"""Of the files of the encodings that today's models use, as tiktoken checks them. It deletes one that is
different and fetches it anew, so it is not even asked."""

_PIECE = 20_000
"""Characters that are counted at once: a million spaces overflow the stack of tiktoken's regular expressions.
A cut adds a token at most."""

_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")

_loading = threading.Lock()


@functools.lru_cache(maxsize=256)
def counter_for(provider: str, model: str) -> Callable[[str], int] | None:
    """What counts the tokens of a text exactly as a model does; None where that cannot be had here.

    Args:
        provider: The provider by whom the model is priced.
        model: The model's name there. Only models that tiktoken itself knows are counted.

    >>> counter_for("anthropic", "claude-sonnet-5-5") is None
    True
    """
    if provider != "openai" or importlib.util.find_spec("tiktoken") is None:
        return None
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model)
    except KeyError:
        return None
    return encoding_counter(name)


@functools.cache
def encoding_counter(name: str) -> Callable[[str], int] | None:
    """What counts the tokens of a text in an encoding; None where that is not on this machine.

    It takes about half a second and 30 MB.

    >>> encoding_counter("an encoding that does not exist") is None
    True
    """
    folder = next((folder for folder in _folders() if _is_whole(folder, name)), None)
    if folder is None:
        return None
    import tiktoken

    with _loading:
        # The only way to tell tiktoken where to look; litellm sets it for good when it is imported.
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
    """Where a vocabulary may be, in tiktoken's own order and then inside litellm."""
    for variable in _CACHE_VARIABLES:
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    yield Path(tempfile.gettempdir(), "data-gym-cache")
    litellm = importlib.util.find_spec("litellm")
    for place in (litellm.submodule_search_locations if litellm is not None else None) or ():
        yield Path(place, "litellm_core_utils", "tokenizers")


def _is_whole(folder: Path, name: str) -> bool:
    file = folder / hashlib.sha1(_ADDRESS.format(name).encode(), usedforsecurity=False).hexdigest()
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest() == _SHA256.get(name)
    except OSError:
        return False
