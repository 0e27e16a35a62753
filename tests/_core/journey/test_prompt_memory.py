"""What a pool remembers of prompts, and which of several servers a prompt goes to."""

import random
from collections import defaultdict
from pathlib import Path

from llm_provider import Client, Host
from llm_provider._core.journey.prompt_memory import PromptMemory, digest_beginnings
from llm_provider._features.prompt_caching import prompt_memory
from llm_provider.simulator import Fault, Simulator
from support import TooSlowError, patiently


def test_the_digests_that_were_used_last_are_remembered() -> None:
    memory: PromptMemory[str] = PromptMemory()
    memory.replace(b"twice", "a")
    for number in range(prompt_memory._MOST_DIGESTS):
        memory.replace(number.to_bytes(16, "big"), "a")
        memory.replace(b"twice", "b")
    assert (memory.find(b"twice"), memory.find(bytes(16)), memory.find(None)) == ("b", None, None)


def test_beginnings_are_compared_in_doubling_lengths() -> None:
    alike, other = ([{"role": "user", "content": "word " * 400 + end}] for end in ("", "?"))
    assert len(digest_beginnings(alike)) == 2
    assert digest_beginnings(alike) == digest_beginnings(other)
    assert not digest_beginnings([{"role": "user", "content": "word"}])
    assert not digest_beginnings([{"role": "user", "content": object()}])


def test_prompts_go_where_their_beginning_is_unless_it_is_busy(simulator: Simulator, own_cache: Path) -> None:
    # Three servers of one simulator, which it knows by their names.
    names = ("groq", "mistral", "deepseek")
    documents = [f"document {number} " * 300 for number in range(12)]
    prompts = [f"{document} What is {number}+1?" for document in documents for number in range(12)]
    random.Random(1).shuffle(prompts)
    lab = Host("lab", [simulator.url(name) for name in names], prices={"*": {"input": 0, "output": 0}})

    def attempt(longer: float) -> None:
        simulator.clear()
        simulator.inject(Fault(delay=0.03 * longer), times=None)
        with Client(cache_dir=own_cache / str(longer), hosts=[lab]) as client:
            assert not client.call_many("lab/mine", prompts, max_concurrent=12).errors
            # All at once, they are too many for one server.
            assert not client.call_many("lab/mine", [f"{documents[0]} {n}" for n in range(40)]).errors
        sent = simulator.requests()
        servers = defaultdict(set)
        for request in sent[: len(prompts)]:
            servers[request.body["messages"][0]["content"][:14]].add(request.provider)
        misses = sum(map(len, servers.values())) - len(documents)
        if misses > 0.1 * (len(prompts) - len(documents)):
            raise TooSlowError("answers came so late that servers were busy which would not have been")
        for requests in (sent[: len(prompts)], sent[len(prompts) :]):
            shares = [[request.provider for request in requests].count(name) for name in names]
            # Servers that are equal to the user may be measured as unequal ones.
            assert min(shares) > 0.05 * len(requests)

    patiently(attempt)
