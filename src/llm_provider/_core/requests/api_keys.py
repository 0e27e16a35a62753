"""Finds API keys in the client's settings and the environment. No `repr`, message or pickle contains a key.

A provider limits and bills an account; an account has one key or several. Lists of accounts come from
`Client(keys=)` or from variables with a plural name, such as `OPENAI_API_KEYS`. With more than one key,
`_core/journey/key_pool` decides which one a request uses.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import hashlib
import io
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar, Self, TypeAlias

from .. import doors
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


class SealedText(str):
    """A text that stands for a secret in payloads and cache keys. It does not depend on the secret.

    >>> SealedText("Bearer ", "{authorization of docs}", APIKey("sk-secret"))
    'Bearer {authorization of docs}'
    """

    __slots__ = ("key", "mark")

    key: APIKey
    mark: str
    """The part of the text for which the secret stands in what is sent."""

    def __new__(cls, before: str, mark: str, key: APIKey) -> Self:
        made = super().__new__(cls, before + mark)
        made.mark, made.key = mark, key
        return made

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle has no secret.
        return str, (str(self),)


_known_key = functools.lru_cache(maxsize=64)(APIKey)
"""Cached, as every call finds the same few."""


def make_key(where: str, texts: list[str], provider: str | None = None) -> APIKey:
    """The key in a list of one; a `RequestError` names its place if it cannot be sent."""
    try:
        return _known_key(texts.pop())
    except RequestError as error:
        problem = error.message
    # A new error, because the traceback of the first one may show the text among its local variables.
    raise RequestError(f"{where}: {problem}", provider=provider)


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
        import dotenv
        from dotenv.parser import parse_stream

        try:
            text = read_text(self.path)
        except FileNotFoundError:
            where = "" if self.path.is_absolute() else f" in {os.getcwd()!r}"  # noqa: PTH109 - as in `media`
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


KeyEntry: TypeAlias = "str | Callable[[], str] | Callable[[], Awaitable[str]]"
"""A key, or a function or coroutine function that returns the token of the moment."""

KeyList: TypeAlias = "KeyEntry | Sequence[KeyEntry | Sequence[KeyEntry]]"
"""One key, or a list of accounts: each a key, or a list of the keys that share one account."""

_SECRET_VARIABLE = re.compile(r"(^|_)(API|ZENAPI)?(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|JWT)S?(_|$)")


def environment_secrets() -> list[APIKey]:
    """Every key of the environment that another library may find there, for the errors of its calls."""
    sealed = {
        value
        for name, value in os.environ.items()
        if len(value) >= 8 and not value.isdigit() and _SECRET_VARIABLE.search(name)
    }
    secrets = []
    for value in sorted(sealed, key=len, reverse=True):
        with contextlib.suppress(RequestError):  # it cannot be sent in a header
            secrets.append(APIKey(value))
    return secrets


NO_KEY = APIKey("not-needed")
"""The key that is sent where the server may need none, since the SDKs require some text."""

Accounts: TypeAlias = tuple[tuple[Credential, ...], ...]
"""Keys by account, in the order given. No key occurs twice, and no account is empty."""


class KeyWarning(UserWarning):
    """An API key is no longer used, because its provider refuses it.

    The message names the key by its fingerprint, which is the `key` of `ScopeStatistics`.
    """


def find_written_key(
    provider: str, variables: Sequence[str], env_file: EnvFile | None = None
) -> APIKey | None:
    """The key in the first of some variables that is set, of the environment or else of a `.env` file."""
    for variable in variables:
        # Not in a variable of its own: if the key is invalid, the traceback shows this frame.
        texts = [os.environ.get(variable, "").strip()]
        if texts[0]:
            return make_key(variable, texts, provider)
    for variable in variables:
        if env_file is not None and env_file.get(variable):
            return make_key(f"{variable} in {env_file.path}", [env_file.get(variable)])
    return None


def find_accounts(
    provider: str,
    variables: Sequence[str],
    configured: Mapping[str, Accounts],
    env_file: EnvFile | None = None,
) -> Accounts | None:
    """The accounts of a provider: the client's, else the first variable's that lists any, else None.

    Lists for the variable `OPENAI_API_KEY` are read from `OPENAI_API_KEYS`, then from `OPENAI_KEYS`. The
    environment comes before the `.env` file, also with a single key. Without a list there is at most one key,
    which `find_key` finds. Raises `RequestError`, which names the variable, if a listed key cannot be sent.
    """
    if provider in configured:
        return configured[provider]
    # No variable here holds the environment, which tracebacks would show.
    names = _list_variables(variables)
    for name in names:
        if accounts := _read_accounts(name, os.environ):
            return accounts
    if env_file is None or any(os.environ.get(variable, "").strip() for variable in variables):
        return None
    return next(filter(None, (_read_accounts(name, env_file) for name in names)), None)


def _list_variables(variables: Sequence[str]) -> list[str]:
    return [
        name
        for variable in variables
        for name in (f"{variable}S", f"{variable.removesuffix('_API_KEY')}_KEYS")
    ]


def explain_no_key(variables: Sequence[str]) -> str:
    """The end of the error of a server that needs a key and got `NO_KEY`. litellm finds keys by itself."""
    return f"; no key was sent: {' or '.join(variables)} is not set" if variables else ""


def name_source(key: Credential, variables: Sequence[str], env_file: EnvFile | None) -> str:
    """Where a key comes from, in words: the variable that has it, if one does. Empty for `NO_KEY`."""
    if key == NO_KEY:
        return ""
    sources: tuple[Mapping[str, str] | EnvFile, ...] = (os.environ, env_file or {})
    for source in sources:
        for name in (*variables, *_list_variables(variables)):
            if key.is_static and key.reveal() in re.split(r"[,\s]+", source.get(name) or ""):
                return f"the key of {name}"
    return "the key that was given"


def seal_keys(keys: Mapping[str, KeyList], takes_tokens: Mapping[str, bool]) -> dict[str, Accounts]:
    """Check `Client(keys=)` and return accounts by provider.

    `takes_tokens` says of each provider whether a function may return its tokens.

    A list inside a list holds the keys of one account. `RequestError` if there is none, or it is no text.
    """
    if not isinstance(keys, Mapping):
        raise RequestError(
            f"keys must be a dict of keys by provider, not {type(keys).__name__}: write "
            "{'openai': 'sk-...'}"
        )
    # A name that looks like a key in the wrong place is not shown.
    unknown = [
        name if isinstance(name, str) and name.isidentifier() and len(name) <= 20 else "***"
        for name in keys
        if name not in takes_tokens
    ]
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0].lower(), takes_tokens, n=1)
        guess = f"; did you mean {near[0]!r}?" if near else ""
        raise RequestError(
            f"keys names no provider: {', '.join(unknown)}; known: {', '.join(takes_tokens)}{guess}"
        )
    return {
        provider: _accounts(provider, accounts, takes_tokens[provider]) for provider, accounts in keys.items()
    }


def _accounts(provider: str, entries: KeyList, takes_tokens: bool) -> Accounts:
    where = f"keys[{provider!r}]"
    listed = [entries] if isinstance(entries, str) or callable(entries) else entries
    if not isinstance(listed, (list, tuple)) or not listed or entries == "":
        raise RequestError(
            f"{where} must be a non-empty str, or a list of keys and of lists of keys, not "
            f"{'an empty ' * (entries in ('', [], ()))}{type(entries).__name__}; leave {provider!r} out to "
            "use the key of the environment"
        )
    accounts = []
    for index, account in enumerate(listed):
        keys = [account] if isinstance(account, str) or callable(account) else account
        if not isinstance(keys, (list, tuple)) or not keys:
            raise RequestError(
                f"{where}[{index}] must be a non-empty str, or a list of keys of one account, not "
                f"{type(account).__name__}"
            )
        sealed: list[Credential] = []
        for position, key in enumerate(keys):
            if callable(key):
                name = f"{where}[{index}]" if len(listed) > 1 else where
                name = f"{name}[{position}]" if len(keys) > 1 else name
                if not takes_tokens:
                    raise RequestError(
                        f"{name} must be a str: {provider} takes no tokens that a function returns"
                    )
                sealed.append(doors.token_credential.own_credential(name, key))
                continue
            if not isinstance(key, str) or not key:
                raise RequestError(
                    f"{where}[{index}] holds {type(key).__name__}, not a non-empty str: leave "
                    f"{provider!r} out to use the key of the environment"
                )
            if "," in key:
                raise RequestError(f"{where}[{index}] holds a comma; several keys are given as a list of str")
            sealed.append(make_key(f"{where}[{index}]", [key]))
        accounts.append(sealed)
    return _remove_duplicates(accounts)


def _read_accounts(name: str, source: Mapping[str, str] | EnvFile) -> Accounts:
    """The accounts in a variable: commas or line breaks separate accounts, spaces the keys of one."""
    texts = [account.split() for account in re.split(r"[,\r\n]", source.get(name) or "")]
    try:
        return _remove_duplicates([[APIKey(text) for text in account] for account in texts])
    except RequestError as error:
        problem = error.message
    # A new error, because the traceback of the first one shows the texts among its local variables.
    del texts, source
    raise RequestError(f"{name}: {problem}")


def _remove_duplicates(accounts: Sequence[Sequence[Credential]]) -> Accounts:
    """Remove keys that occur a second time, and accounts that are empty then."""
    seen: set[Credential] = set()
    kept = []
    for account in accounts:
        fresh = tuple(key for key in dict.fromkeys(account) if key not in seen)
        seen.update(fresh)
        if fresh:
            kept.append(fresh)
    return tuple(kept)
