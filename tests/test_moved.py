"""Pickles of earlier versions, whose modules had other names."""

import importlib
import pickle
import sys
from collections.abc import Iterator

import pytest

import llm_provider
from llm_provider import LLMError, RateLimitError, _moved
from support import RunScript

OLD, OLDER = "llm_provider._former.errors", "llm_provider._former.room.words"


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A table with two old names, in folders that are gone."""
    monkeypatch.setattr(_moved, "MOVED", {OLD: LLMError.__module__, OLDER: "llm_provider._words"})
    yield
    for name in [name for name in sys.modules if name.startswith("llm_provider._former")]:
        del sys.modules[name]
    vars(llm_provider).pop("_former", None)


def rename(pickled: bytes, present: str, old: str) -> bytes:
    """A pickle of protocol 0, whose names end with lines, with the old name of a module."""
    assert f"c{present}\n".encode() in pickled
    return pickled.replace(f"c{present}\n".encode(), f"c{old}\n".encode())


@pytest.mark.usefixtures("moved")
def test_a_pickle_with_old_names_has_the_present_classes() -> None:
    error = RateLimitError("slow", provider="openai", status=429)
    loaded = pickle.loads(rename(pickle.dumps(error, 0), RateLimitError.__module__, OLD))
    assert type(loaded) is RateLimitError
    assert vars(loaded) == vars(error)
    assert OLD.encode() not in pickle.dumps(loaded)


@pytest.mark.usefixtures("moved")
def test_an_old_name_is_the_present_module_and_leaves_it_as_it_is() -> None:
    present = importlib.import_module("llm_provider._words")
    spec, name = present.__spec__, present.__name__
    assert importlib.import_module(OLDER) is present
    assert (present.__spec__, present.__name__) == (spec, name)
    folder = importlib.import_module("llm_provider._former")
    assert list(folder.__path__) == []


@pytest.mark.usefixtures("moved")
def test_a_name_that_never_was_is_missing() -> None:
    for name in ("llm_provider._former.other", "llm_provider._form", "llm_provider._nothing", "_former"):
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)


def test_every_present_name_is_a_module_and_no_old_one_is() -> None:
    for old, present in _moved.MOVED.items():
        assert importlib.import_module(present).__name__ == present
        assert importlib.import_module(old) is sys.modules[present], f"{old} is a module still"


def test_the_table_is_loaded_when_a_module_is_missed(run_script: RunScript) -> None:
    run_script("""
        import sys
        import llm_provider
        from llm_provider import LLMError, call
        try:
            import a_module_that_is_missing
        except ImportError:
            pass
        assert "llm_provider._moved" not in sys.modules
        try:
            import llm_provider._nothing
        except ImportError:
            pass
        assert "llm_provider._moved" in sys.modules
    """)
