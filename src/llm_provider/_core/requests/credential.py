"""`Credential`: what authorises requests, `APIKey`, the one whose text never changes, and `EnvFile`."""

import abc
import hashlib
import io
import os
from typing import ClassVar

from ..errors import RequestError
from ..runtime.files import check_path, read_text

_SHORTEST_SCRUBBED = 6
"""Characters of a key, or of its beginning, that are too few to be told from other text."""


class Credential(abc.ABC):
    """What authorises requests. `identity`, a fingerprint that never changes, tells accounts apart."""

    __slots__ = ("identity",)

    identity: str
    is_static: ClassVar[bool]
    """Whether it is an `APIKey`, whose text SDK clients keep. Others give headers for each request."""

    def reveal(self) -> str:
        """The text that an SDK's client keeps. It is of no use where each request has headers of its own."""
        return "unused"

    async def headers(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """The headers of a request whose credential is not static; an `LLMError` if there is no token."""
        raise NotImplementedError

    async def prepare(self) -> None:
        """Fetch what the headers need, if it is not here. A failure is raised by `headers`."""
        raise NotImplementedError

    def invalidate(self, headers: dict[str, str]) -> None:
        """Use the token of these headers no longer, because a provider has refused it."""
        raise NotImplementedError

    def correct_clock(self, headers: dict[str, str], date: str) -> bool:
        """Whether these headers were refused because of this machine's clock. Later ones are not."""
        raise NotImplementedError

    @abc.abstractmethod
    def scrub(self, text: str) -> str:
        """`text` without its secrets, since providers quote them in their errors."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity})"

    def __reduce__(self) -> str:
        raise TypeError(f"an {type(self).__name__} cannot be pickled, so that no key is written to a file")


class APIKey(Credential):
    """A secret of printable ASCII. Only `reveal()` returns the text; `identity` is a fingerprint.

    >>> APIKey("sk-secret")
    APIKey(746b4ad1ca9129e1)
    """

    __slots__ = ("_text",)

    is_static = True

    def __init__(self, text: str) -> None:
        if not text or not text.isascii() or not text.isprintable() or " " in text:
            # HTTP clients refuse such a header too, but their error quotes the key. A traceback that shows
            # local variables must not contain the key either, and must be able to show `self`.
            bearer = text[:7].lower() == "bearer "
            del text
            self.identity = "invalid"
            raise RequestError(
                "an API key must be printable ASCII without spaces; "
                + ("write it without the word Bearer" if bearer else "is it cut or mistyped?")
            )
        self._text = text
        self.identity = hashlib.sha256(text.encode()).hexdigest()[:16]

    def reveal(self) -> str:
        return self._text

    def scrub(self, text: str) -> str:
        """`text` with every occurrence of the key replaced, since providers quote keys in their errors.

        A text that was cut may end with the beginning of the key, which is replaced as well.
        """
        if len(self._text) < _SHORTEST_SCRUBBED:
            return text
        text = text.replace(self._text, "***")
        whole = text.removesuffix("...")
        for length in range(min(len(self._text), len(whole)), _SHORTEST_SCRUBBED - 1, -1):
            if whole.endswith(self._text[:length]):
                return f"{whole[:-length]}***{text[len(whole) :]}"
        return text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, APIKey) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def make_key(where: str, texts: list[str]) -> APIKey:
    """The key in a list of one; a `RequestError` names its place if it cannot be sent."""
    try:
        return APIKey(texts.pop())
    except RequestError as error:
        problem = error.message
    # A new error, because the traceback of the first one may show the text among its local variables.
    raise RequestError(f"{where}: {problem}")


_OWN = "LLM_PROVIDER_"
"""The beginning of this library's own variables, which are settings of a client."""


class EnvFile:
    """API keys and servers of a `.env` file, which get into no environment, `repr` or pickle.

    python-dotenv reads it. It has no variable that only the environment may set.
    """

    __slots__ = ("_values", "path")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from pathlib import Path

        self.path = Path(check_path("env_file", path)).expanduser()
        self._values: dict[str, str] = {}
        problem = self._read()
        if problem is not None:
            raise RequestError(f"env_file: {str(self.path)!r} {problem}")

    def _read(self) -> str | None:
        """Read the file, and return its problem, raised elsewhere: tracebacks may show this frame."""
        from pathlib import Path

        import dotenv
        from dotenv.parser import parse_stream

        try:
            text = read_text(self.path)
        except FileNotFoundError:
            where = "" if self.path.is_absolute() else f" in {str(Path.cwd())!r}"
            return f"is not there{where}: write the path of the file"
        except IsADirectoryError:
            return "is a folder: write the path of the file in it"
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            return "is not UTF-8 text: save it as UTF-8"
        for line in parse_stream(io.StringIO(text)):
            if line.error:
                return f"has line {line.original.line}, which is not NAME=value: correct it"
        variables = dotenv.dotenv_values(stream=io.StringIO(text))
        self._values = {name: value.strip() for name, value in variables.items() if value and value.strip()}
        for name in self._values:
            if name.startswith(_OWN) and os.environ.get(name, "").strip() != self._values[name]:
                setting = name.removeprefix(_OWN).lower()
                return (
                    f"has {name}, which only the environment may set: write Client({setting}=...), or export "
                    "it before the program starts"
                )
        return None

    def get(self, name: str) -> str:
        """The value of a variable; empty if it has none."""
        return self._values.get(name, "")

    def __repr__(self) -> str:
        return f"EnvFile({str(self.path)!r})"

    def __reduce__(self) -> str:
        raise TypeError("an EnvFile cannot be pickled, so that no key is written to a file")
