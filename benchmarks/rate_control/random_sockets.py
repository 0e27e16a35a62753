"""Compares a batch with the bare openai SDK over sockets, where a share of requests is refused at random.

    python -m benchmarks.rate_control.random_sockets [--write]

300 calls of 0.2 s are sent with 32 in flight to a simulator in a process of its own, by `call_many` with the
client's default settings and by `AsyncOpenAI` behind a semaphore. The SDK's own retries are its default of
2 for the number of lost calls, and 50 for the time. `--write` puts the table into
benchmarks/results/random_refusals_sockets.md.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

import openai

from llm_provider import Client
from llm_provider.simulator import Fault, Simulator

from .. import report

MODEL = "gpt-6.1-sol"
CALLS, IN_FLIGHT, LATENCY, ROUNDS = 300, 32, 0.2, 3
CASES = (
    ("none", 0.0, 429, None),
    ("10 % 429, Retry-After 1", 0.1, 429, "1"),
    ("2 % 429, Retry-After 1", 0.02, 429, "1"),
    ("10 % 529", 0.1, 529, None),
    ("2 % 529", 0.02, 529, None),
    ("30 % 429, Retry-After 1", 0.3, 429, "1"),
    ("30 % 529", 0.3, 529, None),
)
PROMPTS = [f"What is {number}+1?" for number in range(CALLS)]


def ours(simulator: Simulator) -> tuple[float, int]:
    """Seconds and lost calls of `call_many`."""
    with Client(cache="off", keys={"openai": "sk-any"}, rate_control="independent") as client:
        started = time.perf_counter()
        results = client.call_many(
            MODEL,
            PROMPTS,
            base_url=simulator.url("openai"),
            max_concurrent=IN_FLIGHT,
            progress=False,
        )
        return time.perf_counter() - started, sum(isinstance(result, Exception) for result in results)


def bare(simulator: Simulator, max_retries: int) -> tuple[float, int]:
    """Seconds and lost calls of the SDK."""

    async def main() -> tuple[float, int]:
        slots, lost = asyncio.Semaphore(IN_FLIGHT), 0
        url = simulator.url("openai")
        async with openai.AsyncOpenAI(base_url=url, api_key="sk-any", max_retries=max_retries) as client:

            async def call(prompt: str) -> None:
                nonlocal lost
                async with slots:
                    try:
                        await client.chat.completions.create(
                            model=MODEL, messages=[{"role": "user", "content": prompt}]
                        )
                    except openai.APIStatusError:
                        lost += 1

            started = time.perf_counter()
            await asyncio.gather(*map(call, PROMPTS))
            return time.perf_counter() - started, lost

    return asyncio.run(main())


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the result")
    arguments = parser.parse_args()
    lines = [
        "| refused at random | call_many, s | lost | bare SDK, s | lost with its 2 retries | ratio |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    with Simulator() as simulator:
        for name, share, status, retry_after in CASES:
            simulator.clear()
            simulator.configure(latency=LATENCY)
            if share:
                simulator.inject(Fault(status=status, retry_after=retry_after), times=None, share=share)
            rounds = [(ours(simulator), bare(simulator, 50), bare(simulator, 2)) for _ in range(ROUNDS)]
            us, them = (statistics.fmean(each[place][0] for each in rounds) for place in (0, 1))
            lost, their_lost = (sum(each[place][1] for each in rounds) for place in (0, 2))
            lines.append(f"| {name} | {us:.1f} | {lost} | {them:.1f} | {their_lost} | {us / them:.2f} |")
            print(lines[-1], flush=True)
    if arguments.write:
        report.write_lines(
            "random_refusals_sockets",
            "Refusals at random, over real sockets",
            "rate_control.random_sockets",
            f"{CALLS} calls of {LATENCY} s, {IN_FLIGHT} in flight; mean seconds and sums of lost calls over "
            f"{ROUNDS} interleaved rounds.",
            lines,
        )


if __name__ == "__main__":
    main()
