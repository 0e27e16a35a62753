"""lm-evaluation-harness with models of this library, beside its own `local-completions`."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from llm_provider.simulator import Fault, Simulator

if TYPE_CHECKING:
    from conftest import Run

pytestmark = [
    pytest.mark.plugins,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
    ),
]

ITEMS = 200
TASK = """
task: small_science
dataset_path: json
dataset_kwargs: {data_files: {test: ITEMS_FILE}}
output_type: multiple_choice
test_split: test
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_choice: "{{choices}}"
doc_to_target: "{{label}}"
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: acc_norm, aggregation: mean, higher_is_better: true}
metadata: {version: 1}
"""


def make_items(seed: int = 29) -> Iterator[dict[str, Any]]:
    """Questions of school science with four choices, in the form of ARC-easy, with sentences of our own."""
    facts = {
        "Which {kind} keeps heat inside a house at {time}?": ["thick wool", "a thin wire", "an open door"],
        "What does a {kind} need to grow in the {time}?": ["light and water", "loud music", "a magnet"],
        "Which {kind} becomes a gas when it is warmed in the {time}?": ["water", "a dry stone", "iron"],
        "What moves the {kind} across the sky by {time}?": ["the turning Earth", "the wind", "clouds"],
    }  # fmt: skip
    kinds, times = ["material", "plant", "thing", "moon", "seed"], ["night", "spring", "winter", "noon"]
    draw = random.Random(seed)
    for _ in range(ITEMS):
        question, (right, *wrong) = draw.choice(list(facts.items()))
        choices = [right, *wrong, draw.choice(["nothing at all", "the 7 sounds of a bell", "a café"])]
        draw.shuffle(choices)
        filled = question.format(kind=draw.choice(kinds), time=draw.choice(times))
        yield {"question": filled, "choices": choices, "label": choices.index(right)}


@pytest.fixture
def hosts(simulator: Simulator, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with hosts on the simulator, which the environment names."""
    path = tmp_path / "hosts.toml"
    dialects = {"vllm": "vllm", "tgi": "tgi", "lab": "openai"}
    path.write_text(
        "\n".join(
            f'[{name}]\nurls = "{simulator.url(name)}"\ndialect = "{kind}"' for name, kind in dialects.items()
        )
    )
    monkeypatch.setenv("LLM_PROVIDER_HOSTS", str(path))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return path


def make_task(folder: Path) -> Path:
    items = folder / "items.jsonl"
    items.write_text("".join(f"{json.dumps(item)}\n" for item in make_items()), encoding="utf-8")
    (folder / "task").mkdir()
    (folder / "task" / "task.yaml").write_text(TASK.replace("ITEMS_FILE", str(items)), encoding="utf-8")
    return folder / "task"


def load(**parameters: Any) -> Any:
    from lm_eval.api.registry import get_model

    import llm_provider.integrations.lm_eval  # noqa: F401  # it registers the model

    return get_model("llm_provider").create_from_arg_obj(parameters, {"batch_size": 1, "device": None})


class ServerTokenizer:
    """The server's own tokenizer, with the token that begins a text, for `local-completions`."""

    eos_token = "</s>"

    def __init__(self, root: str) -> None:
        self._root = root

    def encode(self, text: str, **_: Any) -> list[int]:
        reply = requests.post(f"{self._root}/tokenize", json={"prompt": text, "model": "toy"})
        tokens: list[int] = reply.json()["tokens"]
        return tokens


def own_model(simulator: Simulator) -> Any:
    """The harness's own model for servers of completions, which sends ids."""
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    root = simulator.url("vllm").removesuffix("/v1")
    model = LocalCompletionsAPI(
        base_url=f"{root}/v1/completions", model="toy", tokenizer_backend=None, tokenized_requests=True
    )
    model.tokenizer, model.tokenizer_backend = ServerTokenizer(root), "remote"
    model.tokenized_requests = True
    return model


def test_a_task_has_the_harness_models_results(simulator: Simulator, hosts: Path, tmp_path: Path) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    tasks = TaskManager(include_path=str(make_task(tmp_path)), include_defaults=False)

    def run(model: Any) -> Any:
        return lm_eval.simple_evaluate(
            model=model, tasks=["small_science"], task_manager=tasks, log_samples=True, bootstrap_iters=0
        )

    theirs, ours = run(own_model(simulator)), run(load(model="vllm/toy"))
    samples = zip(theirs["samples"]["small_science"], ours["samples"]["small_science"], strict=True)
    for their, our in samples:
        assert [logprob for logprob, _ in our["filtered_resps"]] == pytest.approx(
            [logprob for logprob, _ in their["filtered_resps"]]
        )
        assert [greedy for _, greedy in our["filtered_resps"]] == [
            greedy for _, greedy in their["filtered_resps"]
        ]
    for metric in ("acc,none", "acc_norm,none"):
        assert ours["results"]["small_science"][metric] == theirs["results"]["small_science"][metric]
    assert len(ours["samples"]["small_science"]) == ITEMS
    before = simulator.ledger().requests
    assert run(load(model="vllm/toy"))["results"] == ours["results"]
    assert simulator.ledger().requests == before


def test_where_its_own_model_scores_nothing_this_one_refuses(simulator: Simulator, hosts: Path) -> None:
    from lm_eval.api.instance import Instance

    from llm_provider import BatchError

    pairs = [("The sky is", " blue"), ("The sky is", " on the land")]
    asked = [Instance("loglikelihood", {}, pair, index) for index, pair in enumerate(pairs)]
    simulator.inject(Fault(shape="no_prompt_scores"), provider="vllm", times=None)
    assert own_model(simulator).loglikelihood(asked, disable_tqdm=True) == [(0, True), (0, True)]
    with pytest.raises(BatchError, match="check 'count' failed"):
        load(model="vllm/toy", method="echo").loglikelihood(asked, disable_tqdm=True)


def test_other_requests(simulator: Simulator, hosts: Path) -> None:
    from lm_eval.api.instance import Instance

    from llm_provider import BatchError, RequestError
    from llm_provider.simulator._behaviour.toy_model import encode, score

    def instances(kind: str, *arguments: Any) -> list[Any]:
        return [Instance(kind, {}, each, index) for index, each in enumerate(arguments)]

    model = load(model="vllm/toy", max_concurrent=4)
    ids = encode("Hello world")
    rolling = model.loglikelihood_rolling(
        instances("loglikelihood_rolling", ("Hello world",)), disable_tqdm=True
    )
    assert rolling == pytest.approx([sum(score("toy", ids, index) for index in range(1, len(ids)))])
    texts = model.generate_until(
        instances(
            "generate_until",
            ("What is 2+2?", {"until": ["\n"], "max_gen_toks": 10, "do_sample": False}),
            ("one two three", {"until": " two", "temperature": 0.5}),
            ("What is 3+4?", {"until": ["\n"], "max_gen_toks": 10, "do_sample": False}),
        ),
        disable_tqdm=True,
    )
    assert (texts[0], texts[2]) == ("4", "7")
    assert " two" not in texts[1]
    sent = [request.body for request in simulator.requests() if request.path.endswith("/chat/completions")]
    assert sorted(body["temperature"] for body in sent) == [0, 0, 0.5]
    unsaid = instances("loglikelihood", ("Hello", " world"))
    with pytest.raises(RequestError, match="unknown_greedy=False"):
        load(model="tgi/toy").loglikelihood(unsaid, disable_tqdm=True)
    assert load(model="tgi/toy", unknown_greedy=False).loglikelihood(unsaid, disable_tqdm=True)[0][1] is False
    with pytest.raises((BatchError, RequestError), match="kind of the server"):
        load(model="lab/toy").loglikelihood(unsaid, disable_tqdm=True)
    with pytest.raises(BatchError, match="budget"):
        load(model="vllm/toy", budget=1e-9).loglikelihood(
            instances("loglikelihood", ("Hello", " was")), disable_tqdm=True
        )
    with pytest.raises(TypeError, match="wrong_name"):
        load(model="vllm/toy", wrong_name=1).generate_until(instances("generate_until", ("Hi", {})))


def test_the_command(simulator: Simulator, hosts: Path, run_tool: Run, tmp_path: Path) -> None:
    task = make_task(tmp_path)
    ended = run_tool(
        Path(sys.executable).name, "-m", "llm_provider.integrations.lm_eval", "run", "--model",
        "llm_provider", "--model_args", "model=vllm/toy", "--tasks", "small_science", "--include_path",
        str(task), "--limit", "5",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "acc_norm" in ended.stdout
