"""What a user is owed about money: nothing is paid twice, and what is read, recorded and billed agrees."""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from .evidence import SAME_MOMENT, Evidence, Step, is_for
from .programs import EMBEDDING_MODEL, MODELS
from .world import ServedRequest

GIVEN_UP = ("APITimeoutError", "CancelledError", "KeyboardInterrupt")
"""The errors of calls that end although their answer may be on its way."""


class MoneyJudge(Evidence):
    """Each promise about money is one method."""

    def list_broken_promises(self) -> Iterator[str]:
        yield from self._nothing_is_paid_twice()
        yield from self._single_requests_are_paid_for()
        yield from self._money_agrees()
        yield from self._budgets_hold()

    def _nothing_is_paid_twice(self) -> Iterator[str]:
        """Of each request, no more answers arrive undisturbed than were asked for.

        Processes that wait for the request of another one each send their own after it has failed. If its
        call gives up before it sends one, only one of them does.
        """
        if self.loses_lines:
            return
        # The clients of a process share as processes do.
        others = sum(each.get("clients", 1) for each in self.program["processes"]) - 1
        arrived: Counter[tuple[str, bytes]] = Counter()
        explained: Counter[tuple[str, bytes]] = Counter()
        for request in self.world.requests:
            if not request.is_call:
                continue
            if not self._arrived_undisturbed(request):
                # One process takes over what a dead one has begun, and the others go on waiting.
                is_orphan = request.delivered_at is None and self._was_under_way_at_death(request)
                explained[_identify(request)] += 0 if is_orphan and request.fault is None else others
            explained[_identify(request)] += self._crosses_an_end(request)
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
        for step, _ in self._list_askers(path, body):
            plan = step.plan
            if plan["do"] != "embed":
                mode, count = plan.get("cache", "use"), plan.get("n", 1)
                if mode in ("off", "refresh"):
                    fresh += count
                if plan.get("tool") == "calls back":
                    stored.add((0, 0))
                if mode in ("use", "refresh"):
                    stored |= {(plan.get("draw", 0), sample) for sample in range(count)}
        return fresh + len(stored)

    def _count_given_up(self, path: str, body: bytes) -> int:
        """The number of steps that asked a question, tried to send it, and ended without its answer."""
        return sum(
            question in self._failed[step.plan["id"]] for step, question in self._list_askers(path, body)
        )

    @functools.cached_property
    def _failed(self) -> dict[str, set[str]]:
        """The questions of each step to which it has read a failure, its own or that of all of them."""
        failed = {}
        for name, step in self.steps.items():
            questions = step.plan["questions"]
            # A batch that fails as a whole says nothing of its calls.
            failures = [event for event in step.results or () if "error" in event]
            is_batch = len(questions) > 1
            places = [
                each["index"]
                for each in failures
                if each.get("attempts") or (each["index"] is None and is_batch)
            ]
            # A model of a fallback may have been given up, and another one has answered.
            is_any = None in places or step.plan.get("fallback")
            failed[name] = set(questions if is_any else (questions[place] for place in places))
        return failed

    def _list_askers(self, path: str, body: bytes) -> list[tuple[Step, str]]:
        """The steps that ask what a request asks, with the question that it shares with each."""
        questions = dict.fromkeys(re.findall(rb"\[(q\d+)\]", body))
        return [
            (step, question.decode())
            for question in questions
            for step in self.askers[question.decode()]
            if step.is_for(path, body)
        ]

    def _is_asked_meanwhile(self, stream: ServedRequest) -> bool:
        """Whether another step asks the same while a stream runs: streams share with nobody."""
        steps = [
            (step.begun, self.world.now if step.ended is None else step.ended, step)
            for step in self.askers[stream.question]
            if step.begun is not None
        ]
        own = [each for each in steps if each[2].plan["do"] == "stream" and each[0] <= stream.at <= each[1]]
        return any(
            other[2] is not each[2]
            and other[0] <= each[1] + SAME_MOMENT
            and each[0] <= other[1] + SAME_MOMENT
            for each in own
            for other in steps
        )

    def _crosses_an_end(self, request: ServedRequest) -> bool:
        """Whether an answer arrives in the moment in which a call that wants it is given up, or left."""
        return request.delivered_at is not None and any(
            step.process == request.process
            and step.ended is not None
            and abs(step.ended - request.delivered_at) < SAME_MOMENT
            and (
                any(event.get("error") in GIVEN_UP for event in step.results or ())
                or (step.plan["do"] == "stream" and step.plan["leave_after"] is not None)
            )
            for question in request.question.split(",")
            for step in self.askers[question]
        )

    def _single_requests_are_paid_for(self) -> Iterator[str]:
        """If one request answered a question in a process, somebody reads its cost, and only one."""
        requests: defaultdict[tuple[str, str, str], list[ServedRequest]] = defaultdict(list)
        events: defaultdict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
        left_out = set()
        for request in self.world.requests:
            model = next(
                (each for each in MODELS if is_for(each, request.path, request.body)), EMBEDDING_MODEL
            )
            for question in request.question.split(","):
                requests[request.process, model, question].append(request)
        for step in self.steps.values():
            model, questions = step.plan["model"], step.plan["questions"]
            if step.plan.get("fallback"):
                left_out |= {(step.process, each, question) for each in step.models for question in questions}
            # A batch that its process did not outlive, or that was given up or left, may have had an answer
            # that nobody read.
            is_unread = step.plan["do"] in ("call_many", "iter_many") and (
                (step.begun is not None and step.ended is None)
                or step.plan["leave_after"] is not None
                or any(event["index"] is None for event in step.results or ())
            )
            if step.is_batch or is_unread or step.plan.get("tool") == "calls back":
                left_out |= {(step.process, model, question) for question in questions}
            for event in step.results or ():
                for question in questions if event["index"] is None else [questions[event["index"]]]:
                    if step.plan["do"] != "embed":
                        events[step.process, model, question].append(event)
        for key, own in requests.items():
            if len(own) > 1 or not own[0].is_call or key in left_out or key[1] == EMBEDDING_MODEL:
                continue
            results = events[key]
            is_read = any("texts" in event and not event["cached"] for event in results)
            is_read = is_read or self._is_waited_for(own[0])
            is_read = is_read and not any("cost" in event and event["cost"] is None for event in results)
            # The answer and the cancellation of the call that asked may cross on their way.
            is_read = is_read and not any(
                event.get("error") in GIVEN_UP
                and abs(event["at"] - (own[0].delivered_at or 0.0)) < SAME_MOMENT
                for event in results
            )
            if is_read and self._arrived_undisturbed(own[0]):
                cost = sum(event.get("cost") or 0.0 for event in results)
                if own[0].bill is not None and not math.isclose(cost, float(own[0].bill)):
                    yield f"{key} cost {own[0].bill}, and its results tell of {cost}"

    def _is_waited_for(self, request: ServedRequest) -> bool:
        """Whether a call that waited while a request was sent has read an answer: it can only be this one.

        Streams, and calls with tools or a format, send what no other call waits for. The calls of another
        client of the process wait for what is stored, as those of another process do.
        """
        clients = {each["name"]: each.get("clients", 1) for each in self.program["processes"]}
        if request.is_stream or b'"tools"' in request.body or b"chema" in request.body:
            return False
        if clients.get(request.process, 1) > 1:
            return False
        return any(
            step.process == request.process
            and step.plan["do"] == "call"
            and is_for(step.plan["model"], request.path, request.body)
            and not any(step.plan.get(name) for name in ("n", "draw", "format", "tool", "cache", "fallback"))
            and step.begun is not None
            and step.begun < request.at <= (step.ended or math.inf)
            and any("texts" in event for event in step.results or ())
            for step in self.askers[request.question]
        )

    def _money_agrees(self) -> Iterator[str]:
        """The ledger has what was billed, or a bound; so have the clients, and the results of their calls."""
        ledger, bounds = yield from self._read_ledger()
        for event in self.world.history:
            if event["kind"] == "ledger" and Decimal(event["cost"]) != ledger:
                yield f"the user reads {event['cost']} in the ledger, its lines have {ledger}"
        billed = self._sum_bills(self.world.requests)
        if ledger > billed:
            yield f"the ledger has {ledger}, the bill {billed}"
        if bounds is not None and not self.loses_lines:
            lost = self._sum_bills(each for each in self.world.requests if self._was_under_way_at_death(each))
            if self._may_leave_batches():
                lost += self.world.ledger.batches
            if billed > ledger + bounds + lost:
                yield f"the bill is {billed}; ledger, bounds and deaths explain {ledger + bounds + lost}"
        for name, usages in self.usage.items():
            if name not in self.closed_at:
                continue  # It died before each of its clients reported.
            cost = sum((Decimal(usage["cost"]) for usage in usages), Decimal(0))
            is_known = not any(usage["unknown"] for usage in usages)
            own = self._sum_bills(each for each in self.world.requests if each.process == name)
            if is_known and not self.has_batches and cost != own:
                yield f"{name}: client.usage has {cost}, the bill {own}"
            read = self._sum_read_costs(name)
            if read > float(cost) * (1 + 1e-9) + 1e-12:
                yield f"{name}: the results cost {read}, client.usage has {cost}"
            is_known = is_known and self._reports_everything(name) and self._are_costs_known(name)
            if is_known and read < float(cost) * (1 - 1e-9) - 1e-12:
                yield f"{name}: the results cost only {read}, client.usage has {cost}"

    def _read_ledger(self) -> Generator[str, None, tuple[Decimal, Decimal | None]]:
        """USD of the lines, and the bound of what is unknown; None without a bound."""
        lines = []
        for text in _read_lines(self.folder / "ledger.jsonl"):
            # Another process may have written behind a line that a full disk has cut.
            last = max(0, text.rfind(b'{"time":')) if self.loses_lines else 0
            try:
                lines.append(json.loads(text[last:]))
            except ValueError:
                if not self.loses_lines:
                    yield f"a line of the ledger cannot be read: {text!r}"
        paid = [line for line in lines if line["outcome"] != "hit"]
        unknown = [line.get("at_most") for line in paid if line["usd"] is None]
        known = sum((Decimal(line["usd"]) for line in paid if line["usd"] is not None), Decimal(0))
        return known, None if None in unknown else sum(map(Decimal, unknown), Decimal(0))

    def _sum_read_costs(self, process: str) -> float:
        steps = [step for step in self.steps.values() if step.process == process]
        costs = [event.get("cost") for step in steps for event in step.results or ()]
        return sum(cost for cost in costs if cost is not None)

    def _are_costs_known(self, process: str) -> bool:
        events = (
            event for step in self.steps.values() if step.process == process for event in step.results or ()
        )
        return not any("cost" in event and event["cost"] is None for event in events)

    def _may_leave_batches(self) -> bool:
        """Whether a batch may be at the provider, and nobody needs its answers any more."""
        return self.has_batches and bool(
            self.died_at
            or self.interrupted
            or any(
                step.plan["cancel_after"] is not None or any("error" in event for event in step.results or ())
                for step in self.steps.values()
                if step.is_batch
            )
        )

    def _budgets_hold(self) -> Iterator[str]:
        shared: list[tuple[Decimal, str]] = []
        for process in self.program["processes"]:
            budget = process["client"].get("budget")
            if budget is None:
                continue
            bill = self._sum_bills(each for each in self.world.requests if each.process == process["name"])
            limit = Decimal(str(budget["limit"]))
            if bill > limit:
                yield f"{process['name']} spent {bill} of a budget of {limit}"
            if budget["is_shared"]:
                shared.append((limit, process["name"]))
            for event in self.budgets.get(process["name"], ()):
                spent, uncertain = Decimal(event["spent"]), Decimal(event["uncertain"])
                is_own = not event["is_shared"] and not event["is_purse"] and not self.has_batches
                if is_own and not spent - uncertain <= bill <= spent:
                    yield f"{process['name']}: the bill is {bill}, its budget has {event}"
        for name, budgets in self.budgets.items():
            # After Ctrl-C a client may be closed before its calls have given up what they reserved.
            may_reserve = self.has_batches or name in self.interrupted
            for event in budgets:
                if Decimal(event["reserved"]) and not event["is_shared"] and not may_reserve:
                    yield f"{name}: a budget keeps money for nobody: {event}"
                is_exceeded = Decimal(event["spent"]) > Decimal(event["limit"])
                if is_exceeded and (event["is_purse"] or not event["is_shared"]):
                    yield f"{name}: a budget is exceeded: {event}"
        if shared:
            names = {name for _, name in shared}
            together = self._sum_bills(each for each in self.world.requests if each.process in names)
            if together > max(limit for limit, _ in shared):
                yield f"{names} spent {together} of one budget of at most {max(shared)[0]}"


def _identify(request: ServedRequest) -> tuple[str, bytes]:
    """What is asked, however many samples and whether as a stream."""
    return _identify_parts(request.path, request.body)


@functools.lru_cache(10_000)
def _identify_parts(path: str, content: bytes) -> tuple[str, bytes]:
    body = json.loads(content)
    for name in ("n", "stream", "stream_options"):
        body.pop(name, None)
    body.get("generationConfig", {}).pop("candidateCount", None)
    path = path.replace("streamGenerateContent", "generateContent")
    return path, json.dumps(body, sort_keys=True).encode()


def _read_lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().split(b"\n") if line] if path.exists() else []
