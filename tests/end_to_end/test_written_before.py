"""What users have of the version before the modules moved is read, continued and written as it was.

`tests/data/before_the_wall/written.zip` has every kind of file, written by the commit that `write.py` beside
it names, and the values that this commit read from them. An entry that is written today differs from it in
the numbers `created` and `seconds` of its head and by its fields `plain` and `decoded`, which older versions
do not read, and therefore in the checksum of 16 bytes before the head.
"""

import fcntl
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import pickle
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import llm_provider
from llm_provider.simulator import Simulator

FOLDER = Path(__file__).parents[1] / "data" / "before_the_wall"
PUBLIC = FOLDER / "public.json"
_spec = importlib.util.spec_from_file_location("before_the_wall", FOLDER / "write.py")
assert _spec is not None
assert _spec.loader is not None
write = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(write)

with zipfile.ZipFile(FOLDER / "written.zip") as archive:
    VALUES: dict[str, Any] = json.loads(archive.read("values.json"))


@pytest.fixture
def addressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of the files, of which none may run."""
    for name, value in Simulator(port=write.PORT).environment("mistral").items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def port(addressed: None) -> Iterator[None]:
    """The only use of the port of the files on this machine, for as long as a test takes."""
    with (Path(tempfile.gettempdir()) / f"llm-provider-port-{write.PORT}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    unpacked: Path = write.unpack(tmp_path / "written")
    return unpacked


def as_json(value: object) -> object:
    return json.loads(json.dumps(value, sort_keys=True, default=repr))


@pytest.mark.usefixtures("addressed")
@pytest.mark.parametrize("name", write.READ)
def test_files_are_read(name: str, folder: Path) -> None:
    before = write.read_entries(folder)
    assert as_json(write.READ[name](folder)) == VALUES[name]
    assert write.read_entries(folder) == before, "nothing is written again"


@pytest.mark.usefixtures("port")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", write.CONTINUE)
@pytest.mark.sampled(2)
def test_what_is_under_way_goes_on(name: str, folder: Path) -> None:
    write.refresh(folder)
    assert as_json(write.CONTINUE[name](folder)) == VALUES[name]


CLOCK = re.compile(rb'(?<="created":)\d+|(?<="created_at":)\d+|(?<="at":)[\d.]+')
"""The simulator's clock in its replies, and the time of a host's probe, whose digits vary in number."""


def split(key: str, value: bytes) -> tuple[list[tuple[str, Any]], bytes, bytes]:
    """Head, reply and question of an entry, whose first checksum holds, without times and new fields."""
    start = value.index(b"\n", 16) + 1
    head = json.loads(value[16:start])
    assert head.pop("plain", True) is True
    head.pop("decoded", None)
    end = start + head["size"]
    assert value[:16] == hashlib.sha256(key.encode() + value[16:end]).digest()[:16]
    reply = CLOCK.sub(b"", value[start:end])
    times = {"created": None, "seconds": None, "size": len(reply)}
    return list({**head, **times}.items()), reply, value[end:]


def without_additions(parts: tuple[list[tuple[str, Any]], bytes, bytes]) -> tuple[Any, ...]:
    """An entry of litellm's without the fields that a release of litellm adds to a reply, or leaves out."""
    head, reply, question = parts
    fields = json.loads(reply.replace(b'"created":,', b""))
    answers = [
        (
            {name: choice["message"].get(name) for name in ("role", "content", "tool_calls")},
            choice["finish_reason"],
        )
        for choice in fields.get("choices", ())
    ]
    totals = {name: count for name, count in fields["usage"].items() if not isinstance(count, dict)}
    return dict(head) | {"size": None}, answers, fields.get("data"), totals, question


@pytest.mark.usefixtures("port")
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:Accessing the 'model_.*fields'")  # by litellm's own code
@pytest.mark.parametrize("kind", write.KINDS)
def test_the_same_questions_are_stored_as_before(kind: str, folder: Path, tmp_path: Path) -> None:
    with Simulator(port=write.PORT), write.make_client(tmp_path / "now") as client:
        assert not any(answer.cached for _, answer in write.ask(client, kind))
    before, now = write.read_entries(folder), write.read_entries(tmp_path / "now")
    assert sorted(now) == json.loads((folder / "keys.json").read_text())[kind]
    for key, (value, tag) in now.items():
        stored, stored_tag = before[key]
        parts, stored_parts = split(key, value), split(key, stored)
        if kind == "litellm":
            parts, stored_parts = without_additions(parts), without_additions(stored_parts)
        assert (parts, tag) == (stored_parts, stored_tag)


LOAD = """
import pickle, sys, zipfile
assert not any(name.startswith("llm_provider") for name in sys.modules)
with zipfile.ZipFile(sys.argv[1]) as archive:
    values = {name: pickle.loads(archive.read(name)) for name in archive.namelist()}
import llm_provider
errors = [value for name, value in values.items() if name.startswith("error ")]
assert all(isinstance(error, llm_provider.LLMError) for error in errors)
print(len(values), len(errors))
"""


def test_pickles_are_loaded_by_a_process_that_has_imported_nothing(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, folder / "pickles.zip"], capture_output=True, text=True, check=True
    )
    kinds = [getattr(llm_provider, name) for name in llm_provider.__all__]
    errors = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, llm_provider.LLMError)]
    errors.remove(llm_provider.TooManyErrorsError)  # it is younger
    assert done.stdout.split() == [str(len(VALUES["read_pickles"])), str(len(errors))]


def test_what_is_loaded_can_be_pickled_again(folder: Path) -> None:
    with zipfile.ZipFile(folder / "pickles.zip") as archive:
        for name in archive.namelist():
            value = pickle.loads(archive.read(name))
            again = pickle.loads(pickle.dumps(value))
            assert as_json(write.describe(again)) == VALUES["read_pickles"][name], name


MODULES = (
    "llm_provider", "llm_provider.ray", "llm_provider.simulator", "llm_provider.pytest_plugin",
    "llm_provider.simulator.pytest_plugin", "llm_provider.integrations.conversation",
    "llm_provider.integrations.dspy", "llm_provider.integrations.inspect_ai",
    "llm_provider.integrations.llm", "llm_provider.integrations.lm_eval",
)  # fmt: skip
"""Every module that users and other tools import by its name."""
NEED_A_TOOL = {"dspy", "inspect_ai", "llm", "lm_eval"}
"""Integrations whose tool has an environment of its own: `make test-plugins` loads them."""
PROGRAMS = ("llm_provider", "llm_provider.simulator")
"""What `python -m` runs."""
MADE_BY_THE_LIBRARY = {"AsyncStream", "Batch", "Estimates", "Ledger", "Message", "Stream"}
"""Public classes that users do not construct, and a union, which has parameters on newer Pythons only."""
ENTRY_POINTS = list(importlib.metadata.distribution("llm-provider-call").entry_points)


def describe_public() -> dict[str, Any]:
    """Every public name and member, those that can be called with their parameters and defaults."""
    described: dict[str, Any] = {}
    for module in ("llm_provider", "llm_provider.simulator", "llm_provider.ray"):
        names = importlib.import_module(module)
        for name in sorted(names.__all__):
            value = getattr(names, name)
            described[f"{module}.{name}"] = "" if name in MADE_BY_THE_LIBRARY else sign(value)
            for member in sorted(vars(value)) if inspect.isclass(value) else ():
                if not member.startswith("_"):
                    described[f"{module}.{name}.{member}"] = sign(getattr(value, member))
    for entry in ENTRY_POINTS:
        private = entry.module.startswith("llm_provider._")
        described[f"{entry.group}: {entry.name}"] = "" if private else entry.value
    described["extras"] = sorted(
        importlib.metadata.metadata("llm-provider-call").get_all("Provides-Extra") or []
    )
    return described


def sign(value: Any) -> str:
    """The parameters of what can be called, without their types; else nothing."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x\w+", "", text)


def test_public_names_and_signatures_are_as_they_were() -> None:
    before, now = json.loads(PUBLIC.read_text(encoding="utf-8")), describe_public()
    assert {name: now.get(name) for name in before} == before
    # A new name is written by `python tests/end_to_end/test_written_before.py`.
    assert now.keys() == before.keys()


def load_if_its_tool_is_there(module: str) -> Any:
    """The module of an integration, or only where it is."""
    tool = module.rpartition(".")[2]
    if tool in NEED_A_TOOL and importlib.util.find_spec(tool) is None:
        return importlib.util.find_spec(module)
    return importlib.import_module(module)


@pytest.mark.parametrize("name", MODULES)
def test_every_public_module_is_imported_by_its_name(name: str) -> None:
    loaded = load_if_its_tool_is_there(name)
    assert loaded is not None
    assert getattr(loaded, "name", loaded.__name__ if inspect.ismodule(loaded) else "") == name


@pytest.mark.parametrize("entry", ENTRY_POINTS, ids=lambda entry: f"{entry.group}-{entry.name}")
def test_every_entry_point_has_its_object(entry: importlib.metadata.EntryPoint) -> None:
    loaded = load_if_its_tool_is_there(entry.module)
    assert loaded is not None
    assert not entry.attr or callable(getattr(loaded, entry.attr))


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run_by_their_modules(program: str) -> None:
    done = subprocess.run([sys.executable, "-m", program, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--help" in done.stdout


if __name__ == "__main__":
    PUBLIC.write_text(json.dumps(describe_public(), indent=1) + "\n", encoding="utf-8")
