"""A model of lm-evaluation-harness: `--model llm_provider --model_args model=lab/my-model`.

The harness loads no plugins, so its command is run by this module, whose import registers the model:

    python -m llm_provider.integrations.lm_eval run --model llm_provider --model_args model=lab/my-model ...

Scores go through the checks of this library.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from .._core.errors import RequestError
from .._core.json_values import JSONObject
from .._core.requests.parameters import Parameters, ScoreParameters
from .._features.score.scores import Score, Scores
from .conversation import Variant

_OF_THE_HARNESS = frozenset({"batch_size", "max_batch_size", "device"})
"""What the harness gives every model. The rate control decides about requests at once."""
_MOST_STOPS = 4
"""More stop texts are refused by some providers. The answer is cut here in any case."""


@register_model("llm_provider")
class LLMProviderLM(LM):  # type: ignore[misc]  # lm_eval is no requirement: its types are not known
    """A model of this library in lm-evaluation-harness.

    Args:
        model: Any model name of this library. Only some can score: docs/decide.md.
        unknown_greedy: What `is_greedy` is where the server does not tell it; without it, such a score is an
            error. Only metrics of whole greedy continuations use it.
        max_concurrent: The most requests in flight.
        **parameters: See `Parameters` and `ScoreParameters`; each request has those that it takes.
    """

    def __init__(
        self,
        model: str,
        unknown_greedy: bool | None = None,
        max_concurrent: int | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__()
        known = {name: value for name, value in parameters.items() if name not in _OF_THE_HARNESS}
        self.model = model
        self._unknown_greedy = unknown_greedy
        self._many: JSONObject = {"max_concurrent": max_concurrent, "on_error": "raise"}
        # One budget holds for the scores and the answers together.
        self._variant = Variant({name: known.pop(name, None) for name in ("budget", "token_budget")})
        scoring = ScoreParameters.__annotations__.keys()
        self._scoring = {name: known[name] for name in known.keys() & scoring}
        # A name that none of them has is an error of `call_many`.
        names = known.keys() - (scoring - Parameters.__annotations__.keys())
        self._answering = {name: known[name] for name in names}

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """The log-probability of each continuation, and whether it is the greedy one."""
        scores = self._score([request.args for request in requests], disable_tqdm)
        greedy = [self._unknown_greedy if score.is_greedy is None else score.is_greedy for score in scores]
        if None in greedy:
            raise RequestError(
                f"the server of {self.model} does not tell whether tokens are the most likely ones: for "
                "metrics that do not need it, add unknown_greedy=False to --model_args"
            )
        return [(score.logprob, bool(is_greedy)) for score, is_greedy in zip(scores, greedy, strict=True)]

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """The log-probability of each whole text, which must fit into the model's context."""
        scores = self._score([("", request.args[0]) for request in requests], disable_tqdm)
        return [score.logprob for score in scores]

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """The answer to each prompt, which is sent as a user's message, up to the first stop text."""
        answers: dict[int, str] = {}
        for _, group in groupby(sorted(enumerate(requests), key=_options_key), key=_options_key):
            indices, members = zip(*group, strict=True)
            stops, options = _read_options(members[0].args[1])
            results = self._variant.client.call_many(
                self.model,
                [request.args[0] for request in members],
                progress=False if disable_tqdm else None,
                **{**self._many, **self._answering, **options},
            )
            answers |= {
                index: functools.reduce(lambda text, stop: text.partition(stop)[0], stops, result.text)
                for index, result in zip(indices, results, strict=True)
            }
        return [answers[index] for index in range(len(requests))]

    def _score(self, pairs: Sequence[tuple[str, str]], disable_tqdm: bool) -> list[Score]:
        results = self._variant.client.score_many(
            self.model,
            [context for context, _ in pairs],
            [[continuation] for _, continuation in pairs],
            progress=False if disable_tqdm else None,
            **{**self._many, **self._scoring},
        )
        return [cast("Scores", result)[0] for result in results]


def _options_key(numbered: tuple[int, Any]) -> str:
    return json.dumps(numbered[1].args[1], sort_keys=True, default=str)


def _read_options(options: JSONObject) -> tuple[list[str], JSONObject]:
    """The stop texts and the parameters of a request's generation."""
    given = dict(options)
    until = given.pop("until", None) or []
    stops = [until] if isinstance(until, str) else list(until)
    greedy = given.pop("do_sample", None) is False
    parameters: JSONObject = {"max_tokens": given.pop("max_gen_toks", 256), "temperature": 0, **given}
    return stops, parameters | ({"temperature": 0} if greedy else {}) | {"stop": stops[:_MOST_STOPS]}


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
