"""Finds API keys in the client's settings and the environment. No `repr`, message or pickle contains a key.

A provider limits and bills an account; an account has one key or several. Lists of accounts come from
`Client(keys=)` or from variables with a plural name, such as `OPENAI_API_KEYS`. With more than one key,
`_calls/sending/key_pool` decides which one a request uses.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from .._errors import MissingAPIKeyError, RequestError

if TYPE_CHECKING:
    from .env_file import EnvFile

KeyList: TypeAlias = str | Sequence[str | Sequence[str]]
"""One key, or a list of accounts: each a key, or a list of the keys that share one account."""


_SHORTEST_SCRUBBED = 6
"""Characters of a key, or of its beginning, that are too few to be told from other text."""


class APIKey:
    """A secret. Only `reveal()` returns the text; `identity` is a fingerprint that tells keys apart.

    Raises:
        RequestError: the text cannot be sent in a header, because it is empty or not printable ASCII.

    >>> APIKey("sk-secret")
    APIKey(746b4ad1ca9129e1)
    """

    __slots__ = ("_text", "identity")

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
        """The key itself."""
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

    def __repr__(self) -> str:
        return f"APIKey({self.identity})"

    def __reduce__(self) -> str:
        raise TypeError("an APIKey cannot be pickled, so that no key is written to a file")


_SECRET_VARIABLE = re.compile(r"(^|_)(API|ZENAPI)?(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|JWT)S?(_|$)")

_SHORTEST_SECRET = 8


def environment_secrets() -> list[APIKey]:
    """Every key of the environment that another library may find there, for the errors of its calls."""
    sealed = {
        value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST_SECRET and not value.isdigit() and _SECRET_VARIABLE.search(name)
    }
    secrets = []
    for value in sorted(sealed, key=len, reverse=True):
        with contextlib.suppress(RequestError):  # it cannot be sent in a header
            secrets.append(APIKey(value))
    return secrets


NO_KEY = APIKey("not-needed")
"""The key that is sent where the server may need none, since the SDKs require some text."""


Accounts: TypeAlias = tuple[tuple[APIKey, ...], ...]
"""Keys by account, in the order given. No key occurs twice, and no account is empty."""


class KeyWarning(UserWarning):
    """An API key is no longer used, because its provider refuses it.

    The message names the key by its fingerprint, which is the `key` of `ScopeStatistics`.
    """


@functools.lru_cache(maxsize=64)
def _of_environment(value: str) -> APIKey | None:
    """The key in the value of a variable; None if it is blank. Cached, as every call finds the same few."""
    return APIKey(value.strip()) if value.strip() else None


def find_key(
    provider: str, variables: Sequence[str], *, required: bool, env_file: EnvFile | None = None
) -> APIKey:
    """The single key that the environment has for a provider, else that of a `.env` file.

    Args:
        provider: The route's name.
        variables: The environment variables of the key. The first that is set counts.
        required: False where the server may need no key; `NO_KEY` is sent then.
        env_file: The client's `.env` file.

    Raises:
        MissingAPIKeyError: a key is required and there is none; the message names the variables.
    """
    for variable in variables:
        # Not in a variable of its own: if the key is invalid, the traceback shows this frame.
        try:
            if (key := _of_environment(os.environ.get(variable, ""))) is not None:
                return key
            continue
        except RequestError as error:
            problem = error.message
        raise RequestError(f"{variable}: {problem}", provider=provider)
    for variable in variables:
        if env_file is not None and env_file.get(variable):
            return make_key(f"{variable} in {env_file.path}", [env_file.get(variable)])
    if required:
        where = "" if env_file is None else f" (it is not in {env_file.path} either)"
        raise MissingAPIKeyError(
            f"no API key for {provider}: set {' or '.join(variables)}, or pass api_key={where}",
            provider=provider,
        )
    return NO_KEY


def find_accounts(
    provider: str,
    variables: Sequence[str],
    configured: Mapping[str, Accounts],
    env_file: EnvFile | None = None,
) -> Accounts | None:
    """The accounts of a provider: the client's, else those of the first variable that lists any.

    The environment comes before the `.env` file, also with a single key.

    Args:
        provider: The route's name.
        variables: The environment variables of a single key. For `OPENAI_API_KEY`, lists are read from
            `OPENAI_API_KEYS`, then from `OPENAI_KEYS`.
        configured: The client's accounts by provider.
        env_file: The client's `.env` file.

    Returns:
        None where neither is set. Then there is at most one key, which `find_key` finds.

    Raises:
        RequestError: a listed key cannot be sent; the message names the variable.
    """
    if provider in configured:
        return configured[provider]
    names = [
        name
        for variable in variables
        for name in (f"{variable}S", f"{variable.removesuffix('_API_KEY')}_KEYS")
    ]
    for name in names:
        accounts = _read_accounts(name, os.environ)
        if accounts:
            return accounts
    if env_file is None or any(os.environ.get(variable, "").strip() for variable in variables):
        return None
    return next(filter(None, (_read_accounts(name, env_file) for name in names)), None)


def seal_keys(keys: Mapping[str, KeyList], providers: Collection[str]) -> dict[str, Accounts]:
    """Check `Client(keys=)` and return accounts by provider.

    Args:
        keys: A key or a list of accounts by provider. A list inside the list holds the keys of one account.
        providers: The known names of providers.

    Raises:
        RequestError: a provider is unknown, has no key, or has one that is not text or cannot be sent.

    >>> seal_keys({"openai": ["sk-a", ["sk-b1", "sk-b2"]]}, ["openai"])  # doctest: +ELLIPSIS
    {'openai': ((APIKey(...),), (APIKey(...), APIKey(...)))}
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
        if name not in providers
    ]
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0].lower(), providers, n=1)
        guess = f"; did you mean {near[0]!r}?" if near else ""
        raise RequestError(
            f"keys names no provider: {', '.join(unknown)}; known: {', '.join(providers)}{guess}"
        )
    return {provider: _accounts(provider, accounts) for provider, accounts in keys.items()}


def _accounts(provider: str, entries: KeyList) -> Accounts:
    where = f"keys[{provider!r}]"
    listed = [entries] if isinstance(entries, str) else entries
    if not isinstance(listed, (list, tuple)) or not listed:
        raise RequestError(
            f"{where} must be a non-empty str, or a list of keys and of lists of keys, not "
            f"{'an empty list' if listed in ([], ()) else type(entries).__name__}; leave {provider!r} out to "
            "use the key of the environment"
        )
    accounts = []
    for index, account in enumerate(listed):
        keys = [account] if isinstance(account, str) else account
        if not isinstance(keys, (list, tuple)) or not keys:
            raise RequestError(
                f"{where}[{index}] must be a non-empty str, or a list of keys of one account, not "
                f"{type(account).__name__}"
            )
        for key in keys:
            if not isinstance(key, str) or not key:
                raise RequestError(
                    f"{where}[{index}] holds {type(key).__name__}, not a non-empty str: leave "
                    f"{provider!r} out to use the key of the environment"
                )
            if "," in key:
                raise RequestError(f"{where}[{index}] holds a comma; several keys are given as a list of str")
        accounts.append([make_key(f"{where}[{index}]", [key]) for key in keys])
    return _remove_duplicates(accounts)


def make_key(where: str, texts: list[str]) -> APIKey:
    """The key in a list of one, whose error names its place.

    Raises:
        RequestError: it cannot be sent.
    """
    try:
        return APIKey(texts.pop())
    except RequestError as error:
        problem = error.message
    # A new error, because the traceback of the first one may show the text among its local variables.
    raise RequestError(f"{where}: {problem}")


def _read_accounts(name: str, source: Mapping[str, str] | EnvFile) -> Accounts:
    """The accounts in a variable.

    Commas or line breaks separate accounts; spaces separate the keys of one account.
    """
    texts = [account.split() for account in re.split(r"[,\r\n]", source.get(name) or "")]
    try:
        return _remove_duplicates([[APIKey(text) for text in account] for account in texts])
    except RequestError as error:
        problem = error.message
    # A new error, because the traceback of the first one shows the texts among its local variables.
    del texts, source
    raise RequestError(f"{name}: {problem}")


def _remove_duplicates(accounts: Sequence[Sequence[APIKey]]) -> Accounts:
    """Remove keys that occur a second time, and accounts that are empty then."""
    seen: set[APIKey] = set()
    kept = []
    for account in accounts:
        fresh = tuple(key for key in dict.fromkeys(account) if key not in seen)
        seen.update(fresh)
        if fresh:
            kept.append(fresh)
    return tuple(kept)
