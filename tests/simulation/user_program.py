"""Runs a generated program with the library, in a simulated process, and reports what the user sees.

A program is plain data: a client's settings, and threads that take steps. A step is one call of a public
function. `programs` makes programs, and `model` judges the reports.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import json
import logging
import os
import random
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from .process import Process
from .programs import EMBEDDING_MODEL, KEYS

Step = dict[str, Any]

OPTIONS = (
    "n", "draw", "cache", "delivery", "deadline", "timeout", "max_retries", "budget", "max_tokens",
    "max_repairs", "dimensions", "fallback",
)  # fmt: skip
"""The fields of a step that are parameters of the library's functions."""


def write_prompt(question: str) -> str:
    """The prompt of a question, which the simulated models repeat."""
    return f"[{question}] repeat this"


def run_program(process: Process, order: dict[str, Any]) -> None:
    """Run the program of an order to its end, and leave the interpreter as a program does."""
    from llm_provider import Budget, Client, Ledger
    from llm_provider._core.runtime import randomness

    randomness.generator.seed(process.entropy.getrandbits(64))  # a fork has drawn a seed from the system
    if order["warm"]:  # the template of all other processes, to which changes are costly: they copy pages
        os.environ.update(order["environment"])
        logging.disable()
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, category, *_: process.report(
        kind="warning", category=category.__name__, text=str(message)
    )
    settings = dict(order["client"])
    budgets = []
    if (budget := settings.pop("budget", None)) is not None:
        settings["budget"] = Budget(budget["limit"], path=budget["path"])
        budgets.append(settings["budget"])
    folder = os.path.dirname(settings["ledger"])  # noqa: PTH120 - a path costs as much as a call
    tokens, users = settings.pop("tokens", None), []
    for number in range(order["clients"]):
        if tokens is not None:
            settings["keys"] = {
                name: TokenSource(process, tokens, f"{number} {name}") for name in ("openai", "together_ai")
            }
        users.append(User(process, Client(**settings), folder))
    for user in users:
        user.dies_after = order["dies_after"]
    threads = [
        threading.Thread(target=users[number % len(users)].run_thread, args=(thread,), name=f"user-{number}")
        for number, thread in enumerate(order["threads"])
        if number
    ]
    for thread in threads:
        thread.start()
    users[0].run_thread(order["threads"][0])
    for thread in threads:
        thread.join()
    for user in users:
        user.leave()
    process.report(kind="closed")
    if order["dies_after"] == "closing":
        process.die()
    for budget in budgets + [purse for user in users for purse in user.purses.values()]:
        amounts = {name: str(getattr(budget, name)) for name in ("limit", "spent", "uncertain", "reserved")}
        process.report(
            kind="budget", is_purse=budget not in budgets, is_shared=budget.path is not None, **amounts
        )
    if order["reads_ledger"]:
        ledger = Ledger.read(settings["ledger"])
        process.report(kind="ledger", cost=str(ledger.cost), unknown=ledger.unknown)
    if not order["warm"]:
        atexit._run_exitfuncs()


class TokenSource:
    """Gives tokens that the world refuses after their end, and sometimes none, or one that has ended."""

    def __init__(self, process: Process, plan: dict[str, Any], name: str) -> None:
        self._process, self._plan, self._name = process, plan, name
        self._random = random.Random(f"{process.entropy.getrandbits(32)} {name}")
        self._begun: list[float] = []

    def __call__(self) -> Any:
        self._begun.append(begun := self._process.now)
        # A minute after it starts the thread, which may be late, the library leaves a source alone.
        waiting = sum(begun - other < 59.0 for other in self._begun)
        self._process.report(kind="token", source=self._name, waiting=waiting)
        troubles = self._plan["troubles"] if self._random.random() < self._plan["share"] else ()
        trouble = self._random.choice(troubles) if troubles else None
        try:
            self._process.sleep(200.0 if trouble == "hangs" else self._plan["pause"])
        finally:
            self._begun.remove(begun)
        if trouble == "down":
            raise OSError("no network")
        if trouble == "no_text":
            return None
        life = -5.0 if trouble == "ended" else self._plan["life"]
        claims = {"exp": time.time() + life} if self._plan["is_reported"] else {}
        coded = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        return f"e30.{coded}.{KEYS[0]}/{self._process.now + life}"


class User:
    """The program's threads, and what they read."""

    def __init__(self, process: Process, client: Any, folder: str) -> None:
        self._folder = folder
        self._process = process
        self._client = client
        self._read: dict[str, str] = {}
        self._ended_steps = 0
        self.dies_after: int | str | None = None
        """After so many steps, or after the clients are closed, the process is killed, at once."""
        self.purses: dict[tuple[float, bool], Any] = {}
        """The budgets of single steps, by their limits: steps with the same limit share one, and processes
        share those that have a file."""

    def leave(self) -> None:
        """Close the client, and report what it has counted."""
        self._client.close()
        usage = self._client.usage
        self._process.report(
            kind="usage",
            cost=str(usage.cost),
            unknown=usage.unknown,
            unknown_at_most=None if usage.unknown_at_most is None else str(usage.unknown_at_most),
            requests=usage.requests,
            hits=usage.hits,
            failed=usage.failed,
        )

    def run_thread(self, thread: dict[str, Any]) -> None:
        """Take the steps of a thread: one after the other, or as tasks of an event loop side by side."""
        is_main = threading.current_thread() is threading.main_thread()
        if thread["kind"] == "asynchronous":
            loops = thread.get("loops", 1)
            for number in range(loops):
                self._process.accepts_interrupts = is_main
                with contextlib.suppress(KeyboardInterrupt):
                    asyncio.run(self._run_tasks(thread["steps"][number::loops]))
                self._process.accepts_interrupts = False
            return
        for step in thread["steps"]:
            self._process.sleep(step["after"])
            self._begin(step)
            self._process.accepts_interrupts = is_main
            try:
                for index, result in self._take(step):
                    self._report(step, index, result)
            except (Exception, KeyboardInterrupt) as error:
                self._process.accepts_interrupts = False
                self._report(step, None, error)
            self._process.accepts_interrupts = False
            self._end(step)

    async def _run_tasks(self, steps: list[Step]) -> None:
        await asyncio.gather(*(self._run_task(step) for step in steps))

    async def _run_task(self, step: Step) -> None:
        await asyncio.sleep(step["after"])
        self._begin(step)
        task = asyncio.ensure_future(self._take_asynchronously(step))
        if step["cancel_after"] is not None:
            asyncio.get_running_loop().call_later(step["cancel_after"], task.cancel)
        try:
            await task
        except (Exception, asyncio.CancelledError) as error:
            self._report(step, None, error)
        self._end(step)

    def _take(self, step: Step) -> Iterator[tuple[int, Any]]:
        client, options = self._client, self._list_options(step)
        model, prompts = step["model"], _write_prompts(step)
        inputs: Iterable[str] = (
            self._write_slowly(prompts, step["interval"]) if "interval" in step else prompts
        )
        match step["do"]:
            case "call":
                yield 0, client.call(model, prompts[0], **options)
            case "stream":
                with client.stream(model, prompts[0], **options) as stream:
                    for delta in _first(stream, step["leave_after"]):
                        self._note_delta(step, delta)
                    if step["leave_after"] is None:
                        yield 0, stream.response
            case "call_many":
                yield from enumerate(client.call_many(model, inputs, progress=False, **options))
            case "iter_many":
                results = client.iter_many(model, inputs, **options)
                yield from _first(results, step["leave_after"])
            case "embed":
                yield 0, client.embed(EMBEDDING_MODEL, prompts, **options)
            case "batch":
                yield from enumerate(client.submit_many(model, prompts, **options).results())
            case unknown:
                raise ValueError(unknown)

    async def _take_asynchronously(self, step: Step) -> None:
        client, options = self._client, self._list_options(step)
        model, prompts = step["model"], _write_prompts(step)
        inputs = _write_asynchronously(prompts, step["interval"]) if "interval" in step else prompts
        match step["do"]:
            case "call":
                self._report(step, 0, await client.acall(model, prompts[0], **options))
            case "stream":
                async with client.astream(model, prompts[0], **options) as stream:
                    async for delta in _first_asynchronously(stream, step["leave_after"]):
                        self._note_delta(step, delta)
                    if step["leave_after"] is None:
                        self._report(step, 0, stream.response)
            case "call_many":
                results = await client.acall_many(model, inputs, progress=False, **options)
                for index, result in enumerate(results):
                    self._report(step, index, result)
            case "iter_many":
                arriving = client.aiter_many(model, inputs, **options)
                async for index, result in _first_asynchronously(arriving, step["leave_after"]):
                    self._report(step, index, result)
            case "embed":
                self._report(step, 0, await client.aembed(EMBEDDING_MODEL, prompts, **options))
            case "batch":
                batch = await client.asubmit_many(model, prompts, **options)
                for index, result in enumerate(await batch.aresults()):
                    self._report(step, index, result)
            case unknown:
                raise ValueError(unknown)

    def _list_options(self, step: Step) -> dict[str, Any]:
        from llm_provider import Budget

        options = {name: step[name] for name in OPTIONS if step.get(name) is not None}
        if step.get("format"):
            options["response_format"] = make_schema(step["questions"][0])
        if step.get("purse"):
            limit, is_shared = step["purse"], bool(step.get("is_shared"))
            if (limit, is_shared) not in self.purses:
                path = f"{self._folder}/purse-{limit}" if is_shared else None
                self.purses[limit, is_shared] = Budget(limit, path=path)
            options["budget"] = self.purses[limit, is_shared]
        if step.get("tool"):
            options["tools"], options["max_tool_rounds"] = [self._make_tool(step)], 3
        return options

    def _write_slowly(self, prompts: list[str], interval: float) -> Iterator[str]:
        for prompt in prompts:
            yield prompt
            self._process.sleep(interval)

    def _note_delta(self, step: Step, delta: Any) -> None:
        self._read[step["id"]] = self._read.get(step["id"], "") + delta.text

    def _make_tool(self, step: Step) -> Callable[[str], str]:
        def look_up(question: str) -> str:
            """Look a question up."""
            if step["tool"] == "slow":
                self._process.sleep(1.0)
            elif step["tool"] == "hangs":
                self._process.sleep(300.0)
            elif step["tool"] == "raises":
                raise LookupError(f"[{question}] is known to nobody")
            elif step["tool"] == "calls back":
                self._client.call(step["model"], write_prompt(question), max_tokens=200)
            return f"[{question}] is known"

        return look_up

    def _begin(self, step: Step) -> None:
        self._process.report(kind="begin", step=step["id"])

    def _end(self, step: Step) -> None:
        self._process.report(kind="end", step=step["id"])
        self._ended_steps += 1
        if self._ended_steps == self.dies_after:
            self._process.die()

    def _report(self, step: Step, index: int | None, result: Any) -> None:
        from llm_provider import LLMError

        event: dict[str, Any] = {"kind": "result", "step": step["id"], "index": index}
        if isinstance(result, BaseException):
            event["error"] = type(result).__name__
            event["text"] = str(result)
            event["typed"] = isinstance(result, (LLMError, asyncio.CancelledError, KeyboardInterrupt))
        elif step["do"] == "embed":
            event["count"] = len(result)
        else:
            event["texts"] = list(result.texts)
        if not isinstance(result, BaseException) or isinstance(result, LLMError):
            event["cost"], event["cached"] = result.cost, result.cached
            event["attempts"] = result.attempts
            event["failures"] = [failure.error for failure in getattr(result, "failures", ())]
        if step["do"] == "stream":
            event["read"] = self._read.get(step["id"], "")
        self._process.report(**event)


def make_schema(question: str) -> dict[str, Any]:
    """A schema whose only value is the question."""
    return {
        "type": "object",
        "properties": {"question": {"type": "string", "enum": [question]}},
        "required": ["question"],
        "additionalProperties": False,
    }


def _write_prompts(step: Step) -> list[str]:
    if step.get("tool"):
        return [f'[{each}] use the tool look_up({{"question": "{each}"}})' for each in step["questions"]]
    return [write_prompt(question) for question in step["questions"]]


async def _write_asynchronously(prompts: list[str], interval: float) -> AsyncIterator[str]:
    for prompt in prompts:
        yield prompt
        await asyncio.sleep(interval)


def _first(items: Iterable[Any], count: int | None) -> Iterator[Any]:
    for number, item in enumerate(items, 1):
        yield item
        if number == count:
            return


async def _first_asynchronously(items: Any, count: int | None) -> AsyncIterator[Any]:
    number = 0
    async for item in items:
        yield item
        number += 1
        if number == count:
            return
