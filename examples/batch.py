"""Leave a batch at half price and find it again, on a simulator whose day passes in a second.

python examples/batch.py
"""

import os
import tempfile

from llm_provider import Client, Response
from llm_provider.simulator import Simulator

QUESTIONS = [f"What is {number} + {number}?" for number in range(1, 101)]
MODEL = "claude-haiku-5-5"


def main() -> None:
    """Submit, leave, come back, and ask once more from the cache."""
    with (
        Simulator(batch_seconds=43_200, batch_errored=0.05, batch_expired=0.05) as simulator,
        tempfile.TemporaryDirectory() as cache,
    ):
        os.environ.update(simulator.environment())
        with Client(cache_dir=cache) as client:
            print(client.estimate(MODEL, QUESTIONS, max_tokens=50, delivery="batch"))
            batch = client.submit_many(MODEL, QUESTIONS, max_tokens=50)
            print(f"\nsubmitted: {batch}")
        # Another process would do the same: the journal lies beside the cache.
        with Client(cache_dir=cache) as client:
            print(f"found:     {client.batches()[0]}")
            answers = client.call_many(MODEL, QUESTIONS, max_tokens=50, delivery="batch")
            right = sum(
                isinstance(answer, Response) and answer.text == str(2 * number)
                for number, answer in enumerate(answers, 1)
            )
            live = client.call(MODEL, QUESTIONS[0], max_tokens=50)
            print(f"right: {right} of {len(QUESTIONS)}; a live call afterwards is cached: {live.cached}\n")
            print(client.usage)


if __name__ == "__main__":
    main()
