"""The goals of the library: scenarios measure values by the names of goals, and the report compares them."""

from __future__ import annotations

from typing import NamedTuple


class Goal(NamedTuple):
    """One limit.

    `name` is the key of the scenario's measured value. With `at_least` higher values are better.
    """

    name: str
    scenario: str
    statement: str
    limit: float
    unit: str = ""
    at_least: bool = False

    def met(self, measured: float) -> bool:
        """Whether a measured value is within the limit."""
        return measured >= self.limit if self.at_least else measured <= self.limit

    @property
    def shown_limit(self) -> str:
        """The limit with its direction and unit.

        >>> Goal("ratio", "levels", "calls a second", 4, at_least=True).shown_limit
        '≥ 4'
        """
        return f"{'≥' if self.at_least else '≤'} {self.limit:g} {self.unit}".strip()


_CPU = "CPU per call through `acall`, 20 ms provider, c = 32"
_RATE = "calls a second, 50 ms provider, c = 256"
_STREAM = "CPU per stream of 30 chunks, c = 32"
_BURST = "cold burst of 256 at 20 ms round trip"
_OPEN = "475 requests a second arriving on their own, 100 ms provider: overhead"

GOALS = (
    Goal("openai_of_litellm", "calls", f"OpenAI: {_CPU}, of litellm's", 0.22),
    Goal("openai_of_sdk", "calls", f"OpenAI: {_CPU}, of openai 3 as documented", 0.40),
    Goal("openai_of_best_sdk", "calls", f"OpenAI: {_CPU}, of openai 2 given aiohttp", 0.58),
    Goal("openai_of_floor", "calls", f"OpenAI: {_CPU}, of raw aiohttp", 1.75),
    Goal("anthropic_of_floor", "calls", f"Anthropic: {_CPU}, of raw aiohttp", 2.2),
    Goal("gemini_of_floor", "calls", f"Gemini: {_CPU}, of raw aiohttp", 2.0),
    Goal("anthropic_of_litellm", "calls", f"Anthropic: {_CPU}, of litellm's", 0.25),
    Goal("anthropic_of_sdk", "calls", f"Anthropic: {_CPU}, of the SDK as documented", 0.55),
    Goal("gemini_of_litellm", "calls", f"Gemini: {_CPU}, of litellm's", 0.15),
    Goal("gemini_of_sdk", "calls", f"Gemini: {_CPU}, of the SDK as documented", 0.35),
    Goal("rate_of_litellm", "levels", f"{_RATE}, of litellm's", 4.0, at_least=True),
    Goal("rate_of_sdk", "levels", f"{_RATE}, of openai 3 as documented", 2.8, at_least=True),
    Goal(
        "format_1", "formats", "encoding and decoding a call of one message, slowest direct route", 60, "µs"
    ),
    Goal("format_40", "formats", "the same with 40 messages", 150, "µs"),
    Goal("write_at_32", "calls", "a stored write more, c = 32", 90, "µs"),
    Goal("write_at_256", "calls", "a stored write more, c = 256", 90, "µs"),
    Goal("many_of_acall", "calls", "CPU per call of `call_many`, of `acall`'s", 0.85),
    Goal(
        "latency_of_sdk", "calls", "one call at a time, 0 ms provider: p50, of openai 3 as documented", 0.75
    ),
    Goal("latency_of_litellm", "calls", "one call at a time, 0 ms provider: p50, of litellm's", 0.35),
    Goal("long_openai_of_sdk", "calls", "OpenAI: 40 messages: CPU per call, of the SDK as documented", 0.12),
    Goal("long_gemini_of_sdk", "calls", "Gemini: 40 messages: CPU per call, of the SDK as documented", 0.12),
    Goal("stream_of_litellm", "streams", f"{_STREAM}, of litellm's", 0.07),
    Goal("stream_of_sdk", "streams", f"{_STREAM}, of openai 3 as documented", 0.14),
    Goal("stream_of_floor", "streams", f"{_STREAM}, of raw aiohttp", 1.6),
    Goal("long_stream_of_floor", "streams", "CPU per stream of 300 chunks, of raw aiohttp", 1.25),
    Goal("burst_of_litellm", "bursts", f"{_BURST}: TTFT p50, of litellm's", 0.42),
    Goal("burst_of_floor", "bursts", f"{_BURST}: TTFT p50, of raw aiohttp", 1.5),
    Goal("burst_failed", "bursts", f"{_BURST}: calls that failed", 0),
    Goal("burst_connections", "bursts", f"{_BURST}: connections opened", 256),
    Goal(
        "threads_of_sdk",
        "threads",
        "100 threads, 50 ms: calls a second, of an SDK client each",
        1.4,
        "",
        True,
    ),
    Goal(
        "threads_of_run",
        "threads",
        "100 threads, 50 ms: calls a second, of `asyncio.run` each",
        6.0,
        "",
        True,
    ),
    Goal("threads_ok", "threads", "100 threads, 300 ms: calls that succeeded", 100, "%", True),
    Goal("threads_peak", "threads", "100 threads, 300 ms: peak in flight", 100, "", True),
    Goal("threads_p99", "threads", "100 threads, 300 ms: p99, of the provider's time", 1.25),
    Goal(
        "long_of_floor", "long_prompts", "100,000 tokens at c = 64: CPU per MB, of hashing and sending", 1.5
    ),
    Goal("long_stall", "long_prompts", "the same: longest stall of the loop", 50, "ms"),
    Goal("long_memory", "long_prompts", "the same: more memory than before", 256, "MB"),
    *(
        Goal(f"first_{route}", "first_calls", f"{name}: CPU of the first 200 calls, of later ones", 1.15)
        for route, name in (("openai", "OpenAI"), ("anthropic", "Anthropic"), ("gemini", "Gemini"))
    ),
    Goal("sweep_growth", "sweep", "mean latency at c = 100, of that at c = 1, 50 ms provider", 1.5),
    Goal("overhead_p50", "open_loop", f"{_OPEN} p50", 1.0, "ms"),
    Goal("overhead_p90", "open_loop", f"{_OPEN} p90", 2.5, "ms"),
    Goal("overhead_p99", "open_loop", f"{_OPEN} p99", 5.0, "ms"),
    *(
        Goal(f"ours_more_{part}", "open_loop", f"{_OPEN} {part}, more than raw aiohttp's", limit, "ms")
        for part, limit in (("p50", 1.5), ("p90", 4.0), ("p99", 9.0))
    ),
    *(
        Goal(f"ours_write_more_{part}", "open_loop", f"the same with a stored write: {part}", limit, "ms")
        for part, limit in (("p50", 2.0), ("p90", 6.0), ("p99", 12.0))
    ),
    Goal("observed", "observability", "hooks and metrics on, random ids: more CPU", 3.0, "%"),
    Goal("unsampled", "telemetry", "OpenTelemetry on, no span sampled: more CPU", 3.0, "%"),
    Goal("sampled", "telemetry", "OpenTelemetry's spans on, all sampled: more CPU", 20.0, "%"),
    Goal("traced", "telemetry", "OpenTelemetry's spans and metrics on, random ids: more CPU", 20.0, "%"),
    Goal("bearer_of_direct", "clouds", f"a cloud with a token: {_CPU}, of the maker's own route", 1.1),
    Goal("signed_of_direct", "clouds", "AWS: the same, without botocore's own signature", 1.1),
    Goal("import_of_asyncio", "startup", "`import llm_provider`, of `import asyncio`", 1.5),
    Goal("import_of_litellm", "startup", "`import llm_provider`, of `import litellm`", 0.02),
    Goal("first_call_of_sdk", "startup", "first live answer of a cold process, of the SDK's own", 1.05),
    Goal("first_hit", "startup", "first hit as a whole process", 100, "ms"),
    Goal(
        "import_failures",
        "import_race",
        "first calls while the main thread imports SDKs: failed processes",
        0,
    ),
    Goal("memory_growth", "memory", "RSS over the second half of 50,000 calls", 5, "MB"),
    Goal("descriptor_growth", "memory", "file descriptors over the second half of 50,000 calls", 0),
    Goal("hit_of_floor", "cache", "a hit, decoded, of the bare FanoutCache's", 3.0),
    Goal("hits", "cache", "hits a CPU second through `call`, in one thread", 20_000, "", True),
    Goal("many_hits", "cache", "hits a CPU second through `call_many`", 40_000, "", True),
    Goal("loop_hits", "cache", "look-ups a second by 64 tasks, found", 40_000, "", True),
    Goal("loop_lag", "cache", "64 tasks that hit flat out through `acall`: loop lag p99", 5.0, "ms"),
    Goal("hashing", "cache", "key of a 5 MB media message", 400, "MB/s", True),
    Goal("first_open", "cache", "opening a cache, first hit", 60, "ms"),
    Goal("rerun", "cache", "10,000 cached prompts, whole process", 1.5, "s"),
    Goal("kills_lost", "cache_kills", "acknowledged answers lost, wrong or damaged after 1,000 kills", 0),
    Goal("kills_orphans", "cache_kills", "files left behind", 0),
    Goal("ledger_difference", "ledger", "USD between the ledger and the bill, 10,000 calls", 0),
    Goal("ledger_problems", "ledger", "sums that disagree, bounds that do not hold", 0),
    Goal("reconcile_unexplained", "reconcile", "100,000 calls: unexplained USD, of the report's", 0.1, "%"),
    Goal(
        "prompt_cache_of_bound", "prompt_caching", "500 questions on 20,000 tokens: bill, of the bound", 1.05
    ),
    Goal("prompt_cache_of_plain", "prompt_caching", "the same, of the bill without `prompt_caching`", 1.0),
    Goal("hosts_goodput", "hosts", "four unequal servers: goodput, of an oracle's", 0.95, "", True),
    Goal("hosts_hits", "hosts", "the same: hits of the servers' prefix caches, of the ideal", 0.9, "", True),
    Goal("hosts_lost", "hosts", "the same: prompts without their answer", 0),
    Goal("hosts_twice", "hosts", "the same: answers to a prompt that had one", 0),
    Goal("soak_wrong", "soak", "answers wrong, missing or lost", 0),
    Goal("soak_duplicates", "soak", "prompts paid for again without a reason", 0),
    Goal("soak_difference", "soak", "USD of the bill that are neither in the ledger nor explained", 0),
    Goal("soak_problems", "soak", "checks that failed", 0),
    Goal("soak_rss", "soak", "RSS of the last quarter, above that of the first", 10, "MB"),
    Goal("soak_descriptors", "soak", "descriptors of the last quarter, above those of the first", 4),
)
