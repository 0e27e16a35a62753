"""API keys: from the client's settings and the environment to accounts. A key shows itself nowhere.

An account is what a provider limits and bills as one; it has one key or several. Lists of accounts come
from `Client(keys=)` or from variables named in the plural. With more than one key, `_rings` decides which one
sends.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from .._errors import MissingAPIKeyError, RequestError

KeyList: TypeAlias = str | Sequence[str | Sequence[str]]
"""One key, or a list of accounts: each a key, or a list of the keys that share one account."""


class APIKey:
    """A secret. `reveal()` is the only way to the text; `identity` tells keys apart without it.

    Raises:
        RequestError: the text cannot be sent in a header: it is empty, or not printable ASCII.

    >>> APIKey("sk-secret")
    APIKey(746b4ad1ca9129e1)
    """

    __slots__ = ("_text", "identity")

    def __init__(self, text: str) -> None:
        if not text or not text.isascii() or not text.isprintable() or " " in text:
            # Transports refuse such a header too, but quote it, and the key with it, in their error. A
            # traceback that shows local variables shall not have it either, and has to show `self`.
            del text
            self.identity = "invalid"
            raise RequestError("an API key must be printable ASCII without spaces; is it cut or mistyped?")
        self._text = text
        self.identity = hashlib.sha256(text.encode()).hexdigest()[:16]

    def reveal(self) -> str:
        """The key itself."""
        return self._text

    def scrub(self, text: str) -> str:
        """`text` with every occurrence of the key blotted out: providers quote keys in their errors."""
        return text.replace(self._text, "***") if len(self._text) >= 6 else text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, APIKey) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"APIKey({self.identity})"

    def __reduce__(self) -> str:
        raise TypeError("an APIKey is not pickled, so that no key ends up in a file")


NO_KEY = APIKey("not-needed")
"""What stands in for a key where the server may want none: the SDKs insist on some text."""


Accounts: TypeAlias = tuple[tuple[APIKey, ...], ...]
"""Keys by account, in the order given; no key twice, no account empty."""


class KeyWarning(UserWarning):
    """An API key is not used any more, because its provider does not serve it.

    The message names the key by its fingerprint, which is the `key` of `ScopeStatistics`.
    """


_of_environment = functools.lru_cache(maxsize=64)(APIKey)
"""Keys that were met before: the same few come with every call."""


def find_key(
    provider: str, variables: Sequence[str], *, given: APIKey | None, accounts: Accounts, required: bool
) -> APIKey:
    """The key of a call: its own, else the first of the accounts, else the environment's single one.

    Args:
        provider: The route's name.
        variables: Environment variables to look in, first found wins.
        given: The call's `api_key`.
        accounts: What `find_accounts` has found.
        required: False where the server may want none; a stand-in is sent then.

    Raises:
        MissingAPIKeyError: a key is required and none is there; the message names the variables.
    """
    if given is not None:
        return given
    if accounts:
        return accounts[0][0]
    for variable in variables:
        if os.environ.get(variable, "").strip():
            # Without a name of its own, as this frame is in the traceback if it turns out to be no key.
            return _of_environment(os.environ[variable].strip())
    if required:
        raise MissingAPIKeyError(
            f"no API key for {provider}: set {' or '.join(variables)}, or pass api_key=", provider=provider
        )
    return NO_KEY


def find_accounts(
    provider: str, variables: Sequence[str], configured: Mapping[str, Accounts]
) -> Accounts | None:
    """The accounts of a provider: the client's, else those of the first variable that lists any.

    Args:
        provider: The route's name.
        variables: Those of its single key; beside `OPENAI_API_KEY`, lists are looked for in
            `OPENAI_API_KEYS`, then in `OPENAI_KEYS`.
        configured: The client's accounts by provider.

    Returns:
        None where neither is set: there is one key at most, and `find_key` looks for it.

    Raises:
        RequestError: a listed key cannot be sent; the message names the variable.
    """
    if provider in configured:
        return configured[provider]
    for variable in variables:
        for name in (f"{variable}S", f"{variable.removesuffix('_API_KEY')}_KEYS"):
            accounts = _listed(name)
            if accounts:
                return accounts
    return None


def sealed(keys: Mapping[str, KeyList], providers: Collection[str]) -> dict[str, Accounts]:
    """`Client(keys=)`, checked.

    Args:
        keys: A key or a list of accounts by provider; in a list, a list is one account.
        providers: The names that are known.

    Raises:
        RequestError: an unknown provider, no key, something that is not text or cannot be sent.

    >>> sealed({"openai": ["sk-a", ["sk-b1", "sk-b2"]]}, ["openai"])  # doctest: +ELLIPSIS
    {'openai': ((APIKey(...),), (APIKey(...), APIKey(...)))}
    """
    if not isinstance(keys, Mapping):
        raise RequestError(f"keys must be a dict of keys by provider, not {type(keys).__name__}")
    # Not shown where it may be a key in the wrong place.
    unknown = [
        name if isinstance(name, str) and name.isidentifier() and len(name) <= 20 else "***"
        for name in keys
        if name not in providers
    ]
    if unknown:
        raise RequestError(f"keys names no provider: {', '.join(unknown)}; known: {', '.join(providers)}")
    return {provider: _accounts(provider, given) for provider, given in keys.items()}


def _accounts(provider: str, given: KeyList) -> Accounts:
    where = f"keys[{provider!r}]"
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, (list, tuple)) or not listed:
        raise RequestError(f"{where} must be a non-empty str, or a list of keys and of lists of keys")
    accounts = []
    for place, account in enumerate(listed):
        keys = [account] if isinstance(account, str) else account
        if not isinstance(keys, (list, tuple)) or not keys:
            raise RequestError(f"{where}[{place}] must be a non-empty str, or a list of keys of one account")
        for key in keys:
            if not isinstance(key, str) or not key:
                raise RequestError(f"{where}[{place}] holds {type(key).__name__}, not a non-empty str")
            if "," in key:
                raise RequestError(f"{where}[{place}] holds a comma; several keys are given as a list of str")
        accounts.append([APIKey(key) for key in keys])
    return _distinct(accounts)


def _listed(name: str) -> Accounts:
    """The accounts in a variable: commas or line breaks between them, spaces between keys of one."""
    texts = [account.split() for account in re.split(r"[,\r\n]", os.environ.get(name, ""))]
    try:
        return _distinct([[_of_environment(text) for text in account] for account in texts])
    except RequestError as error:
        problem = error.message
    # Raised apart from the first error, whose traceback has the texts among its local variables.
    del texts
    raise RequestError(f"{name}: {problem}")


def _distinct(accounts: Sequence[Sequence[APIKey]]) -> Accounts:
    """Without what is mentioned a second time, and without what is empty then."""
    seen: set[APIKey] = set()
    kept = []
    for account in accounts:
        fresh = tuple(key for key in dict.fromkeys(account) if key not in seen)
        seen.update(fresh)
        if fresh:
            kept.append(fresh)
    return tuple(kept)
