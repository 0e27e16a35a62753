"""What a user is owed, whatever happened. Nothing here comes from the library.

`judge` compares what the user's programs read, what the providers served and billed, and what the files hold.
Each promise is one method of `_Judge`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from .histories import KEY, list_steps_again
from .programs import Program
from .world import ServedRequest, World

SAME_MOMENT = 0.01
"""Seconds: what happens within them may be in either order."""

STORING = 1.0
"""Seconds after which an answer that arrived is stored, if its process lives."""

BATCHES = ("call_many", "iter_many", "batch")
"""Steps with a result for each question."""

GRACE = 1.0
"""Seconds beyond a deadline in which a step may still end."""


def judge(program: Program, world: World, folder: Path) -> list[str]:
    """The promises that a history breaks, in words."""
    return list(_Judge(program, world, folder).list_broken_promises())


@dataclass(slots=True)
class _Step:
    process: str
    plan: dict[str, Any]
    begun: float | None = None
    ended: float | None = None
    results: list[dict[str, Any]] | None = None


class _Judge:
    def __init__(self, program: Program, world: World, folder: Path) -> None:
        self.program = program
        self.world = world
        self.folder = folder
        self.steps = dict(self._list_steps())
        self.ended_at: dict[str, float] = {}
        self.died_at: dict[str, float] = {}
        self.usage: dict[str, dict[str, Any]] = {}
        self.odd_texts = self._list_odd_texts()
        self.has_batches = any(step.plan["do"] == "batch" for step in self.steps.values())
        """Whether one process may collect, and record, what another one has submitted."""
        self._read_history()

    def _list_odd_texts(self) -> defaultdict[str, set[str]]:
        """The answers of requests whose fault is another end of the answer, by question."""
        texts: defaultdict[str, set[str]] = defaultdict(set)
        for request in self.world.requests:
            fault = request.fault or {}
            whole = ("echo: [{}] repeat this", "echo: [{}] is known", 'echo: {{"output":"[{}] is known"}}')
            if fault.get("finish") == "length":
                rights = [each.format(request.question) for each in whole]
                texts[request.question] |= {right[: len(right) // 2] for right in rights}
            elif "finish" in fault:
                texts[request.question].add("")
            elif "text" in fault:
                texts[request.question].add(fault["text"])
        return texts

    def _list_steps(self) -> Iterator[tuple[str, _Step]]:
        for process in self.program["processes"]:
            for thread in process["threads"]:
                for step in thread["steps"]:
                    yield step["id"], _Step(process["name"], step)
        for step in list_steps_again(self.program):
            yield step["id"], _Step("again", step)

    def _read_history(self) -> None:
        for event in self.world.history:
            match event["kind"]:
                case "begin":
                    self.steps[event["step"]].begun = event["at"]
                    self.steps[event["step"]].results = []
                case "result":
                    results = self.steps[event["step"]].results
                    assert results is not None
                    results.append(event)
                case "end":
                    self.steps[event["step"]].ended = event["at"]
                case "usage":
                    self.usage[event["process"]] = event
                case "death" | "kill":
                    self.died_at[event["process"]] = event["at"]
                case "ended":
                    self.ended_at[event["process"]] = event["at"]

    def list_broken_promises(self) -> Iterator[str]:
        yield from self._everybody_ends()
        for name, step in self.steps.items():
            for fault in (*self._every_input_has_one_result(step), *self._answers_are_right(step)):
                yield f"{name}: {fault}"
            yield from (f"{name}: {fault}" for fault in self._deadline_is_held(step))
        yield from self._everything_is_answered_at_last()
        yield from self._nothing_is_paid_twice()
        yield from self._money_agrees()
        yield from self._budgets_hold()
        yield from self._no_key_is_written()

    def _everybody_ends(self) -> Iterator[str]:
        for event in self.world.history:
            if event["kind"] in ("crashed", "stuck"):
                yield f"{event['kind']}: {event}"

    def _every_input_has_one_result(self, step: _Step) -> Iterator[str]:
        if step.ended is None or step.results is None:
            return
        whole = [event for event in step.results if event["index"] is None]
        indexes = Counter(event["index"] for event in step.results if event["index"] is not None)
        for event in step.results:
            if "error" in event and not event["typed"]:
                yield f"{event['error']} is no LLMError: {event['text']}"
        if any(count > 1 for count in indexes.values()):
            yield f"two results for one input: {indexes}"
        plan = step.plan
        expected = len(plan["questions"]) if plan["do"] in BATCHES else 1
        if plan["leave_after"] is None and not whole and len(indexes) != expected:
            yield f"{len(indexes)} results for {expected} inputs"
        if whole and plan["do"] in ("call_many", "iter_many") and plan["cancel_after"] is None:
            yield f"a batch raised {whole[0]['error']}: {whole[0]['text']}"

    def _answers_are_right(self, step: _Step) -> Iterator[str]:
        for event in step.results or ():
            if "texts" in event:
                question = step.plan["questions"][event["index"]]
                right = _find_right_answers(step.plan, question)
                if len(event["texts"]) != step.plan.get("n", 1):
                    yield f"{len(event['texts'])} samples: {event['texts']}"
                if not step.plan.get("format") or step.plan["do"] == "stream":
                    right |= self.odd_texts[question]
                if not right.issuperset(event["texts"]):
                    yield f"the answer to {question} is {event['texts']}"
            if event.get("count", len(step.plan["questions"])) != len(step.plan["questions"]):
                yield f"{event['count']} embeddings"
            if step.plan.get("cache") == "only" and event.get("attempts"):
                yield "sent something, though the cache was asked only"
            # A batch under way is shared by whoever submits the same rows.
            fresh = step.plan.get("cache") in ("off", "refresh") and step.plan["do"] != "batch"
            if fresh and event.get("cached"):
                yield "served a stored answer, though a new one was asked for"

    def _deadline_is_held(self, step: _Step) -> Iterator[str]:
        deadline = step.plan.get("deadline")
        if deadline is not None and step.begun is not None and step.ended is not None:
            took = step.ended - step.begun
            if took > deadline + GRACE:
                yield f"took {took:.3f} s with a deadline of {deadline} s"

    def _everything_is_answered_at_last(self) -> Iterator[str]:
        for name, step in self.steps.items():
            if step.process == "again":
                for event in step.results or ():
                    if "error" in event:
                        yield f"{name}: after the last fault, {event['error']}: {event['text']}"

    def _nothing_is_paid_twice(self) -> Iterator[str]:
        """Of each request, no more answers arrive undisturbed than were asked for.

        Processes that wait for the request of another one each send their own after its call has ended
        without an answer, be it that a request failed or that the call gave up before one was sent.
        """
        others = len(self.program["processes"]) - 1
        arrived: Counter[tuple[str, bytes]] = Counter()
        explained: Counter[tuple[str, bytes]] = Counter()
        for request in self.world.requests:
            if not request.is_call:
                continue
            if not self._arrived_undisturbed(request):
                explained[_identify(request)] += others
            alone = not request.is_stream or not self._is_asked_meanwhile(request)
            if request.bill is not None and alone and self._arrived_undisturbed(request):
                arrived[_identify(request)] += request.samples
        for (path, body), count in arrived.items():
            question = json.dumps(json.loads(body))
            asked = self._count_asked(path, body)
            explained[path, body] += others * self._count_given_up(path, body)
            if asked is not None and count > asked + explained[path, body]:
                yield f"{count} answers were paid and arrived where {asked} were asked for: {path} {question}"

    def _count_asked(self, path: str, body: bytes) -> int | None:
        if "embed" in path:
            return None
        stored: set[tuple[int, int]] = set()
        fresh = 0
        for step in self.steps.values():
            plan = step.plan
            for question in plan["questions"]:
                if plan["do"] != "embed" and _asks(plan["model"], path, body, question):
                    mode, count = plan.get("cache", "use"), plan.get("n", 1)
                    if mode in ("off", "refresh"):
                        fresh += count
                    if plan.get("tool") == "calls back":
                        stored.add((0, 0))
                    if mode in ("use", "refresh"):
                        stored |= {(plan.get("draw", 0), sample) for sample in range(count)}
        return fresh + len(stored)

    def _count_given_up(self, path: str, body: bytes) -> int:
        """The number of steps that asked a question and ended without its answer."""
        return sum(
            step.ended is None or any(_is_failure(step.plan, question, event) for event in step.results or ())
            for step in self.steps.values()
            for question in step.plan["questions"]
            if step.begun is not None and _asks(step.plan["model"], path, body, question)
        )

    def _is_asked_meanwhile(self, stream: ServedRequest) -> bool:
        """Whether another step asks the same while a stream runs: streams share with nobody."""
        steps = [
            (step.begun, self.world.now if step.ended is None else step.ended, step)
            for step in self.steps.values()
            if step.begun is not None and stream.question in step.plan["questions"]
        ]
        own = [each for each in steps if each[2].plan["do"] == "stream" and each[0] <= stream.at <= each[1]]
        return any(
            other[2] is not each[2]
            and other[0] <= each[1] + SAME_MOMENT
            and each[0] <= other[1] + SAME_MOMENT
            for each in own
            for other in steps
        )

    def _arrived_undisturbed(self, request: ServedRequest) -> bool:
        if request.delivered_at is None or not request.is_finished or request.fault is not None:
            return False
        died = self.died_at.get(request.process)
        return died is None or died > request.delivered_at + STORING

    def _money_agrees(self) -> Iterator[str]:
        lines = [json.loads(line) for line in _read_lines(self.folder / "ledger.jsonl")]
        paid = [line for line in lines if line["outcome"] != "hit"]
        ledger = sum((Decimal(line["usd"]) for line in paid if line["usd"] is not None), Decimal(0))
        unknown = [line for line in paid if line["usd"] is None]
        bounds = [line.get("at_most") for line in unknown]
        billed = self._sum_bills(self.world.requests)
        lost = self._sum_bills(each for each in self.world.requests if self._was_under_way_at_death(each))
        if ledger > billed:
            yield f"the ledger has {ledger}, the bill {billed}"
        if None not in bounds:
            most = ledger + sum(map(Decimal, filter(None, bounds)), Decimal(0)) + lost
            if billed > most:
                yield f"the bill is {billed}; ledger, bounds of what is unknown and deaths explain {most}"
        for name, usage in self.usage.items():
            own = [request for request in self.world.requests if request.process == name]
            if (
                not usage["unknown"]
                and not self.has_batches
                and Decimal(usage["cost"]) != self._sum_bills(own)
            ):
                yield f"{name}: client.usage has {usage['cost']}, the bill {self._sum_bills(own)}"
            steps = [step for step in self.steps.values() if step.process == name]
            costs = [event.get("cost") for step in steps for event in step.results or ()]
            read = sum(cost for cost in costs if cost is not None)
            if read > float(usage["cost"]) * (1 + 1e-9) + 1e-12:
                yield f"{name}: the results cost {read}, client.usage has {usage['cost']}"

    def _was_under_way_at_death(self, request: ServedRequest) -> bool:
        died = self.died_at.get(request.process)
        delivered = request.delivered_at
        return died is not None and (delivered is None or died <= delivered + STORING)

    def _budgets_hold(self) -> Iterator[str]:
        shared: list[tuple[Decimal, str]] = []
        for process in self.program["processes"]:
            budget = process["client"].get("budget")
            if budget is None:
                continue
            own = [each for each in self.world.requests if each.process == process["name"]]
            if self._sum_bills(own) > Decimal(str(budget["limit"])):
                yield f"{process['name']} spent {self._sum_bills(own)} of a budget of {budget['limit']}"
            if budget["is_shared"]:
                shared.append((Decimal(str(budget["limit"])), process["name"]))
        if shared:
            names = {name for _, name in shared}
            together = self._sum_bills(each for each in self.world.requests if each.process in names)
            if together > max(limit for limit, _ in shared):
                yield f"{names} spent {together} of one budget of at most {max(shared)[0]}"

    def _no_key_is_written(self) -> Iterator[str]:
        if KEY in json.dumps(self.world.history):
            yield "a key is in what the user reads"
        for path in self.folder.rglob("*"):
            if path.is_file() and KEY.encode() in path.read_bytes():
                yield f"a key is in {path.relative_to(self.folder)}"

    @staticmethod
    def _sum_bills(requests: Any) -> Decimal:
        return sum((each.bill for each in requests if each.bill is not None), Decimal(0))


def _identify(request: ServedRequest) -> tuple[str, bytes]:
    """What is asked, however many samples and whether as a stream."""
    body = json.loads(request.body)
    for name in ("n", "stream", "stream_options"):
        body.pop(name, None)
    body.get("generationConfig", {}).pop("candidateCount", None)
    path = request.path.replace("streamGenerateContent", "generateContent")
    return path, json.dumps(body, sort_keys=True).encode()


def _asks(model: str, path: str, body: bytes, question: str) -> bool:
    short = model.partition("/")[2] or model
    return f"[{question}]".encode() in body and (short in path or f'"{short}"'.encode() in body)


def _find_right_answers(plan: dict[str, Any], question: str) -> set[str]:
    """The answers of a simulated model to a question, asked in the way of a step."""
    if plan.get("format"):
        return {json.dumps({"question": question}, separators=(",", ":"))}
    if plan.get("tool"):
        return {f"echo: [{question}] is known", f'echo: {{"output":"[{question}] is known"}}'}
    return {f"echo: [{question}] repeat this"}


def _is_failure(plan: dict[str, Any], question: str, event: dict[str, Any]) -> bool:
    """Whether a result of a step is the failure of a question, or of all of them."""
    index = event["index"]
    return "error" in event and (index is None or plan["questions"][index] == question)


def _read_lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().split(b"\n") if line] if path.exists() else []
