"""The lifecycle of a call: timing, price, deadlines, storing."""

from pathlib import Path

from llm_provider import Client, Response
from llm_provider.simulator import Simulator
from support import RunScript

MODEL = "gpt-6.1-sol"


def test_timing_adds_up(client: Client, simulator: Simulator) -> None:
    client.call(MODEL, "warm up")
    simulator.configure(latency=0.2)
    timing = client.call(MODEL, "timed").timing
    assert timing.attempts == 1
    assert 0 <= timing.queue <= timing.total - 0.2
    assert timing.overhead < timing.total - 0.2 + 0.001
    with Client(cache_dir=client.cache.directory, max_concurrent=1) as narrow:
        waited = narrow.call_many(MODEL, ["first", "second"])
    assert max(answer.timing.queue for answer in waited if isinstance(answer, Response)) >= 0.05


def test_warnings_made_errors_lose_no_answer(
    simulator: Simulator, run_warm_script: RunScript, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.csv"
    header = "provider,model,variant,min_input_tokens,input,cache_read,cache_write,cache_write_1h,output"
    prices.write_text(
        f"{header},effective_from,source,as_of\nopenai,partly,standard,0,1,,,,,,me,2026-11-20\n"
    )
    ended = run_warm_script(
        f"""
        from llm_provider import Client
        with Client(prices={str(prices)!r}, cache_dir="/dev/null") as client:
            print(client.call("openai/partly", "What is 1+1?"))
        """
    )
    assert ended.stdout == "2\n"
