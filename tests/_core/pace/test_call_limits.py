"""How long a call may take, and how many requests may be in flight: by argument, environment and default.

How timeouts and deadlines are kept is in test_attempt and test_engine.
"""

import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import RequestError, Timeouts
from llm_provider._core.pace.call_limits import (
    UNBOUNDED,
    concurrency,
    concurrency_of_environment,
    default_concurrency,
)

NAMES = ("connect", "first_byte", "idle", "total")
limits = st.builds(
    Timeouts, **dict.fromkeys(NAMES, st.none() | st.floats(0, exclude_min=True, allow_infinity=False))
)


class TestTimeouts:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, 10**400, True, "5", b"", [3]])
    def test_what_is_no_time_is_refused_by_name(self, name: str, value: Any) -> None:
        with pytest.raises(RequestError, match=f"{name} must be a positive number of seconds, not "):
            Timeouts(**{name: value})

    @given(limits, limits)
    def test_each_that_is_not_set_is_the_others(self, mine: Timeouts, others: Timeouts) -> None:
        merged = mine.over(others)
        for name in NAMES:
            own = getattr(mine, name)
            assert getattr(merged, name) == (getattr(others, name) if own is None else own)


@pytest.mark.parametrize(("text", "most"), [("8", 8), (" 32 ", 32), ("", None), ("  ", None)])
def test_a_variable_sets_the_same_limit(monkeypatch: pytest.MonkeyPatch, text: str, most: int | None) -> None:
    monkeypatch.setenv("LLM_PROVIDER_MAX_CONCURRENT", text)
    assert concurrency_of_environment() == concurrency(most)
    monkeypatch.delenv("LLM_PROVIDER_MAX_CONCURRENT")
    assert concurrency_of_environment() is None


@pytest.mark.parametrize("text", ["0", "-8", "8.5", "many", "٣"])
def test_a_text_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("LLM_PROVIDER_MAX_CONCURRENT", text)
    with pytest.raises(RequestError, match="LLM_PROVIDER_MAX_CONCURRENT must be an int of at least 1"):
        concurrency_of_environment()


PROGRAM = """
import resource, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), most))
from llm_provider._core.pace.call_limits import default_concurrency
print(*default_concurrency())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sockets are not files there")
@pytest.mark.parametrize(("files", "most"), [(32, 32), (128, 96), (400, 300)])
def test_the_default_is_bounded_by_the_files_that_a_process_may_open(files: int, most: int) -> None:
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(files)], capture_output=True, text=True, check=True
    )
    assert program.stdout.split() == [str(most), "8"]


def test_the_default_feels_its_way_and_threads_do_not() -> None:
    assert default_concurrency().at_once == 8 < default_concurrency().most <= 1000
    assert UNBOUNDED.at_once == UNBOUNDED.most == sys.maxsize
