"""Pickles of earlier versions, whose modules had other names."""

import importlib
import pickle
import sys
from collections.abc import Iterator

import pytest

import llm_provider
from llm_provider import RateLimitError
from llm_provider._core.runtime import moved
from support import RunScript

PRESENT = RateLimitError.__module__
OLD, OLDER = "llm_provider._former.errors", "llm_provider._former.room.words"


@pytest.fixture
def former(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A table with two old names, in folders that are gone."""
    names = {OLD: PRESENT, OLDER: "llm_provider._core.words"}
    bare = {old.removeprefix(moved.PACKAGE): name.removeprefix(moved.PACKAGE) for old, name in names.items()}
    monkeypatch.setattr(moved, "MOVED", bare)
    yield
    for name in [name for name in sys.modules if name.startswith("llm_provider._former")]:
        del sys.modules[name]
    vars(llm_provider).pop("_former", None)


def rename(pickled: bytes, present: str, old: str) -> bytes:
    """A pickle of protocol 0, whose names end with lines, with the old name of a module."""
    assert f"c{present}\n".encode() in pickled
    return pickled.replace(f"c{present}\n".encode(), f"c{old}\n".encode())


@pytest.mark.usefixtures("former")
def test_a_pickle_with_old_names_has_the_present_classes() -> None:
    error = RateLimitError("slow", provider="openai", status=429)
    loaded = pickle.loads(rename(pickle.dumps(error, 0), PRESENT, OLD))
    assert type(loaded) is RateLimitError
    assert vars(loaded) == vars(error)
    assert OLD.encode() not in pickle.dumps(loaded)


@pytest.mark.usefixtures("former")
def test_an_old_name_is_the_present_module_and_leaves_it_as_it_is() -> None:
    present = importlib.import_module("llm_provider._core.words")
    spec, name = present.__spec__, present.__name__
    assert importlib.import_module(OLDER) is present
    assert (present.__spec__, present.__name__) == (spec, name)
    folder = importlib.import_module("llm_provider._former")
    assert list(folder.__path__) == []


@pytest.mark.usefixtures("former")
def test_a_name_that_never_was_is_missing() -> None:
    for name in ("llm_provider._former.other", "llm_provider._form", "llm_provider._nothing", "_former"):
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)


@pytest.mark.parametrize("old", moved.MOVED)
def test_every_old_name_is_the_present_module(old: str) -> None:
    present = moved.PACKAGE + moved.MOVED[old]
    assert importlib.import_module(present).__name__ == present
    assert importlib.import_module(moved.PACKAGE + old) is sys.modules[present]


def test_every_public_class_has_an_old_name() -> None:
    """But warnings, what cannot be pickled, and what is younger than the new names."""
    kinds = {getattr(llm_provider, name) for name in llm_provider.__all__}
    homes = {
        kind.__module__.removeprefix(moved.PACKAGE)
        for kind in kinds
        if isinstance(kind, type) and kind.__module__.startswith(moved.PACKAGE)
        if not issubclass(kind, Warning)
        and kind.__name__ not in ("AsyncStream", "Stream", "SecondLevelStore")
        and not kind.__module__.startswith(
            tuple(
                f"{moved.PACKAGE}_features.{room}."
                for room in ("decide", "evaluation", "pictures", "user_limits")
            )
        )
    }
    assert homes <= {*moved.MOVED.values()}


def test_the_table_is_loaded_when_a_module_is_missed(run_script: RunScript) -> None:
    run_script("""
        import sys
        import llm_provider
        from llm_provider import LLMError, call
        try:
            import a_module_that_is_missing
        except ImportError:
            pass
        assert "llm_provider._core.runtime.moved" not in sys.modules
        try:
            import llm_provider._nothing
        except ImportError:
            pass
        assert "llm_provider._core.runtime.moved" in sys.modules
    """)
