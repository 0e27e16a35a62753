"""A model mapped over a dataset on a local Ray cluster: errors are rows, and no row is paid for twice."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from llm_provider import Client, Ledger, RequestError, UnknownModelError
from llm_provider.ray import embed_dataset, map_dataset
from llm_provider.simulator import Fault, Simulator
from support import wait_until

if TYPE_CHECKING:
    from conftest import ValkeyServer

# Ray warns of its own deprecated settings.
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]

MODEL = "gpt-6.1-sol"
ROWS = 5000


class City(BaseModel):
    name: str


def dataset(ray: Any, rows: int, bad: int | None = None, **more: Any) -> Any:
    items = [{"id": row, "prompt": None if row == bad else f"row {row}", **more} for row in range(rows)]
    return ray.data.from_items(items, override_num_blocks=20)


def test_a_bad_row_is_an_error_and_a_second_run_is_free(
    ray_cluster: Any, llm_simulator: Simulator, tmp_path: Path, where: dict[str, Any]
) -> None:
    settings = {"cache_dir": tmp_path / "cache", "ledger": tmp_path / "calls.jsonl"}
    data = dataset(ray_cluster, ROWS, bad=4321)
    for cached in (False, True):
        rows = map_dataset(data, MODEL, settings=settings, **where).take_all()
        assert sorted(row["id"] for row in rows) == list(range(ROWS))
        [failed] = [row for row in rows if row["error"] is not None]
        assert (failed["id"], failed["text"], failed["error"]["type"]) == (4321, None, "RequestError")
        answered = [row for row in rows if row["error"] is None]
        assert all(row["text"] == f"echo: {row['prompt']}" for row in answered)
        assert {row["cached"] for row in answered} == {cached}
        assert all(row["usage"]["output_tokens"] > 0 for row in answered)
        assert llm_simulator.ledger().requests == ROWS - 1
    # Each worker has a file of its own, and together they have every call.
    files = sorted(tmp_path.glob("calls.*.jsonl"))
    total = Ledger.read(*files).total
    assert len(files) == 4
    assert (total.requests, total.hits) == (ROWS - 1, ROWS - 1)


def test_a_killed_worker_costs_only_what_it_had_in_flight(
    ray_cluster: Any, llm_simulator: Simulator, tmp_path: Path, where: dict[str, Any]
) -> None:
    llm_simulator.configure(latency=0.2)
    settings = {"cache_dir": tmp_path / "cache", "ledger": tmp_path / "calls.jsonl", "max_concurrent": 16}
    killed: list[int] = []

    def kill_one() -> None:
        assert wait_until(lambda: llm_simulator.ledger().requests > 300, 120)
        [first, *_] = workers()
        os.kill(first, signal.SIGKILL)
        killed.append(first)

    killer = threading.Thread(target=kill_one)
    killer.start()
    rows = map_dataset(dataset(ray_cluster, 1500), MODEL, settings=settings, **where).take_all()
    killer.join()
    assert killed
    assert sorted(row["id"] for row in rows) == list(range(1500))
    assert all(row["error"] is None for row in rows)
    repeated = llm_simulator.ledger().requests - 1500
    assert 0 <= repeated <= 16


def workers() -> list[int]:
    """The processes of the cluster that make calls."""
    identifiers = []
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_text() if process.name.isdigit() else ""
        except OSError:
            continue
        if command.startswith("ray::MapWorker(MapBatches(Caller))"):
            identifiers.append(int(process.name))
    return sorted(identifiers)


def test_two_machines_with_one_valkey_share_answers(
    ray_cluster: Any,
    valkey_server: ValkeyServer,
    llm_simulator: Simulator,
    tmp_path: Path,
    where: dict[str, Any],
) -> None:
    data = dataset(ray_cluster, 400)
    for machine in ("one", "two"):
        settings = {"cache_dir": tmp_path / machine, "cache": valkey_server.url}
        rows = map_dataset(data, MODEL, settings=settings, **where).take_all()
        assert {row["cached"] for row in rows} == {machine == "two"}
    assert llm_simulator.ledger().requests == 400


def test_templates_functions_structures_and_vectors(
    ray_cluster: Any, llm_simulator: Simulator, tmp_path: Path, where: dict[str, Any]
) -> None:
    settings = {"cache_dir": tmp_path}
    words = ray_cluster.data.from_items([{"word": "fish", "text": "a"}, {"word": "bird", "text": "b"}])

    def question_of(row: dict[str, Any]) -> str:
        if row["word"] == "bird":
            raise ValueError("no birds")
        return f"About {row['word']}"

    rows = map_dataset(words, MODEL, "Say {word}", prefix="answer_", settings=settings, **where).take_all()
    assert {row["answer_text"] for row in rows} == {"echo: Say fish", "echo: Say bird"}
    assert len({row["id"] for row in rows}) == 2
    rows = map_dataset(words, MODEL, question_of, prefix="answer_", settings=settings, **where).take_all()
    assert {row["word"]: row["answer_text"] for row in rows} == {"fish": "echo: About fish", "bird": None}
    assert [row["answer_error"]["type"] for row in rows if row["answer_error"]] == ["ValueError"]
    llm_simulator.inject(Fault(text='{"name": "Bern"}'), times=2)
    rows = map_dataset(
        words, MODEL, "In {word}", prefix="a_", response_format=City, settings=settings, **where
    ).take_all()
    assert [row["a_parsed"] for row in rows] == [{"name": "Bern"}] * 2
    texts = ray_cluster.data.from_items([{"text": text} for text in ("a", "", "b", None)])
    rows = embed_dataset(texts, "text-embedding-3-small", settings=settings, **where).take_all()
    assert {row["text"]: len(row["embedding"] or []) for row in rows} == {
        "a": 1536,
        "": 0,
        "b": 1536,
        None: 0,
    }


def test_a_budget_holds_for_all_workers_together(
    ray_cluster: Any,
    llm_simulator: Simulator,
    tmp_path: Path,
    where: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The most that one request can cost is about $0.006, and it costs about $0.00004.
    monkeypatch.setenv("LLM_PROVIDER_BUDGET", "0.02")
    settings = {"cache_dir": tmp_path}
    rows = map_dataset(
        dataset(ray_cluster, 600), MODEL, batch_size=16, settings=settings, max_tokens=20, **where
    ).take_all()
    assert 0.005 < sum(row["cost"] or 0 for row in rows) <= 0.02
    refused = [row for row in rows if row["error"] is not None]
    assert {row["error"]["type"] for row in refused} == {"BudgetExceededError"}
    assert 0 < len(refused) < 600


def test_wrong_arguments_are_refused_before_anything_is_sent(
    ray_cluster: Any, llm_simulator: Simulator, tmp_path: Path
) -> None:
    data = dataset(ray_cluster, 10, text="t")
    for arguments, parameters, message in (
        ((data, MODEL), {}, "has a column 'text' already"),
        ((data, MODEL, "question"), {}, "no column 'question'"),
        ((data, MODEL), {"temperature": 9}, "temperature must be"),
        ((data, MODEL), {"workers": (2, 1)}, "workers must be"),
        ((data, MODEL), {"batch_size": 0}, "batch_size must be"),
        ((data, MODEL), {"settings": {"cache": "http://x"}}, "begins with valkey"),
        (([1], MODEL), {}, "must be a ray.data.Dataset, not list"),
    ):
        with pytest.raises(RequestError, match=message):
            map_dataset(*arguments, **parameters)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(UnknownModelError):
        map_dataset(data, "no-such-model", prefix="a_")
    assert llm_simulator.ledger().requests == 0


def test_tasks_and_actors_make_plain_calls(
    ray_cluster: Any, llm_simulator: Simulator, tmp_path: Path, where: dict[str, Any]
) -> None:
    settings = {"cache_dir": tmp_path}

    def ask(word: str) -> tuple[str, bool]:
        with Client(**settings) as client:
            response = client.call(MODEL, word, **where)
            return response.text, response.cached

    class Asker:
        def __init__(self) -> None:
            self.client = Client(**settings)

        async def ask(self, word: str) -> str:
            return (await self.client.acall(MODEL, word, **where)).text

    ray = ray_cluster
    assert ray.get(ray.remote(ask).remote("fish")) == ("echo: fish", False)
    assert ray.get(ray.remote(ask).remote("fish")) == ("echo: fish", True)
    actor = ray.remote(Asker).remote()
    answers = ray.get([actor.ask.remote(f"word {number}") for number in range(20)])
    assert answers == [f"echo: word {number}" for number in range(20)]
