import contextlib
import json
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from llm_provider import Client, Ledger, ModelDriftError, ModelDriftWarning
from llm_provider._core.money.model_drift import ENOUGH, Answered, Served
from llm_provider._features.cli.usage import run_usage
from llm_provider.simulator import Simulator

MODEL, OLD, NEW = "gpt-6.1-sol", "-2026-10-21", "-2026-11-19"
ALIAS = ("openai", "", MODEL)
KNOWN, OTHERS = ("fp_a", "fp_b", "fp_c"), ("fp_x", "fp_y", "fp_z")


def count_changes(served: Served, fingerprints: Iterable[str], host: str = "h") -> list[int]:
    """The positions at which a change is reported."""
    answers = [Answered(ALIAS, MODEL, {"fingerprint": name, "host": host}) for name in fingerprints]
    return [number for number, answer in enumerate(answers) if served.compare(answer, keep=True)]


@given(
    st.permutations(KNOWN),
    st.lists(st.sampled_from(KNOWN), max_size=100),
    st.lists(st.sampled_from(OTHERS), max_size=ENOUGH - 1),
    st.lists(st.sampled_from((*KNOWN, *OTHERS)), max_size=200),
)
def test_fingerprints_that_take_turns_are_no_change_and_replaced_ones_are_one(
    first: list[str], turns: list[str], few: list[str], later: list[str]
) -> None:
    served = Served()
    assert not count_changes(served, [*first * 7, *turns, *few, first[0]])
    # Those that answered between known ones are known now.
    assert not count_changes(served, [*few, first[0]] * 30)
    again = {name for name in later if name in (*KNOWN, *few)}
    assert not count_changes(served, [name for name in later if name in again])
    replaced = ["fp_1", "fp_2"] * 50
    assert count_changes(served, replaced) == [ENOUGH - 1]
    assert not count_changes(served, replaced)
    assert not count_changes(served, later[: ENOUGH - 1], host="another host")


RUNS = st.tuples(
    st.sampled_from((MODEL, MODEL + OLD, MODEL + NEW)),
    st.sampled_from(
        ({}, {"fingerprint": "fp_a"}, {"fingerprint": "fp_b"}, {"fingerprint": "a", "host": "h"})
    ),
    st.integers(min_value=1, max_value=ENOUGH + 2),
)


@given(st.lists(RUNS, max_size=12), st.booleans())
@example([(MODEL + OLD, {}, 1), (MODEL + NEW, {}, 1), (MODEL + OLD, {}, 1)], True)
def test_answers_that_are_skipped_as_settled_change_nothing(
    runs: list[tuple[str, dict[str, str], int]], keep: bool
) -> None:
    every, some, seen, skipped = Served(), Served(), Counter[object](), 0
    for model, who, times in runs:
        answered = Answered(ALIAS, model, who)
        for _ in range(times):
            change, marks = every.compare(answered, keep=keep), (model, *who.items())
            seen[marks] += 1
            if some.settled.get(ALIAS) == marks:
                skipped += 1
                assert change is None
            else:
                assert some.compare(answered, keep=keep, marks=marks) == change
    assert every.last == some.last
    enough = any(number > ENOUGH + 2 for number in seen.values())
    assert skipped or not enough or not keep or len(seen) > 1


def test_an_identifier_of_each_answer_and_a_named_snapshot_are_no_change() -> None:
    assert not count_changes(Served(), map(str, range(500)))
    served = Served()
    for number in range(100):
        who = {"fingerprint": str(number // 50), "snapshot": MODEL + OLD}
        assert served.compare(Answered(ALIAS, MODEL + OLD, who), keep=True) is None
    # The snapshot of a header counts where the reply has the alias.
    assert served.compare(Answered(ALIAS, MODEL, {"snapshot": MODEL + NEW}), keep=True)


def test_replaced_fingerprints_warn_once_also_in_a_later_run(simulator: Simulator, tmp_path: Path) -> None:
    file, raised = tmp_path / "calls.jsonl", 0
    caught: list[str] = []
    for names, strict in (("fp_a,fp_b", False), ("fp_c", True), ("fp_c,fp_d", False), ("fp_d,fp_c", False)):
        simulator.configure(fingerprints=names)
        with Client(ledger=file, cache="off", strict_model=strict) as client:
            for _ in range(ENOUGH + 2):
                with warnings.catch_warnings(record=True, action="always") as seen:
                    try:
                        client.call("gpt-4o", "Hi", endpoint="chat")
                    except ModelDriftError as error:
                        raised += (error.served, error.served_before) == ("fp_c", "fp_a, fp_b")
                caught += drifted(seen)
    assert raised == 3
    (message,) = caught
    assert "the fingerprint fp_c" in message
    assert read_usage(file, "fingerprint") == {"fp_a": 11, "fp_b": 11, "fp_c": 44, "fp_d": 22}


def read_usage(file: Path, name: str) -> dict[str, int]:
    """The requests of each value, as `usage --by` prints them."""
    ended = CliRunner().invoke(run_usage, [str(file), "--by", name, "--json"], catch_exceptions=False)
    return {row[name]: row["requests"] for row in json.loads(ended.output)["rows"]}


def test_a_server_that_makes_up_names_is_reported_a_thousand_times_at_most() -> None:
    served = Served()
    reported = [served.is_news(ALIAS, str(number), str(number + 1)) for number in range(2000)]
    assert sum(reported) == len(served._reported) == 1000


def drifted(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(warning.message) for warning in caught if issubclass(warning.category, ModelDriftWarning)]


def test_a_change_is_told_once_and_both_names_are_in_the_ledger(client: Client, simulator: Simulator) -> None:
    with warnings.catch_warnings(record=True, action="always") as caught:
        for suffix in (OLD, OLD, NEW, NEW, OLD):
            simulator.configure(snapshot_suffix=suffix)
            client.call(MODEL, "Hi", cache="refresh")
            with client.stream(MODEL, "Ho", cache="refresh") as deltas:
                list(deltas)
    (message,) = drifted(caught)
    assert MODEL + OLD in message
    assert MODEL + NEW in message
    assert [(row.served, row.requests) for row in client.usage.rows()] == [(MODEL + OLD, 6), (MODEL + NEW, 4)]


def test_a_stored_answer_of_an_older_snapshot_is_a_change_too(client: Client, simulator: Simulator) -> None:
    simulator.configure(snapshot_suffix=OLD)
    client.call(MODEL, "stored")
    simulator.configure(snapshot_suffix=NEW)
    with (
        warnings.catch_warnings(record=True, action="always") as caught,
        Client(cache_dir=client.cache.directory) as later,
    ):
        assert later.call(MODEL, "stored").cached
        later.call(MODEL, "new")
    assert len(drifted(caught)) == 1


def test_a_strict_call_raises_and_its_paid_answer_stays_stored(client: Client, simulator: Simulator) -> None:
    simulator.configure(snapshot_suffix=OLD)
    client.call(MODEL, "first")
    simulator.configure(snapshot_suffix=NEW)
    with pytest.raises(ModelDriftError, match=r"gpt-6\.1-sol-2026-11-19") as caught:
        client.call(MODEL, "second", strict_model=True)
    assert (caught.value.served, caught.value.served_before) == (MODEL + NEW, MODEL + OLD)
    assert (caught.value.provider, caught.value.model) == ("openai", MODEL)
    assert caught.value.maybe_billed
    requests = simulator.ledger().requests
    # Stored, but still not the model that was asked for before.
    with pytest.raises(ModelDriftError):
        client.call(MODEL, "second", strict_model=True)
    with pytest.warns(ModelDriftWarning):
        assert client.call(MODEL, "second").cached
    assert simulator.ledger().requests == requests
    assert client.usage.requests == 2


def test_a_ledgers_file_remembers_the_models_that_served(simulator: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    # Refused once, a model is no new past for the next run.
    for suffix, strict in ((OLD, False), (NEW, True), (NEW, True)):
        simulator.configure(snapshot_suffix=suffix)
        refused = pytest.raises(ModelDriftError) if strict else contextlib.nullcontext()
        with Client(ledger=file, cache="off", strict_model=strict) as client, refused:
            client.call(MODEL, "Hi")
    with Client(ledger=file, cache="off") as client, pytest.warns(ModelDriftWarning):
        client.call(MODEL, "Hi")
    with Client(ledger=file, cache="off", strict_model=True) as client:
        client.call(MODEL, "Hi")
    served = {row.served: row.requests for row in Ledger.read(file).rows()}
    assert served == {MODEL + OLD: 1, MODEL + NEW: 4}
    assert file.read_text().count(f'"served_before":"gpt-6.1-sol{OLD}"') == 3
