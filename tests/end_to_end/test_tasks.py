"""The tasks of CONTRIBUTING.md: each changes the files that its row names, and no other file of the library.

A copy of the package gets the lines of a task, and a program shows with the simulator what they do.
"""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from llm_provider._core.requests.parameter_table import PARAMETERS
from llm_provider._core.requests.routing import COMPATIBLE_HOSTS, ROUTES
from llm_provider.simulator import Fault, Simulator
from price_sources import TODAY, entry, needs_genai_prices, price_map
from support import RunScript, copy_package, run_copy

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "llm_provider"
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (.+?) \| (.+) \|$", GUIDE, re.MULTILINE))
"""What to add → what to change, as the table says."""
REPOSITORY_FOLDERS = ("docs", "tests", "tools", "benchmarks", "constraints", "src", ".github")


@dataclass(frozen=True, slots=True)
class Task:
    """A row of the table, and an example of it."""

    row: str
    added: tuple[tuple[str, str, str], ...]
    """File, the text before which the example puts other text, and this text."""
    program: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the simulator."""
    faults: tuple[tuple[Fault, dict[str, Any]], ...] = ()
    sent: tuple[tuple[str, str, list[Any]], ...] = ()
    """A provider, a field by its dotted name, and its value in each request that the provider got."""


PARAMETER = Task(
    "a parameter of a call",
    (
        ("_core/requests/parameters.py", "    modalities: Sequence[Modality] | None\n",
         '    creativity: Literal["low", "high"] | None\n    """How freely the model invents."""\n'),
        ("_core/requests/parameter_table.py", "from typing import NamedTuple\n",
         "from typing import Literal\n"),
        ("_core/requests/parameter_table.py", '    "verbosity": Parameter(\n',
         '    "creativity": Parameter(one_of(Literal["low", "high"]), "ask for ideas"),\n'),
        ("_core/formats/openai_chat/encode.py", '    "allowed_tools": ',
         '    "creativity": "creativity",\n'),
        ("_core/formats/openai_responses/encode.py", '    "verbosity": ',
         '    "creativity": "text.creativity",\n'),
        ("_core/formats/gemini/encode.py", '    "cached_content": ',
         '    "creativity": "generationConfig.creativity",\n'),
    ),
    """
def refusal(kind, model, **parameters):
    try:
        call(model, "Hi", **parameters)
    except kind as error:
        return str(error)
    raise AssertionError(f"{model} takes {parameters}")

wrong = refusal(RequestError, "gpt-4.1", creativity="High")
assert "creativity must be 'low' or 'high', not 'High': write creativity='high'" in wrong, wrong
assert "did you mean 'creativity'" in refusal(TypeError, "gpt-4.1", creativty="high")
assert "creativity: How freely the model invents." in str(call.__doc__)

for model in ("gpt-4.1", "gpt-5.5-pro", "gemini/gemini-4-argon"):
    assert not call(model, "Hi").cached
    for value in ("low", "high"):
        assert not call(model, "Hi", creativity=value).cached
        assert call(model, "Hi", creativity=value).cached
with Client(creativity="low") as client:
    assert client.call("gpt-4.1", "Hi").cached

for model in ("claude-sonnet-5-5", "together_ai/x"):
    refused = refusal(UnsupportedParameterError, model, creativity="low")
    assert "does not accept creativity: ask for ideas" in refused, refused
dropped = call("claude-sonnet-5-5", "Hi", creativity="low", unsupported="drop")
assert dropped.dropped == ("creativity",)
""",
    sent=(
        ("openai", "creativity", [None, "low", "high", None, None, None]),
        ("openai", "text.creativity", [None, None, None, None, "low", "high"]),
        ("gemini", "generationConfig.creativity", [None, "low", "high"]),
        ("anthropic", "creativity", [None]),
    ),
)  # fmt: skip

HOST = Task(
    "an OpenAI-compatible host",
    (
        ("_features/hosts/compatible_hosts.py", "aihubmix https", "acme_plain https://acme.example/v1\n"),
        ("_core/requests/routing.py", '    Route(\n        "local"', """\
    Route(
        "acme_ai",
        "https://api.acme.example/v1",
        lacks=frozenset({"n", "seed"}),
        spelling={"top_p": "nucleus", "dimensions": "vector_size"},
        embedding_limits=EmbeddingLimits(texts=2, tokens=None, text_tokens=None),
        output_only=_REASONING,
        litellm_names=("acme_cloud",),
        genai_prices_name="cohere",
    ),
"""),
    ),
    """
answer = call("acme_ai/org/model-1", "What is 1+1?", top_p=0.5, n=2)
assert (answer.texts, answer.provider, answer.cost) == (["2", "2"], "acme_ai", None)
with stream("acme_ai/org/model-1", "one two") as deltas:
    assert "".join(delta.text for delta in deltas) == "echo: one two"
assert deltas.response.usage.output_tokens > 0
embeddings = embed("acme_ai/org/model-1", ["one", "two", "three"], dimensions=8)
assert (len(embeddings.vectors), embeddings.provider, embeddings.cost) == (3, "acme_ai", None)
assert embeddings.usage.input_tokens > 0
assert embed("acme_ai/org/model-1", ["three"], dimensions=8).cached
try:
    call("acme_ai/org/model-1", "Hi", seed=1)
except UnsupportedParameterError as error:
    assert "leave it out; OpenAI's Chat Completions" in str(error), error
assert call("acme_plain/model-2", "1+1?").text == "2"

# Fields of an answer that the host itself refuses are not sent back to it.
del os.environ["ACME_BASE_URL"]
from llm_provider._core.formats.openai.encode import encode
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
answer = {"role": "assistant", "content": "Hello", "reasoning": "short", "refusal": None}
messages = [{"role": "user", "content": "Hi"}, answer, {"role": "user", "content": "Hi"}]
request = Request.build("acme_ai/org/model-1", messages, {})
sent = encode(request, resolve("acme_ai/org/model-1")).payload["messages"]
assert set(sent[1]) == {"role", "content", "refusal"}, sent
""",
    sent=(
        ("acme_ai", "model", ["org/model-1"] * 5),
        ("acme_ai", "nucleus", [0.5, 0.5, None, None, None]),
        ("acme_ai", "vector_size", [None, None, None, 8, 8]),
        ("acme_ai", "input", [None, None, None, ["one", "two"], ["three"]]),
        ("acme_plain", "model", ["model-2"]),
    ),
)  # fmt: skip

CLAUDES = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-5-5",
    "content": [{"type": "text", "text": "2"}], "stop_reason": "end_turn", "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 1, "server_tool_use": {"web_fetch_requests": 3}},
}  # fmt: skip
INTERRUPTED = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4.1",
    "choices": [{"index": 0, "finish_reason": "paused", "message": {"role": "assistant", "content": "2"}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
}  # fmt: skip
CHUNKS = [
    {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", **chunk}
    for chunk in (
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "2"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1, "usd_total": 0.25}},
    )
]
EVENTS = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS) + "data: [DONE]\n\n"

TASKS = (
    PARAMETER,
    HOST,
    Task(
        "a count of usage, such as one of Claude's",
        (
            ("_core/types/usage.py", "    unpriced_tools: int = 0\n", "    web_fetches: int = 0\n"),
            ("_core/formats/anthropic/decode.py", "        web_searches=count(",
             '        web_fetches=count(part(usage, "server_tool_use"), "web_fetch_requests"),\n'),
        ),
        """
with Client() as client:
    results = client.call_many("claude-haiku-5-5", ["1+1?", "1+1?"])
    assert [result.usage.web_fetches for result in results] == [3, 3]
    assert client.usage.usage.web_fetches == 3
    assert [row.usage.web_fetches for row in client.usage.rows("model")] == [3]
assert call("claude-haiku-5-5", "1+1?").to_dict()["usage"]["web_fetches"] == 3
""",
        faults=((Fault(body=json.dumps(CLAUDES)), {}),),
    ),
    Task(
        "a finish reason",
        (
            ("_core/types/messages.py", '"unknown"]\n"""Why a model', '"paused", '),
            ("_core/types/messages.py", '    "refusal": "the model refused",\n',
             '    "paused": "the model has paused",\n'),
            ("_core/formats/shared/replies.py", '    ("refusal", "refusal"),\n',
             '    ("paused", "paused on_hold"),\n'),
        ),
        """
from llm_provider._features.cli.main import main
assert main(["ask", "gpt-4.1", "1+1?", "--no-stream"]) == 3
with Client(cache_finish_reasons=["paused"]) as client:
    results = client.call_many("gpt-4.1", ["1+1?"])
    assert client.call("gpt-4.1", "1+1?").cached
assert results.to_pandas()["finish_reason"].to_list() == ["paused"]
page = Path("page.html")
results.to_html(page)
assert "incomplete" in page.read_text()
""",
        faults=((Fault(body=json.dumps(INTERRUPTED)), {"times": 2}),),
    ),
    Task(
        "a column of a table of results",
        (("_core/types/results_table.py", '"reasoning_output_tokens")\n', '"web_searches", '),),
        """
results = call_many("gpt-5.5-pro", ["1+1?", "2+2?"], n=2)
assert results.to_pandas()["web_searches"].to_list() == [6, 0, 6, 0]
""",
        settings={"web_searches": 3},
    ),
    Task(
        "the delay before a retry",
        (("_core/pace/failures.py", '    else:\n        why = f"asked to wait',
          "        delay = 60.0 * attempts\n"),),
        """
try:
    call("gpt-4.1", "1+1?", deadline=30)
except InternalServerError as error:
    assert error.attempts == 1
    assert "not sent again: the deadline of 30 s is" in str(error), error
else:
    raise AssertionError("a call is sent again at once")
assert call("gpt-4.1", "1+1?").text == "2"
""",
        faults=((Fault(status=500), {}),),
    ),
    Task(
        "an option of `ask` and `map`",
        (("_features/cli/parsing.py", '    "--seed": {', """\
    "--top-p": {"metavar": "P", "type": float, "help": "the most probable tokens alone"},
"""),),
        """
from llm_provider._features.cli.main import main
assert main(["ask", "gpt-4.1", "1+1?", "--top-p", "0.5"]) == 0
Path("rows.jsonl").write_text('{"prompt": "2+2?"}')
assert main(["map", "gpt-4.1", "rows.jsonl", "answers.jsonl", "--top-p", "0.25"]) == 0
""",
        sent=(("openai", "top_p", [0.5, 0.25]),),
    ),
    Task(
        "a rule of a budget",
        (("_core/money/budget.py", "        return self._fits(balance, exact().add(amount, ",
          "        if amount > self._limit / 2:\n            return False\n"),),
        """
for path in (None, "run.budget"):
    budget = Budget(0.02, path=path)
    with Client(budget=budget) as client:
        try:
            client.call("gpt-4.1", "1+1?", max_tokens=1000)
        except BudgetExceededError as error:
            assert "$0.02 of the budget of $0.02 is left" in str(error), error
        else:
            raise AssertionError("it takes more than half of the budget")
        assert budget.spent == budget.reserved == 0
        client.call("gpt-4.1", "1+1?", max_tokens=100, cache="refresh")
        assert budget.spent > 0
""",
        sent=(("openai", "max_completion_tokens", [100, 100]),),
    ),
    Task(
        "a field of a cache entry",
        (
            ("_core/store/entry.py", "_CHECKSUM_BYTES = 16\n", "SCHEMA_VERSION = 3\n"),
            ("_core/store/entry.py", "\n    def list_known(", "    answer_id: str | None = None\n"),
            ("_core/store/entry.py", '"served": self.served', '"answer_id": self.answer_id, '),
            ("_core/store/entry.py", ")\n\n\ndef decode_question(", ', head.get("answer_id")'),
            ("_core/journey/engine.py", ")\n                writes.append(", ", answer.id"),
        ),
        """
identifiers = set()
for folder in ("first", "second"):
    with Client(cache_dir=folder) as client:
        if folder == "second":
            assert client.cache.load("archive.jsonl").added == 1
        answer = client.call("gpt-4.1", "1+1?")
        assert answer.cached == (folder == "second")
        assert client.call("gpt-4.1", "1+1?").cached
        client.cache.export("archive.jsonl")
        (fields,) = map(json.loads, Path("archive.jsonl").read_text().splitlines()[1:])
        assert fields["answer_id"] == answer.id, fields
    assert [path.name for path in Path(folder).glob("v*")] == ["v3"]
""",
        sent=(("openai", "model", ["gpt-4.1"]),),
    ),
    Task(
        "a class of error",
        (
            ("_core/errors.py", "class APITimeoutError(ProviderError):",
             'class MaintenanceError(ProviderError):\n    """The provider is under maintenance."""\n\n\n'),
            ("_core/pace/failures.csv", "OverloadedError,200 4xx 5xx,",
             "MaintenanceError,200 4xx 5xx,under_maintenance,,,the host's page of errors\n"),
            ("_core/pace/failure_table.py", "    errors.InternalServerError: Consequence(",
             "    errors.MaintenanceError: Consequence(fallback=True),\n"),
            ("__init__.py", "        MissingAPIKeyError,\n", "        MaintenanceError,\n"),
            ("__init__.py", '"Message", "MissingAPIKeyError",', '"MaintenanceError", '),
        ),
        """
import llm_provider
import pickle
try:
    call("gpt-4.1", "1+1?", max_retries=0)
except llm_provider.MaintenanceError as error:
    assert (error.status, error.attempts, error.retryable) == (503, 1, False)
    assert type(pickle.loads(pickle.dumps(error))) is type(LLMError.from_dict(error.to_dict())) is type(error)
answer = call("gpt-4.1", "1+1?", fallback=["claude-haiku-5-5"])
assert answer.provider == "anthropic"
assert [passed.error for passed in answer.passed_over] == ["MaintenanceError"]
""",
        faults=((Fault(status=503, code="under_maintenance"), {"times": None, "provider": "openai"}),),
    ),
    Task(
        "the cost that a reply or a stream tells",
        (
            ("_core/formats/shared/replies.py", '"estimated_cost"})\n', '"usd_total", '),
            ("_features/quirks/bills.py", '    cost = usage.get("cost")\n    if cost is None:\n',
             '    if "usd_total" in usage:\n        return _amount(usage["usd_total"])\n'),
        ),
        """
with Client() as client:
    with client.stream("together_ai/m", "1+1?") as deltas:
        assert [delta.text for delta in deltas if delta.text] == ["2"]
    assert (deltas.response.cost, deltas.response.cost_source) == (0.25, "reply")
    assert client.usage.cost == 0.25
""",
        faults=((Fault(body=EVENTS, content_type="text/event-stream"), {}),),
    ),
    Task(
        "when a row of a provider's batch is lost",
        (("_core/batches/remote.py", "        if remote.done > answered or (", """\
        if answered and self._agreeing >= _AGREEING_READINGS:
            return "lost"
"""),),
        """
from llm_provider._core.batches import collect, remote, submit
collect._FIRST_POLL, remote._FIRST_PAUSE, submit._SETTLING_SECONDS = 0.02, 0.025, 0.1
prompts = ["1+1?", "2+2?", "3+3?"]
with Client() as client:
    results = client.call_many("gpt-4.1", prompts, delivery="batch", outage_patience=5)
    assert [result.text for result in results] == ["2", "4", "6"]
    # The lost row was sent again, in another batch.
    assert sorted(result.attempts for result in results) == [1, 1, 2]
""",
        faults=((Fault(cut_after=2), {"times": None, "match": "files.download"}),),
    ),
)  # fmt: skip

BEGINNING = """
import json, os, sys, warnings
from pathlib import Path
for name in [*sys.modules]:
    if name.partition(".")[0] == "llm_provider":
        del sys.modules[name]
sys.path.insert(0, os.environ["COPY"])
warnings.simplefilter("ignore")
from llm_provider import *
"""


def paths_in(text: str) -> list[str]:
    """The names of files and folders in a text of the guide: with "/" or the ending of a file."""
    names = (name for code in re.findall(r"`([^`]+)`", text) for name in code.split())
    return [name for name in names if re.fullmatch(r"[\w.*/-]*(/|\.(py|csv|md|json|toml|yml))", name)
            or re.fullmatch(r"[a-z_.][\w.*-]*(/[\w.*-]+)+", name)]  # fmt: skip


def library_files(row: str) -> list[str]:
    """The files of the library that a row names, from the package's folder on; `*` stands for any name."""
    return [name for name in paths_in(ROWS[row]) if name.partition("/")[0] not in REPOSITORY_FOLDERS]


def value_of(body: Any, name: str) -> Any:
    for key in name.split("."):
        body = body.get(key, {})
    return None if body == {} else body


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.row)
def test_a_task_changes_the_files_of_its_row(
    task: Task, llm_simulator: Simulator, run_warm_script: RunScript, tmp_path: Path
) -> None:
    named, changed = library_files(task.row), [file for file, _, _ in task.added]
    assert named[0] == changed[0], "the row begins with the file to open first"
    assert [file for file in changed if not any(fnmatch(file, name) for name in named)] == []
    assert [name for name in named if not any(fnmatch(file, name) for file in changed)] == []
    llm_simulator.configure(**task.settings)
    for fault, where in task.faults:
        llm_simulator.inject(fault, **where)
    copy = copy_package(tmp_path, task.added)
    program = f"{BEGINNING}os.chdir({str(tmp_path)!r})\n{task.program}"
    variables = llm_simulator.environment("acme_ai", "acme_plain")
    run_warm_script(program, COPY=str(copy / "src"), **variables)
    for provider, name, values in task.sent:
        bodies = [request.body for request in llm_simulator.requests(provider)]
        assert [value_of(body, name) for body in bodies] == values


def test_the_examples_are_new() -> None:
    assert "creativity" not in PARAMETERS
    assert {"acme_ai", "acme_plain"}.isdisjoint({*ROUTES, *COMPATIBLE_HOSTS})


@needs_genai_prices
def test_prices_of_a_host_are_refreshed_under_the_sources_names(tmp_path: Path) -> None:
    extended = copy_package(tmp_path, HOST.added)
    listed = price_map(tmp_path, acme_cloud__org__model_1=entry("acme_cloud", output_cost_per_token=1e-05))
    file = shutil.copy(extended / "prices.csv", tmp_path)
    command = ("-m", "tools.prices", "--litellm", str(listed), "--day", TODAY)
    ended = run_copy(extended, *command, "--file", str(file))
    assert ended.returncode == 0, ended.stderr
    rows = Path(file).read_text(encoding="utf-8")
    assert re.search(r"^acme_ai,org/model_1,standard,0,2,.*litellm 1\.2\.3", rows, re.MULTILINE)
    assert re.search(r"^acme_ai,command-.*genai-prices", rows, re.MULTILINE)


NO_FILES = {"utils.py": "there is none", "simulation-failure.json": "a run writes it"}
"""Names in the guide that are of no file of the repository."""


def test_every_path_of_the_guide_exists() -> None:
    roots = (ROOT, PACKAGE, ROOT / "src", ROOT / "tests" / "data" / "golden")
    # A word in capitals stands for any name.
    named = {name for name in paths_in(GUIDE) if not re.search(r"\b_?[A-Z]+\b(?!\.md)|^\.venv", name)}
    missing = {name for name in named if not any(next(root.glob(name), None) for root in roots)}
    alone = {name for name in missing if "/" not in name}
    found = {name for name in alone if any(next((ROOT / top).rglob(name), None) for top in ("src", "tests"))}
    assert missing - found == set(NO_FILES)
