"""What a user is owed, whatever happened. Nothing here comes from the library.

`judge` compares what the user's programs read, what the providers served and billed, and what the files hold.
Each promise is one method, here or in `model_of_money`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .evidence import SAME_MOMENT, Evidence, Step
from .model_of_money import MoneyJudge
from .programs import KEYS, Program
from .world import World

BATCHES = ("call_many", "iter_many", "batch")
"""Steps with a result for each question."""

LAG = 3.0
"""Seconds that a step may end before its last request, where the disk is slow."""

GRACE = 1.0
"""Seconds beyond a deadline in which a step may still end."""

PATIENCE = 5.0
"""Seconds for which a call asks a provider that refuses it for its limits, if its user has not set less."""


def judge(program: Program, world: World, folder: Path) -> list[str]:
    """The promises that a history breaks, in words."""
    judges = (_Judge(program, world, folder), MoneyJudge(program, world, folder))
    return [promise for each in judges for promise in each.list_broken_promises()]


class _Judge(Evidence):
    def list_broken_promises(self) -> Iterator[str]:
        yield from self._everybody_ends()
        for name, step in self.steps.items():
            for fault in (*self._every_input_has_one_result(step), *self._answers_are_right(step)):
                yield f"{name}: {fault}"
            for fault in (*self._deadline_is_held(step), *self._errors_have_a_cause(step)):
                yield f"{name}: {fault}"
        yield from self._everything_is_answered_at_last()
        yield from self._attempts_are_sent()
        yield from self._whole_streams_are_read()
        yield from self._nothing_is_sent_for_nobody()
        yield from self._no_key_is_written()
        for event in self.world.history:
            if event["kind"] == "warning" and event["category"] in ("RuntimeWarning", "ResourceWarning"):
                yield f"{event['process']}: the user reads {event['category']}: {event['text']}"
            if event["kind"] == "token" and event["waiting"] > 1:
                yield f"{event['process']}: a token is fetched while another one is: {event}"

    def _everybody_ends(self) -> Iterator[str]:
        for event in self.world.history:
            if event["kind"] in ("crashed", "stuck"):
                yield f"{event['kind']}: {event}"

    def _every_input_has_one_result(self, step: Step) -> Iterator[str]:
        if step.ended is None or step.results is None:
            return
        whole = [event for event in step.results if event["index"] is None]
        indexes = Counter(event["index"] for event in step.results if event["index"] is not None)
        for event in step.results:
            is_full = event.get("error") == "OSError" and " is full " in event["text"] and self.loses_lines
            if "error" in event and not event["typed"] and not is_full:
                yield f"{event['error']} is no LLMError: {event['text']}"
        if any(count > 1 for count in indexes.values()):
            yield f"two results for one input: {indexes}"
        plan = step.plan
        expected = len(plan["questions"]) if plan["do"] in BATCHES else 1
        # An iterator may be endless: it is read no further than a used-up budget.
        is_read = "interval" not in plan or not any(
            event.get("error") == "BudgetExceededError" for event in step.results
        )
        if is_read and plan["leave_after"] is None and not whole and len(indexes) != expected:
            yield f"{len(indexes)} results for {expected} inputs"
        is_broken_off = plan["cancel_after"] is not None or step.process in self.interrupted
        is_broken_off = is_broken_off or (
            self.loses_lines and bool(whole) and whole[0]["error"] == "RequestError"
        )
        if whole and plan["do"] in ("call_many", "iter_many") and not (is_broken_off or step.is_batch):
            yield f"a batch raised {whole[0]['error']}: {whole[0]['text']}"

    def _answers_are_right(self, step: Step) -> Iterator[str]:
        for event in step.results or ():
            if "texts" in event:
                question = step.plan["questions"][event["index"]]
                right = _find_right_answers(step.plan, question)
                if len(event["texts"]) != step.plan.get("n", 1):
                    yield f"{len(event['texts'])} samples: {event['texts']}"
                right |= self.cut_texts[question]
                if not step.plan.get("format") or step.plan["do"] == "stream":
                    right |= self.odd_texts[question]
                # A call within a tool may fail, and then the model reads that error.
                may_fail = step.plan.get("tool") == "calls back"
                if not right.issuperset(event["texts"]) and not may_fail:
                    yield f"the answer to {question} is {event['texts']}"
            if "read" in event:
                yield from self._deltas_are_right(step, event)
            if event.get("count", len(step.plan["questions"])) != len(step.plan["questions"]):
                yield f"{event['count']} embeddings"
            if step.plan.get("cache") == "only" and event.get("attempts"):
                yield "sent something, though the cache was asked only"
            # A batch under way is shared by whoever submits the same rows.
            fresh = step.plan.get("cache") in ("off", "refresh") and not step.is_batch
            if fresh and event.get("cached"):
                yield "served a stored answer, though a new one was asked for"

    def _deltas_are_right(self, step: Step, event: dict[str, Any]) -> Iterator[str]:
        """What a stream gave piece by piece is its text, or the beginning of the right one."""
        question, read = step.plan["questions"][0], event["read"]
        if "texts" in event:
            if [read] != event["texts"] and not step.plan.get("tool"):
                yield f"the stream gave {read!r}, and has {event['texts']}"
        elif not any(right.startswith(read) for right in self._list_texts(step.plan, question)):
            yield f"the stream gave {read!r} before its error"

    def _list_texts(self, plan: dict[str, Any], question: str) -> set[str]:
        return _find_right_answers(plan, question) | self.odd_texts[question] | self.cut_texts[question]

    def _deadline_is_held(self, step: Step) -> Iterator[str]:
        deadline = step.plan.get("deadline")
        if deadline is not None and step.begun is not None and step.ended is not None:
            took = step.ended - step.begun
            # An iterator that is asked for its next input cannot be interrupted.
            if took > deadline + GRACE + step.plan.get("interval", 0.0) * len(step.plan["questions"]):
                yield f"took {took:.3f} s with a deadline of {deadline} s"

    def _everything_is_answered_at_last(self) -> Iterator[str]:
        for name, step in self.steps.items():
            if step.process == "again":
                for event in step.results or ():
                    if "error" in event:
                        yield f"{name}: after the last fault, {event['error']}: {event['text']}"

    def _attempts_are_sent(self) -> Iterator[str]:
        """The attempts that the results tell are the requests that were sent.

        Some never arrive: the network loses them, or the time is over while their connection is opened.
        """
        network = self.program["network"]
        loses = "outage" in self.program or any(
            network.get(kind) for kind in ("refuse", "cut_request", "cut_answer", "end", "repeat", "silent")
        )
        loses |= any("tokens" in process["client"] for process in self.program["processes"])
        for process in (*self.ended_at, *self.died_at):
            requests = [each for each in self.world.requests if each.process == process and each.is_call]
            for question, steps in self._group_steps(process):
                sent = sum(question in ("", each.question) for each in requests)
                events = [event for step in steps for event in step.results or ()]
                told = sum(event.get("attempts", 0) for event in events)
                # A request that begins at its deadline is counted, and may not arrive.
                begun = sum("a request was under way" in event.get("text", "") for event in events)
                is_more = (
                    told > sent + begun + self.world.unused[process]
                    and (process == "again" or not loses)
                    and not self.has_batches
                )
                if is_more or (told < sent and self._reports_everything(process)):
                    where = f"{process} {question}".strip()
                    yield f"{where}: the results tell of {told} attempts, and {sent} requests were sent"
        for name, step in self.steps.items():
            plan, most = step.plan, self._find_most_retries(step)
            if any(map(plan.get, ("n", "format", "tool", "fallback"))) or plan["do"] == "embed":
                continue
            for event in step.results or ():
                if most is not None and event.get("attempts", 0) > most + 1:
                    yield f"{name}: {event['attempts']} attempts with max_retries {most}"
                if event.get("failures", []).count("APIResponseValidationError") > 2:
                    yield f"{name}: an answer that cannot be read is asked for more than twice"

    def _whole_streams_are_read(self) -> Iterator[str]:
        """A stream that breaks behind its last event has answered."""
        for name, step in self.steps.items():
            if step.plan["do"] != "stream" or step.begun is None or step.ended is None:
                continue
            requests = [
                each
                for each in self.world.requests
                if each.question == step.plan["questions"][0]
                and each.process == step.process
                and step.begun <= each.at <= step.ended
            ]
            for event in step.results or ():
                is_own = event.get("error") == "APIConnectionError" and event["attempts"] == len(requests) > 0
                # What never reached the provider is not among the requests. They are of another call, whose
                # answer may come later.
                is_own = is_own and not event["text"].startswith("no connection could be made")
                if is_own and all(
                    self._arrived_undisturbed(each) and each.delivered_at <= step.ended for each in requests
                ):
                    yield f"{name}: the whole stream arrived, and {event['text']}"

    def _group_steps(self, process: str) -> Iterator[tuple[str, list[Step]]]:
        """All steps of a process, and those that ask a question which it asks in single calls alone."""
        yield "", [step for step in self.steps.values() if step.process == process]
        for question, askers in self.askers.items():
            steps = [step for step in askers if step.process == process]
            if all(step.plan["do"] in ("call", "stream") and not step.plan.get("tool") for step in steps):
                yield question, steps

    def _find_most_retries(self, step: Step) -> int | None:
        """The most retries of the calls that may have begun a request of the step; None for no limit."""
        limits = {
            other.plan.get("max_retries")
            for question in step.plan["questions"]
            for other in self.askers[question]
            if other.process == step.process and step.plan["model"] in other.models
        }
        return None if None in limits else max(limits, default=None)

    def _nothing_is_sent_for_nobody(self) -> Iterator[str]:
        """Each request has a step that waits for it, when it begins."""
        slack = (
            SAME_MOMENT
            + 2 * self.program["network"].get("delay", 0.0)
            + (LAG if self.program.get("lagging") else 0)
        )
        for request in self.world.requests:
            if request.is_call and request.process != "again":
                questions = request.question.split(",")
                if not any(
                    step.process == request.process
                    and step.begun is not None
                    and (
                        step.ended is None
                        or request.at <= step.ended + slack
                        # A thread cannot be stopped: the user's function goes on and calls.
                        or step.plan.get("tool") == "calls back"
                    )
                    for question in questions
                    for step in self.askers[question]
                ):
                    yield f"{request.process}: {request.question} is sent at {request.at:.3f}, for nobody"

    def _errors_have_a_cause(self, step: Step) -> Iterator[str]:
        """An error of a step is one that its own settings, or its surroundings, can cause."""
        if step.process == "again":
            return
        process = next(each for each in self.program["processes"] if each["name"] == step.process)
        plan, faults = step.plan, [order["fault"] for order in self.program["faults"]]
        statuses = {fault.get("status") for fault in faults}
        tokens = process["client"].get("tokens", {"troubles": [], "life": math.inf})
        causes = {
            "BudgetExceededError": "budget" in process["client"] or plan.get("budget") or plan.get("purse"),
            "CancelledError": plan["cancel_after"] is not None or "interrupts" in process,
            "KeyboardInterrupt": "interrupts" in process,
            "CacheMissError": plan.get("cache") == "only",
            "BadRequestError": any(fault.get("status") == 400 for fault in faults),
            "RateLimitError": "requests_per_minute" in self.program["providers"] or 429 in statuses,
            "ToolRoundsExceededError": plan.get("tool"),
            "ToolArgumentsError": plan.get("tool"),
            "SchemaMismatchError": plan.get("format"),
            "JSONSchemaValidationError": plan.get("format"),
            "UncertainBatchError": step.is_batch,
            "PendingBatchError": step.is_batch,
            "RequestError": "full_disk" in self.program or "no_text" in tokens["troubles"],
            "AuthenticationError": "keys" in process["client"]
            or "ended" in tokens["troubles"]
            or tokens["life"] < 1.0,
        }
        for event in step.results or ():
            if not causes.get(event.get("error", ""), True):
                yield f"{event['error']} without a cause: {event['text']}"
            if event.get("error") == "RateLimitError" and not (plan.get("deadline") or 429 in statuses):
                lasted = (step.ended or math.inf) - (step.begun or 0.0)
                # A call that shares the request of another one has the retries of that one.
                askers = [each for question in plan["questions"] for each in self.askers[question]]
                if lasted < PATIENCE and not any(
                    each.plan.get("fallback") or each.plan.get("max_retries") is not None for each in askers
                ):
                    yield f"a busy provider was asked for {lasted:.1f} s only: {event['text']}"

    def _no_key_is_written(self) -> Iterator[str]:
        if KEYS[0] in json.dumps(self.world.history):
            yield "a key is in what the user reads"
        for path in self.folder.rglob("*"):
            if path.is_file() and KEYS[0].encode() in path.read_bytes():
                yield f"a key is in {path.relative_to(self.folder)}"


def _find_right_answers(plan: dict[str, Any], question: str) -> set[str]:
    """The answers of a simulated model to a question, asked in the way of a step."""
    if plan.get("format"):
        return {json.dumps({"question": question}, separators=(",", ":"))}
    if plan.get("tool") == "raises":
        error = f"Error: LookupError: [{question}] is known to nobody"
        return {f"echo: {error}", f'echo: {{"error":"{error}"}}'}
    if plan.get("tool"):
        return {f"echo: [{question}] is known", f'echo: {{"output":"[{question}] is known"}}'}
    return {f"echo: [{question}] repeat this"}
