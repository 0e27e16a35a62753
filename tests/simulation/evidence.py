"""What happened in a history, in the form in which the model asks for it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from .histories import list_steps, list_steps_again
from .programs import Program
from .world import ServedRequest, World

SAME_MOMENT = 0.01
"""Seconds: what happens within them may be in either order."""

STORING = 1.0
"""Seconds after which an answer that arrived is stored, if its process lives."""


@dataclass(slots=True)
class Step:
    """A step of a program, and what the user has read of it."""

    process: str
    plan: dict[str, Any]
    begun: float | None = None
    ended: float | None = None
    results: list[dict[str, Any]] | None = None

    @property
    def is_batch(self) -> bool:
        """Whether the provider's batches deliver it."""
        return "batch" in (self.plan["do"], self.plan.get("delivery"))

    @property
    def models(self) -> list[str]:
        """The models that may answer it."""
        return [self.plan["model"], *self.plan.get("fallback", ())]

    def is_for(self, path: str, body: bytes) -> bool:
        """Whether a request asks one of its models."""
        return any(is_for(model, path, body) for model in self.models)


class Evidence:
    """The steps, the ends of the processes, and what these have counted."""

    def __init__(self, program: Program, world: World, folder: Path) -> None:
        self.program = program
        self.world = world
        self.folder = folder
        self.steps = dict(self._list_steps())
        self.askers: defaultdict[str, list[Step]] = defaultdict(list)
        """The steps that ask a question."""
        for step in self.steps.values():
            for question in step.plan["questions"]:
                self.askers[question].append(step)
        self.ended_at: dict[str, float] = {}
        self.died_at: dict[str, float] = {}
        self.closed_at: dict[str, float] = {}
        """When the clients were closed, and everything was on disk."""
        self.usage: dict[str, list[dict[str, Any]]] = {}
        self.budgets: dict[str, list[dict[str, Any]]] = {}
        self.interrupted: set[str] = set()
        """Processes in which the user has pressed Ctrl-C."""
        self.loses_lines = "full_disk" in program or "power_cut" in program
        """Whether what was sent may be missing from the files."""
        self.cut_texts: defaultdict[str, set[str]] = defaultdict(set)
        """The answers that end at a token limit, by question: these are checked by no schema."""
        self.odd_texts = self._list_odd_texts()
        self.has_batches = any(step.is_batch for step in self.steps.values())
        """Whether one process may collect, and record, what another one has submitted."""
        self._read_history()

    def _list_odd_texts(self) -> defaultdict[str, set[str]]:
        """The answers of requests whose fault is another end of the answer, by question."""
        texts: defaultdict[str, set[str]] = defaultdict(set)
        for request in self.world.requests:
            fault = request.fault or {}
            failure = "Error: LookupError: [{}] is known to nobody"
            whole = (
                "echo: [{}] repeat this",
                "echo: [{}] is known",
                'echo: {{"output":"[{}] is known"}}',
                f"echo: {failure}",
                f'echo: {{{{"error":"{failure}"}}}}',
            )
            if fault.get("finish") == "length":
                rights = [each.format(request.question) for each in whole]
                rights.append(json.dumps({"question": request.question}, separators=(",", ":")))
                self.cut_texts[request.question] |= {right[: len(right) // 2] for right in rights}
            elif "finish" in fault:
                texts[request.question].add("")
            elif "text" in fault:
                texts[request.question].add(fault["text"])
        return texts

    def _list_steps(self) -> Iterator[tuple[str, Step]]:
        for process, step in list_steps(self.program):
            yield step["id"], Step(process, step)
        for step in list_steps_again(self.program):
            yield step["id"], Step("again", step)

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
                    self.usage.setdefault(event["process"], []).append(event)
                case "budget":
                    self.budgets.setdefault(event["process"], []).append(event)
                case "closed":
                    self.closed_at[event["process"]] = event["at"]
                case "death" | "kill":
                    self.died_at[event["process"]] = event["at"]
                case "interrupt":
                    self.interrupted.add(event["process"])
                case "ended":
                    self.ended_at[event["process"]] = event["at"]

    def _arrived_undisturbed(self, request: ServedRequest) -> bool:
        if request.delivered_at is None or not request.is_finished or request.fault is not None:
            return False
        return not self._was_under_way_at_death(request)

    def _reports_everything(self, process: str) -> bool:
        """Whether the user reads a result for all that a process sends: nothing was broken off."""
        is_whole = process in self.ended_at and process not in self.interrupted
        return is_whole and not any(
            step.plan["cancel_after"] is not None
            or step.plan["leave_after"] is not None
            or step.is_batch
            or step.plan.get("tool") in ("calls back", "hangs")
            for step in self.steps.values()
            if step.process == process
        )

    def _was_under_way_at_death(self, request: ServedRequest) -> bool:
        """Whether a process died before it had to have an answer on disk."""
        died, delivered = self.died_at.get(request.process), request.delivered_at
        if died is None:
            return False
        if delivered is None:
            return True
        if delivered <= self.closed_at.get(request.process, 0.0):
            return False
        return died <= delivered + STORING and not self._is_told_as_stored(request, delivered)

    def _is_told_as_stored(self, request: ServedRequest, delivered: float) -> bool:
        """Whether a call has ended whose end says that the answer to a request is on disk."""
        askers = [
            step
            for step in self.askers[request.question]
            if step.process == request.process and step.is_for(request.path, request.body)
        ]
        if len({(step.plan.get("draw"), step.plan.get("n")) for step in askers}) != 1:
            return False
        return any(
            step.begun is not None
            and step.begun <= request.at
            and step.ended is not None
            and delivered <= step.ended
            and step.plan["questions"] == [request.question]
            and not (step.plan.get("tool") or step.plan.get("fallback"))
            and step.plan.get("cache") != "off"
            and any(self._tells_of_storing(event, delivered, len(askers)) for event in step.results or ())
            for step in askers
        )

    def _tells_of_storing(self, event: dict[str, Any], delivered: float, askers: int) -> bool:
        """Whether a result of a call says that its answer is on disk.

        A cancelled call does not wait for a slow disk, but its answer is stored in the next moments.
        """
        if "texts" in event:
            return bool(event["attempts"])
        is_late = event["at"] > delivered + SAME_MOMENT and not self.program.get("lagging")
        return event.get("error") == "CancelledError" and is_late and askers == 1

    @staticmethod
    def _sum_bills(requests: Any) -> Decimal:
        return sum((each.bill for each in requests if each.bill is not None), Decimal(0))


def is_for(model: str, path: str, body: bytes) -> bool:
    """Whether a request asks a model."""
    short = model.partition("/")[2] or model
    return short in path or f'"{short}"'.encode() in body
