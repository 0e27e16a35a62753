"""`find_mismatch`: where an answer does not match, found without stopping the event loop.

A thread does not relieve the loop of C code, which holds Python's lock. So an answer is checked on the loop
if answer and schema are small together, at most about 50 ms; in a thread if Python code checks it; and in a
process if they are large, which is ended after `_MOST_SECONDS`. There a Python type is checked by its JSON
schema alone, because the process does not know the user's modules.
"""

import asyncio
import contextlib
import functools
import json
import os
import sys
import weakref
from collections.abc import MutableMapping

from ..runtime.threads import result_in_thread
from .json_schema import weight_of
from .reading import NoMatchError, read, read_at_once
from .structure import Structure, load_by_schema, strict_json

_MOST_PARTS = 20_000
"""Parts of an answer that are read on the loop: about 10 ms for JSON, and the double for pydantic."""
_MOST_PAIRS = 500_000
"""Parts of an answer times parts of its schema that may meet on the loop. A pair takes up to 0.1 µs."""
_CHARACTERS_PER_PART = 50
"""Text that takes as long as a number."""
_MOST_SECONDS = 10.0
_PROGRAM = """
import json, sys
header = json.loads(sys.stdin.buffer.readline())
sys.path[:] = header.pop("path")
from llm_provider._core.schemas.checking import find_problem_by_schema
text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
json.dump(find_problem_by_schema(text, **header), sys.stdout)
"""

_permits: MutableMapping[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()
"""How many processes each loop may still start."""


async def find_mismatch(text: str, structure: Structure) -> str | None:
    """Where an answer does not match; None if it does. It is for an event loop."""
    if not is_small(text, structure):
        return await _find_in_process(text, structure)
    if not structure.runs_code and read_at_once(text, structure) is not None:
        return None
    return await result_in_thread(functools.partial(find_problem, text, structure), "llm_provider-check")


def find_problem(text: str, structure: Structure) -> str | None:
    """`find_mismatch` for a thread of the user's, which may wait."""
    try:
        read(text, structure)
    except NoMatchError as error:
        return str(error)
    return None


def is_small(text: str, structure: Structure) -> bool:
    """Whether an answer can be checked at once."""
    parts = len(text) // _CHARACTERS_PER_PART + text.count(",") + text.count("[") + text.count("{")
    if structure.schema is None or parts > _MOST_PARTS:
        return parts <= _MOST_PARTS
    return parts * weight_of(json.dumps(structure.schema)) <= _MOST_PAIRS


def find_problem_by_schema(
    text: str, schema: dict[str, object] | None, adaptable: bool, is_object: bool
) -> str | None:
    """Where a text does not match a JSON schema; None if it does."""
    load = strict_json if schema is None else functools.partial(load_by_schema, schema)
    return find_problem(text, Structure("answer", schema, load, adaptable=adaptable, is_object=is_object))


async def _find_in_process(text: str, structure: Structure) -> str | None:
    header = {
        "path": [os.fspath(folder) for folder in sys.path],
        "schema": structure.schema,
        "adaptable": structure.adaptable,
        "is_object": structure.is_object,
    }
    message = json.dumps(header).encode() + b"\n" + text.encode("utf-8", "surrogatepass")
    loop = asyncio.get_running_loop()
    async with _permits.setdefault(loop, asyncio.Semaphore(os.cpu_count() or 1)):
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _PROGRAM, stdin=-1, stdout=-1, stderr=-3
            )
        except OSError as error:
            return f"it is too large to be checked here, and no process can be started: {error}"
        try:
            written, _ = await asyncio.wait_for(process.communicate(message), _MOST_SECONDS)
            problem: str | None = json.loads(written)
        except TimeoutError:
            return f"it takes more than {_MOST_SECONDS:g} s to check"
        except ValueError:
            return "it is too large to be checked here, and the process that checks it has failed"
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
    return problem
