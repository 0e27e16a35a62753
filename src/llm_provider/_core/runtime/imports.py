"""Imports of packages that may be missing, and imports that meet another thread or an interrupt.

Where two threads import modules of each other, Python breaks the deadlock: one of them gets a module that
the other has not finished. An SDK then fails with an `ImportError` or `AttributeError` of a "partially
initialized module", and works as soon as the other thread has finished. An interrupt within an import can be
swallowed there, and one within orjson's import ends the process with a segmentation fault.
"""

import contextlib
import importlib
import importlib.metadata
import platform
import signal
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..errors import LLMError, MissingDependencyError
from . import clock

T = TypeVar("T")

LONGEST_IMPORT = 60.0
"""Seconds to wait for the other thread. An SDK takes one or two, on a slow disk ten."""
PAUSE = 0.05
"""Seconds between two attempts."""

_UNFINISHED = ("partially initialized module", "cannot access submodule")
"""Words of CPython's errors. The second is for `package.module` before that module has been imported."""


def exception_chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, its cause, the cause of that, and so on."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def is_unfinished(error: BaseException) -> bool:
    """Whether an error, or one that caused it, comes from a module that another thread still imports."""
    return any(words in str(link) for link in exception_chain(error) for words in _UNFINISHED)


@contextlib.contextmanager
def hold_interrupts() -> Iterator[None]:
    """Let a SIGINT, which Python handles in the main thread alone, wait until a block of imports ends."""
    handler, held = signal.getsignal(signal.SIGINT), []
    try:
        if callable(handler):
            signal.signal(signal.SIGINT, lambda *arguments: held.append(arguments))
    except ValueError:  # this is another thread
        handler = None
    try:
        yield
    finally:
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
            if held:
                handler(*held[-1])


def when_imported(action: Callable[[], T]) -> T:
    """The result of an action that imports modules, repeated for a while as other threads import them too.

    A package that is missing or cannot be loaded is a `MissingDependencyError`, whatever its import raises.
    """
    until = clock.monotonic() + LONGEST_IMPORT
    while True:
        try:
            with hold_interrupts():
                return action()
        except LLMError:
            raise
        except Exception as error:
            if not is_unfinished(error) or clock.monotonic() >= until:
                if isinstance(error, ModuleNotFoundError) and error.name:
                    raise MissingDependencyError(
                        f"the package {error.name!r} is not installed, which this provider needs: pip "
                        "install llm-provider-call installs it, or pip install . in a checkout"
                    ) from None
                raise MissingDependencyError(
                    "a package that this provider needs cannot be loaded, so install it again: "
                    f"{type(error).__name__}: {error}"
                ) from error
        clock.sleep(PAUSE)


def import_optional(module: str, install: str) -> Any:
    """Import a module that few users need; a `MissingDependencyError` has the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(f"{package} is not installed: {install} ({error})") from None


def install_command(extra: str) -> str:
    """The commands that install an extra of this project, for messages.

    >>> install_command("litellm")
    "pip install 'llm-provider-call[litellm]', or '.[litellm]' in a checkout"
    """
    return f"pip install 'llm-provider-call[{extra}]', or '.[{extra}]' in a checkout"


_PACKAGES = (
    "llm-provider-call", "openai", "anthropic", "google-genai", "litellm", "aiohttp", "orjson",
    "jsonschema-rs", "pydantic",
)  # fmt: skip


def describe_versions() -> dict[str, Any]:
    """The versions of Python and of the packages that have to do with an answer."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
