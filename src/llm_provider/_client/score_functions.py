"""The functions of the module that score given texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

from .._requests.request import seal
from .._requests.signatures import with_parameters
from .._types.scores import Scores
from .batch_arguments import OnError
from .functions import default_client

if TYPE_CHECKING:
    from .._errors import LLMError
    from .._requests.parameters import ScoreManyParameters, ScoreParameters
    from .._types.results import Results


@with_parameters
def score(
    model: str, context: str, continuations: Iterable[str], **parameters: Unpack[ScoreParameters]
) -> Scores:
    """Find how likely a model finds given texts: the log-probability of each continuation of a context.

    Each continuation has a cache entry of its own. The rule for the border between both is that of
    lm-evaluation-harness. Before the first score of a server, a probe asks it for what is known, and every
    reply is checked: docs/scoring.md has the rules, the checks and the servers.

    Args:
        model: "together_ai/...", "fireworks_ai/...", or a model of a host of your own: `Host`.
        context: The text before the continuations. It may be empty if the model's tokenizer puts a token in
            front of every text.
        continuations: The texts to score. No text may be empty.
        **parameters: See `ScoreParameters`.

    Returns:
        A score for each continuation in their order, the usage, and the cost in USD.

    Raises:
        RequestError: a text or a parameter is not valid, or the provider cannot score. Nothing was sent.
        ScoreCheckError: the server's values cannot be right. Nothing of them is stored.
        ProviderError: the provider failed, and retries did not help. The scores that came are stored.
        TypeError: a parameter does not exist.

    >>> from llm_provider import Client, Host
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator, Client(hosts=[Host("lab", simulator.url("lab"), "vllm")]) as client:
    ...     scores = client.score("lab/toy", "Hello", [" world", " the"])
    >>> [round(logprob, 2) for logprob in scores.logprobs], scores.best.tokens
    ([-11.95, -9.42], (' the',))
    """
    seal(parameters)
    return default_client().score(model, context, continuations, **parameters)


@with_parameters
async def ascore(
    model: str, context: str, continuations: Iterable[str], **parameters: Unpack[ScoreParameters]
) -> Scores:
    """`score` for any event loop. Cancelling it cancels the requests at the server."""
    seal(parameters)
    return await default_client().ascore(model, context, continuations, **parameters)


@with_parameters
def score_many(
    model: str,
    contexts: Iterable[str],
    continuations: Iterable[str] | Iterable[Iterable[str]],
    *,
    on_error: OnError = "return",
    **parameters: Unpack[ScoreManyParameters],
) -> Results[Scores | LLMError]:
    """Score the continuations of many contexts, with as many requests at once as the server takes.

    Args:
        model: As for `score`.
        contexts: The texts before the continuations, such as a column of a data frame.
        continuations: A list of texts for each context, such as another column; or texts that all contexts
            have in common.
        on_error: "return" puts the error of a failed call into its place, "raise" raises a `BatchError`.
        **parameters: See `ScoreManyParameters`.

    Raises:
        RequestError: an argument is not valid, or the provider cannot score. Nothing was sent.
        BatchError: a call failed and `on_error` is "raise".
        TypeError: a parameter does not exist.

    >>> from llm_provider import Client, Host
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator, Client(hosts=[Host("lab", simulator.url("lab"), "vllm")]) as client:
    ...     results = client.score_many("lab/toy", ["He was", "That is"], [" world", " the"])
    >>> results
    Results(2 responses, 2 unknown)
    >>> results.to_pandas()[["input_index", "text"]].values.tolist()
    [[0, ' world'], [0, ' the'], [1, ' world'], [1, ' the']]
    """
    seal(parameters)
    return default_client().score_many(model, contexts, continuations, on_error=on_error, **parameters)
