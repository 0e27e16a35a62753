"""Makes programs of users, the behaviour of their providers and the accidents that they meet, from a seed."""

from __future__ import annotations

import random
from typing import Any

from .themes import THEMES

Program = dict[str, Any]

MODELS = ("gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash", "together_ai/zai-org/GLM-5.3")
EMBEDDING_MODEL = "text-embedding-3-small"
DIMENSIONS = 8
"""Those of the vectors: fewer are faster."""
KEYS = ("sk-canary-5f0c1e", "sk-canary-5f0c1e-other")
"""The keys of the simulated processes, which no output may hold."""
PRICED_IN_BATCHES = MODELS[:3]
CALLS = ("call", "call", "call", "stream", "call_many", "call_many", "iter_many", "embed", "batch")
FEATURES = (
    "samples", "draws", "cache_modes", "deadlines", "timeouts", "retries", "cancellation", "budgets",
    "network", "faults", "limits", "processes", "deaths", "threads", "leaving", "jumps",
    "formats", "tools", "crowds", "interrupts", "lags", "clients", "drift", "keys", "slow_inputs",
    "fallback",
)  # fmt: skip
RARE = {"batches": 0.25, "outages": 0.25, "stepping": 0.1, "full_disk": 0.1, "power_cut": 0.05}
"""Features that take long, or that excuse much, with the share of the programs that have them."""
MANY = 0.3
"""The share of the programs with many questions: these send most of all calls, and take most of the time."""

WORST_CASES = {
    MODELS[0]: (5.39e-3, 1e-5),
    MODELS[1]: (2.69e-4, 5e-7),
    MODELS[2]: (1.618e-3, 3.75e-6),
    MODELS[3]: (3.01e-3, 4.4e-6),
}
"""What a call may cost at most, in USD: for its prompt, and for each token of `max_tokens`."""


def make_program(seed: int) -> Program:
    """The program of a seed. Half of the features are off in each, so that the rest meet more often."""
    chance = random.Random(seed)
    maker = _Maker(chance)
    return maker.make(seed)


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        # One of sixteen. `choice` would give each seed another theme whenever their number changes.
        self.name = [*THEMES][2:][chance.getrandbits(4)] if chance.random() < 0.5 else ""
        if chance.random() < MANY:
            self.name = "many questions"
        self.theme = THEMES[self.name]
        self.on = {name: chance.random() < self.theme.others for name in FEATURES}
        self.on |= {name: chance.random() < share for name, share in RARE.items()}
        self.on |= dict.fromkeys(self.theme.features, True)
        self.is_about_money = "money" in self.name
        self.latency = chance.choice((0.05, 0.5, 1.5))
        self.is_exact = chance.random() < self.theme.exact
        """Whether answers take a fixed time, and what users do comes just when an answer does."""
        # Calls of one price reach a limit together.
        models = 1 if self.is_about_money or self.theme.is_at_once else chance.choice((1, 1, 2, 3))
        self.models = chance.sample(MODELS, models)
        if self.name == "tokens":
            # The format whose keys may be functions. A batch belongs to one token.
            self.models = chance.sample((MODELS[0], MODELS[3]), chance.choice((1, 2)))
            self.on |= dict.fromkeys(("keys", "network", "batches"), False)
        self.on["stepping"] &= not self.theme.questions
        self.scale = 1 if self.on["stepping"] else chance.choice(self.theme.scales)
        sizes = self.theme.crowd if self.on["crowds"] else [size * self.scale for size in (2, 4, 8)]
        count = chance.choice(self.theme.questions or sizes)
        self.questions = [f"q{number}" for number in range(count)]
        has_rounds = self.on["formats"] or self.on["tools"]
        self.max_tokens = chance.choice((200, 40) if has_rounds else (200, 40, 16))
        self.reasons = self.is_about_money and "line" not in self.name and chance.random() < 0.6
        """Whether answers cost nearly what they may cost, so that money that is forgotten is soon missed."""
        if self.is_about_money:
            self.max_tokens = 8_000 if self.reasons else 200
            self.on |= dict.fromkeys(("formats", "tools"), False)
        self.limit = self._choose_limit()
        self.steps = 0

    def make(self, seed: int) -> Program:
        chance, on = self.chance, self.on
        count = chance.choice(self.theme.processes) if on["processes"] else 1
        return {
            "seed": seed,
            "providers": self._make_settings(),
            "faults": self._make_faults(),
            "network": {
                **(self._make_network() if on["network"] else {"delay": 0.0 if self.is_exact else 0.01}),
                "unnoticed": chance.choice((0.0, 0.5, 1.0)),
            },
            "switching": chance.choice((0.0, 0.02, 0.1)),
            "yielding": chance.choice((0.0, 0.05, 0.2)) if count > 1 else 0.0,
            "lagging": chance.choice((0.1, 0.5, 0.9)) if on["lags"] else 0.0,
            "stepping": chance.choice((0.001, 0.02, 0.05)) if on["stepping"] else 0.0,
            "processes": [self._make_process(number) for number in range(count)],
            **self._make_accidents(),
            "again": on["deaths"] or on["full_disk"] or on["power_cut"] or chance.random() < 0.4,
        }

    def _make_accidents(self) -> dict[str, Any]:
        chance, on, accidents = self.chance, self.on, dict[str, Any]()
        if on["full_disk"]:
            size = chance.choice((0, 4_000, 40_000, 400_000))
            if self.name == "full disk":
                size = chance.randrange(400, 4_000)  # a line of the ledger is cut
            times = {"at": 4 * chance.random() ** 2, "seconds": chance.choice((1, 60))}
            accidents["full_disk"] = {**times, "bytes": size}
        if on["power_cut"]:
            accidents["power_cut"] = {"at": 4 * chance.random() ** 2}
        if on["outages"]:
            times = {"at": 2 * chance.random() ** 2, "seconds": chance.choice((5, 40, 300))}
            accidents["outage"] = {**times, "status": chance.choice((None, 500, 503))}
        if on["drift"] and chance.random() < 0.5:
            accidents["drift"] = {"at": 4 * chance.random() ** 2, "suffix": "-2026-10-21"}
        return accidents

    def _choose_moment(self, *seconds: float) -> float:
        """One of some times; or the time in which an answer comes, or a few steps or a slow write later."""
        if not self.is_exact:
            return self.chance.choice(seconds)
        if self.chance.random() < 0.2:
            return 3 * self.latency * self.chance.random()
        later = self.chance.choice((0.0, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 2e-3))
        if self.chance.random() < (0.6 if self.on["lags"] else 0.1):
            later = 0.3 * self.chance.random()
        return self.latency * self.chance.choice((0, 1, 1, 1, 2)) + later

    def _make_settings(self) -> dict[str, Any]:
        chance = self.chance
        settings: dict[str, Any] = {
            "latency": self.latency,
            "latency_jitter": 0.0 if self.is_exact else chance.choice((0.0, 0.5, 5.0)),
            "chunk_interval": chance.choice((0.0, 0.05)),
            "prompt_cache": chance.random() < 0.2,
        }
        if self.reasons:
            settings["reasoning_tokens"] = self.max_tokens - 100
        if self.on["batches"]:
            settings["batch_clock"] = chance.choice((60.0, 600.0, 600.0))
            settings["batch_errored"] = chance.choice((0.0, 0.3))
            settings["batch_expired"] = chance.choice((0.0, 0.3))
            settings["batch_results_late"] = chance.choice((0, 2))
            settings["batch_counts"] = chance.choice(("all", "none", "stale"))
        if self.on["limits"]:
            is_large = self.scale > 3 or self.theme.questions
            settings["requests_per_minute"] = 1200.0 if is_large else chance.choice((60.0, 600.0))
            settings["burst"] = chance.choice((1.0, 8.0))
            if chance.random() < 0.3:
                settings["max_concurrent"] = chance.choice((1, 4))
            settings["rate_limit_headers"] = chance.random() < 0.5
        return settings

    def _make_faults(self) -> list[dict[str, Any]]:
        chance, orders = self.chance, list[dict[str, Any]]()
        if self.on["faults"]:
            orders += [self._make_fault() for _ in range(chance.randrange(1, 5))]
        if self.on["keys"] and chance.random() < 0.5:
            fault = chance.choice(({"status": 401}, {"status": 403}, {"quota": True}, {"status": 429}))
            orders.append({"fault": fault, "key": KEYS[1], "times": 1_000_000})
        return orders

    def _make_fault(self) -> dict[str, Any]:
        chance = self.chance
        order: dict[str, Any] = {"fault": chance.choice(self.theme.faults), "times": chance.choice((1, 2, 5))}
        if chance.random() < 0.5:
            order["match"] = f"[{chance.choice(self.questions)}]"
        if chance.random() < 0.3:
            order["share"] = 0.3
        return order

    def _make_network(self) -> dict[str, float]:
        chance = self.chance
        if (ways := self.theme.network) is not None:
            return {"delay": 0.01, **{kind: chance.choice(shares) for kind, shares in ways.items()}}
        kinds = chance.sample(("split", "refuse", "cut_request", "cut_answer", "repeat", "end", "silent"), 2)
        network = {kind: chance.choice((0.05, 0.3)) for kind in kinds}
        return {"delay": chance.choice((0.01, 0.3)), **network}

    def _make_process(self, number: int) -> dict[str, Any]:
        chance, on = self.chance, self.on
        client: dict[str, Any] = {
            "show_waits": False,
            "timeout": chance.choice((10.0, 30.0, 60.0)),
            "outage_patience": chance.choice((0.0, 20.0, 60.0)),
        }
        is_of_several = self.name == "money of several"
        if is_of_several or (
            on["budgets"] and chance.random() < (0.2 if self.name == "money in line" else 0.7)
        ):
            is_shared = is_of_several or chance.random() < 0.5
            client["budget"] = {"limit": self.limit, "is_shared": is_shared}
        if chance.random() < (0.6 if self.is_about_money or self.name == "left batches" else 0.3):
            client["max_concurrent"] = chance.choice((1, 3))
        if self.name in ("money in line", "refused batches"):
            client["max_concurrent"] = chance.choice((2, 3)) if self.is_about_money else 1
        if chance.random() < 0.2:
            client["rate_control"] = "aimd"
        if on["keys"]:
            client["keys"] = {name: [*KEYS] for name in ("openai", "anthropic", "gemini", "together_ai")}
        if self.name == "tokens":
            client["tokens"] = {
                "life": chance.choice((0.3, 2.0, 20.0, 3600.0)),
                "is_reported": chance.random() < 0.6,
                "pause": chance.choice((0.0, 0.3, 3.0)),
                "troubles": chance.sample(("down", "ended", "hangs", "no_text"), chance.choice((0, 1, 2))),
                "share": chance.choice((0.05, 0.3)),
            }
        threads = chance.choice((2, 3)) if on["threads"] else 1
        process: dict[str, Any] = {
            "name": f"p{number}",
            "starts_at": chance.choice((0.0, 0.0, 0.5, 3.0)) if number and not self.theme.is_at_once else 0.0,
            "client": client,
            "clients": chance.choice((1, 2)) if on["clients"] else 1,
            "threads": [self._make_thread() for _ in range(threads)],
        }
        if on["deaths"] and chance.random() < 0.7 and (number < 2 or not self.theme.is_at_once):
            at = 1.5 * self.latency * chance.random() if self.theme.is_at_once else 4 * chance.random() ** 2
            process["dies"] = {"at": at, "steps": chance.choice((0, 1, 5, 20, 100))}
            if not self.theme.is_at_once and chance.random() < (0.8 if self.name == "late writes" else 0.4):
                process["dies"] = {"ended_steps": chance.choice((1, 1, 2, "closing"))}
        if on["jumps"] and chance.random() < 0.5:
            process["jump"] = {"at": 2 * chance.random(), "seconds": chance.choice((-7200.0, 7200.0, 1e6))}
        if on["interrupts"] and chance.random() < 0.5:
            process["interrupts"] = [
                self._choose_moment(4 * chance.random() ** 2) for _ in range(chance.choice((1, 1, 2)))
            ]
        return process

    def _choose_after(self) -> float:
        at_once = self.theme.is_at_once or self.chance.random() < (0.75 if self.on["crowds"] else 0.5)
        return 0.0 if at_once else self._choose_moment(0.01, 0.01 if self.on["crowds"] else 1.0)

    def _choose_limit(self) -> float:
        """USD: room for no call, for some calls at a time, or for all."""
        ample = (10.0, 10_000.0) if not self.is_about_money else (5.5,)
        if self.name == "refused batches" and self.chance.random() < 0.7:
            ample = (0.5,) * 10
        calls = self.chance.choice((1.1, 1.1, 2.2, 3.3, *ample, 0.5 if self.chance.random() < 0.3 else 1.1))
        prompt, token = max(WORST_CASES[model] for model in self.models)
        limit = calls * (prompt + token * self.max_tokens)
        return float(f"{limit:.2g}")

    def _make_thread(self) -> dict[str, Any]:
        kind = self.chance.choice(self.theme.kinds)
        steps = [self._make_step(kind) for _ in range(self.chance.choice((1, 2, 3)) * self.scale)]
        return {"kind": kind, "steps": steps, "loops": self.chance.choice((1, 1, 2))}

    def _make_step(self, kind: str) -> dict[str, Any]:
        chance, on = self.chance, self.on
        self.steps += 1
        do = chance.choice(self.theme.calls or (CALLS if on["batches"] else CALLS[:-1]))
        many = do in ("call_many", "iter_many", "embed", "batch")
        size = chance.randrange(1, len(self.questions) + 1) if many else 1
        step: dict[str, Any] = {
            "id": f"s{self.steps}",
            "do": do,
            "after": self._choose_after(),
            "model": chance.choice(self.models if do != "batch" else PRICED_IN_BATCHES),
            "questions": chance.sample(self.questions, size),
            "cancel_after": None,
            "leave_after": None,
        }
        if many and on["slow_inputs"] and do.endswith("_many") and chance.random() < 0.7:
            step["interval"] = self._choose_moment(0.01, 0.3, 1.0)
        if do == "embed":
            step["dimensions"] = DIMENSIONS
        else:
            step["max_tokens"] = self.max_tokens
            if on["samples"] and do != "stream" and chance.random() < 0.5:
                step["n"] = chance.choice((2, 3))
        if do in ("call", "stream") and on["formats"] and chance.random() < 0.4:
            step["format"] = True
            step["max_repairs"] = chance.choice((0, 1, 2))
        elif do == "call" and on["tools"] and chance.random() < 0.5:
            step["tool"] = chance.choice(("quick", "slow", "calls back", "raises", "hangs"))
            step.pop("n", None)
        others = [
            name for name in (self.models if self.name == "tokens" else MODELS) if name != step["model"]
        ]
        if on["fallback"] and others and do not in ("embed", "batch") and chance.random() < 0.7:
            step["fallback"] = chance.sample(others, chance.randint(1, len(others)))
        if on["draws"] and chance.random() < 0.5 and do != "embed":
            step["draw"] = chance.choice((1, 2))
        if on["cache_modes"] and chance.random() < 0.5:
            step["cache"] = chance.choice(("off", "off", "refresh", "refresh", "only"))
        if on["deadlines"] and chance.random() < 0.5:
            step["deadline"] = max(0.01, self._choose_moment(0.3, 2.0, 20.0))
        if on["timeouts"] and chance.random() < 0.5:
            step["timeout"] = chance.choice((0.3, 2.0, 20.0))
        if on["retries"] and chance.random() < 0.5:
            step["max_retries"] = chance.choice((0, 1, 8))
        if on["cancellation"] and kind == "asynchronous" and chance.random() < 0.5:
            step["cancel_after"] = self._choose_moment(chance.choice((0.0, 0.1, 1.0, 3.0)) * chance.random())
        if do == "batch":
            if chance.random() < 0.5:
                step["do"], step["delivery"] = "call_many", "batch"
            else:
                step.pop("deadline", None)
            step.pop("timeout", None)
            if step.get("cache") == "off":
                del step["cache"]
        if on["leaving"] and do in ("stream", "iter_many") and chance.random() < 0.5:
            step["leave_after"] = chance.choice((1, 2))
        if on["budgets"] and chance.random() < 0.3:
            step["budget"] = self._choose_limit()
        elif on["budgets"] and chance.random() < (0.8 if self.name == "money in line" else 0.3):
            step["purse"] = self._choose_limit()
            step["is_shared"] = chance.random() < 0.3
        return step


WARM_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("call", {"format": True}),
    ("call", {"tool": "quick"}),
    ("call", {"n": 2, "budget": 1.0, "deadline": 60.0}),
)


def make_day_program() -> Program:
    """Four processes that send a hundred prompts an hour together, for one day."""

    def make_step(process: int, number: int) -> dict[str, Any]:
        name = f"{process}{number:04}"
        step = {"id": f"s{name}", "do": "call", "after": 142.0, "model": MODELS[number % 3]}
        return {
            **step,
            "questions": [f"q{name}"],
            "max_tokens": 40,
            "cancel_after": None,
            "leave_after": None,
        }

    processes = [
        {
            "name": f"p{process}",
            "client": {"show_waits": False},
            "threads": [
                {"kind": "synchronous", "steps": [make_step(process, number) for number in range(600)]}
            ],
        }
        for process in range(4)
    ]
    return {**_CALM, "seed": "day", "until": 90_000.0, "again": False, "processes": processes}


_CALM: Program = {
    "providers": {},
    "faults": [],
    "network": {"delay": 0.01},
    **dict.fromkeys(("switching", "yielding", "lagging", "stepping"), 0.0),
}


WARM_FAULTS: tuple[dict[str, Any], ...] = (
    {"status": 429}, {"status": 500}, {"status": 529}, {"abort_after": 1}, {"finish": "length"},
)  # fmt: skip


def make_warm_program() -> Program:
    """A program that takes each kind of step with each model, over the network, and meets common faults.

    Asynchronously it takes a fifth of them: the rest is the same code.
    """

    def make_steps(kind: str) -> list[dict[str, Any]]:
        return [
            {
                "id": f"{kind}-{number}",
                "do": do,
                "after": 0.0,
                "model": model,
                "questions": [f"q{kind}{number}"],
                "cancel_after": None,
                "leave_after": None,
                **({"dimensions": DIMENSIONS} if do == "embed" else {"max_tokens": 200}),
                **options,
            }
            for number, (do, options, model) in enumerate(
                (do, options, model)
                for do, options in [*((do, {}) for do in sorted(set(CALLS))), *WARM_CALLS]
                for model in MODELS
                if do != "batch" or model in PRICED_IN_BATCHES
            )
            if kind == "synchronous" or number % 5 == 0
        ]

    threads = [{"kind": kind, "steps": make_steps(kind)} for kind in ("synchronous", "asynchronous")]
    faults = [
        {"provider": provider, "fault": fault, "times": 1}
        for provider in ("openai", "anthropic", "gemini")
        for fault in WARM_FAULTS
    ]
    process = {"name": "warm", "client": {}, "threads": threads}
    return {**_CALM, "seed": "warm", "faults": faults, "warm": True, "again": False, "processes": [process]}
