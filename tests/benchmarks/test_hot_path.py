from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import hot_path
from support import RunScript

ROOT = str(Path(hot_path.__file__).parents[1])


def test_the_hot_path_has_not_grown() -> None:
    """Counts, not times: they do not depend on what else the machine does."""
    name, now = hot_path.measured()
    assert name == hot_path.environment()
    known = hot_path.baselines().get(name)
    if known is None:
        pytest.skip(f"nothing is known of {name}; to measure it: {hot_path.RENEW}")
    assert now.keys() == known.keys(), f"other cases than before; measure anew: {hot_path.RENEW}"
    grown = hot_path.grown(known, now)
    assert not grown, "\n".join(
        [f"The path of a call has grown ({name}):", *grown, f"If it is worth it: {hot_path.RENEW}"]
    )


counts = st.fixed_dictionaries(
    {
        "instructions": st.integers(min_value=100, max_value=10**7),
        "garbage": st.floats(min_value=0, max_value=1000),
        "blocks": st.floats(min_value=0, max_value=10_000),
        "packages": st.just({"llm_provider": 100}),
    }
)


@given(counts, st.sampled_from(sorted(hot_path.LIMITS)))
def test_growth_beyond_its_limit_is_named_and_less_is_not(before: hot_path.Count, name: str) -> None:
    factor, slack = hot_path.LIMITS[name]
    most = before[name] * factor + slack
    assert hot_path.grown({"call": before}, {"call": {**before, name: most}}) == []
    (line,) = hot_path.grown({"call": before}, {"call": {**before, name: most * 1.001 + 0.001}})
    assert line.startswith("call: ")
    assert f" {name}, " in line


def test_packages_that_grew_are_named() -> None:
    before = {"instructions": 1000, "packages": {"llm_provider": 400, "httpx": 600}}
    now = {"instructions": 1500, "packages": {"llm_provider": 300, "httpx": 800, "aiohttp": 400}}
    (line,) = hot_path.grown({"call": before}, {"call": now})
    assert line == "call: 1,500 instructions, 1,000 before (+50 %; aiohttp +400; httpx +200)"


def test_instructions_of_other_threads_are_counted_and_only_while_counting(run_script: RunScript) -> None:
    program = """
        import threading
        from benchmarks.hot_path import Instructions

        def work(times):
            for _ in range(times):
                pass

        def cost(times):
            before = instructions.so_far().get(work.__code__, 0)
            thread = threading.Thread(target=work, args=(times,))
            thread.start()
            thread.join()
            return instructions.so_far().get(work.__code__, 0) - before

        instructions = Instructions()
        with instructions.counting():
            costs = [cost(times) for times in (1000, 2000, 3000)]
        assert costs[2] - costs[1] == costs[1] - costs[0] >= 1000, costs
        assert cost(1000) == 0
    """
    run_script(program, PYTHONPATH=ROOT)
