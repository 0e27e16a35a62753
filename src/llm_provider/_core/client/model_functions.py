"""The functions of the module about models: their list, costs, tokens, scores, decisions, rechecks."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Any, Unpack, overload

from ..requests.request import seal
from ..requests.signatures import with_parameters
from ..types.messages import Prompt
from ..types.usage import Usage
from .batch_methods import Models, OnError
from .functions import default_client

if TYPE_CHECKING:
    from datetime import date
    from decimal import Decimal

    from ..._features.decide.decisions import Decisions
    from ..._features.decide.questions import Questions
    from ..._features.estimates.estimate import Estimate
    from ..._features.estimates.estimates import Estimates
    from ..._features.models.known_models import Model
    from ..._features.models.token_count import TokenCount
    from ..._features.recheck.report import Recheck
    from ..._features.score.scores import Scores
    from ..errors import LLMError
    from ..requests.inputs import AsyncInputs, Estimable, Inputs
    from ..requests.parameters import (
        DecideManyParameters,
        DecideParameters,
        EstimateParameters,
        Parameters,
        RecheckParameters,
        ScoreManyParameters,
        ScoreParameters,
    )
    from ..types.results import Results


def models(provider: str | None = None, *, live: bool = False) -> list[Model]:
    """The models that can be called, with their limits and prices, sorted by provider and name.

    The list comes from the tables of this package, without network. A model that is missing can be called
    too; only its price is not known.

    Args:
        provider: The only provider to list, such as "openai", "groq" or "openrouter"; default all. Your own
            servers ("local") and litellm's other providers have no list here.
        live: Whether the provider is asked which models the key reaches, "local" too. Its own limits and
            modalities come before the tables'; prices always come from the tables. It needs a provider.

    Raises:
        RequestError: there is no such provider. The message names near ones.
        MissingAPIKeyError: with `live`, a key is required and none is set.
        ProviderError: with `live`, the provider gave no list, and retries did not help.

    >>> [model.name for model in models("anthropic") if "haiku-5" in model.name]
    ['claude-haiku-5-5']
    >>> cheapest = min(
    ...     (model for model in models("gemini") if model.kind == "chat" and model.output_price),
    ...     key=lambda model: model.output_price,
    ... )
    """
    return default_client().models(provider, live=live)


@overload
def estimate(model: str, inputs: Estimable, **parameters: Unpack[EstimateParameters]) -> Estimate: ...


@overload
def estimate(model: Models, inputs: Estimable, **parameters: Unpack[EstimateParameters]) -> Estimates: ...


@with_parameters
def estimate(
    model: str | Models, inputs: Estimable, **parameters: Unpack[EstimateParameters]
) -> Estimate | Estimates:
    """Estimate the requests, tokens, USD and time of `call_many` or `embed` with the same arguments.

    Nothing is sent. It looks into the cache, loads no SDK and needs no key. Input tokens are counted if
    tiktoken and the model's encoding are on this machine, else estimated. Output tokens come from stored
    answers of the model, else a guess. `Estimate.assumptions` names the method. docs/prices.md has the
    rules and their errors.

    Args:
        model: As for `call_many` or `embed`. A list of models gives `Estimates`, with one for each.
        inputs: As for `call_many`, or the texts of `embed`. An iterator is used up.
        **parameters: See `EstimateParameters`.

    Raises:
        RequestError: the model or a parameter is not valid.
        TypeError: `inputs` is one prompt, or a parameter does not exist.

    >>> found = estimate("claude-haiku-5-5", ["Name a bird.", "Name a fish."], max_tokens=100)
    >>> found.requests, found.output_tokens.high == 200, found.cost.high < 0.001
    (2, True, True)
    >>> sorted(found.costs)
    ['batch', 'standard']
    >>> estimate("text-embedding-3-small", ["a bird", "a fish"]).requests
    1
    """
    seal(parameters)
    client: Any = default_client()
    return client.estimate(model, inputs, **parameters)  # type: ignore[no-any-return]


@overload
async def aestimate(
    model: str, inputs: Estimable | AsyncIterable[Prompt], **parameters: Unpack[EstimateParameters]
) -> Estimate: ...


@overload
async def aestimate(
    model: Models, inputs: Estimable | AsyncIterable[Prompt], **parameters: Unpack[EstimateParameters]
) -> Estimates: ...


@with_parameters
async def aestimate(
    model: str | Models, inputs: Estimable | AsyncIterable[Prompt], **parameters: Unpack[EstimateParameters]
) -> Estimate | Estimates:
    """`estimate` for any event loop. `inputs` may also be an asynchronous iterable."""
    seal(parameters)
    client: Any = default_client()
    return await client.aestimate(model, inputs, **parameters)  # type: ignore[no-any-return]


def price(
    model: str, usage: Usage, *, service_tier: str | None = None, at: date | None = None
) -> Decimal | None:
    """The cost of a usage in USD by the shipped `prices.csv`; None if the price is not known.

    Args:
        model: A model name, as for `call`.
        usage: The usage of one call.
        service_tier: The service level, by its name in `prices.csv`: "standard", "batch", "flex", "priority",
            "fast", "ultrafast" or "off_peak". "default" and "auto" are "standard".
        at: The day or the time of the call, for past and announced prices. A datetime without a zone is UTC.

    Raises:
        RequestError: the model has no route, the usage is no `Usage` of counts, the service level does not
            exist, or `at` is no date.

    >>> price("claude-haiku-5-5", Usage(input_tokens=1000, output_tokens=100))
    Decimal('0.00015')
    >>> price("claude-haiku-5-5", Usage(input_tokens=1000, output_tokens=100), service_tier="batch")
    Decimal('0.000075')
    >>> from datetime import date
    >>> usage = Usage(input_tokens=1_000_000)
    >>> [price("mistral/mistral-large-4", usage, at=date(2026, 10, day)) for day in (19, 20, 29)]
    [Decimal('0.68'), Decimal('1.36'), Decimal('0.7')]
    """
    return default_client().price(model, usage, service_tier=service_tier, at=at)


@with_parameters
def count_tokens(
    model: str, messages: Prompt, *, exact: bool = True, **parameters: Unpack[Parameters]
) -> TokenCount:
    """Count the input tokens of a call without making it.

    Anthropic and Gemini count for nothing. They are asked under the same rate control and with the same
    retries as calls, and not again in this process. For all other models the texts are counted with OpenAI's
    vocabulary if it is on this machine, and else the tokens are estimated; nothing is sent then. `method` of
    the result says which. docs/prices.md has the errors of estimates.

    Args:
        model: A model name, as for `call`.
        messages: One user message, or a list of OpenAI-style messages, with images and tool calls.
        exact: Whether a provider that counts is asked. False sends nothing and needs no key. With
            cache="only" nothing is sent either.
        **parameters: See `Parameters`. `system`, `tools` and `response_format` are counted too.

    Raises:
        RequestError: the model or the provider cannot serve the call. Nothing was sent.
        ProviderError: the provider failed to count, and retries did not help.
        TypeError: a parameter does not exist.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     count = count_tokens("claude-sonnet-5-5", "Why?", base_url=simulator.url("anthropic"))
    >>> count.exact, count.method
    (True, 'provider')
    >>> count_tokens("claude-sonnet-5-5", "Why?", exact=False).method
    'estimate'
    """
    seal(parameters)
    return default_client().count_tokens(model, messages, exact=exact, **parameters)


@with_parameters
async def acount_tokens(
    model: str, messages: Prompt, *, exact: bool = True, **parameters: Unpack[Parameters]
) -> TokenCount:
    """`count_tokens` for any event loop. Cancelling it cancels the request at the server."""
    seal(parameters)
    return await default_client().acount_tokens(model, messages, exact=exact, **parameters)


@with_parameters
def score(
    model: str, context: str, continuations: Iterable[str], **parameters: Unpack[ScoreParameters]
) -> Scores:
    """Find how likely a model finds given texts: the log-probability of each continuation of a context.

    Each continuation has a cache entry of its own. The rule for the border between both is
    lm-evaluation-harness's. Before the first score of a server, a probe asks it for what is known, and every
    reply is checked: docs/decide.md has the rules, the checks and the servers.

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
    Results(2 responses, 2 costs unknown)
    >>> results.to_pandas()[["input_index", "text"]].values.tolist()
    [[0, ' world'], [0, ' the'], [1, ' world'], [1, ' the']]
    """
    seal(parameters)
    return default_client().score_many(model, contexts, continuations, on_error=on_error, **parameters)


@with_parameters
def decide(
    model: str, input: Prompt, questions: Questions, **parameters: Unpack[DecideParameters]
) -> Decisions:
    """Ask typed questions about one input. Each is answered by probabilities.

    Each question is cached by itself: one more question asks only that one. Those that are missing are asked
    together. An answer may depend on its neighbours: `pack=False` asks each alone. docs/decide.md.

    Args:
        model: "gpt-6-luna" or "gemini-decision-1"; any model with another `method`.
        input: What is asked about: a text, or a list of OpenAI-style messages with calls of tools.
        questions: A dict or a list of `predicate`, `choice` and `score_levels`, or a pydantic model whose
            fields are bool, `Literal` or `Enum`, and whose descriptions are what is asked.
        **parameters: See `DecideParameters`.

    Raises:
        RequestError: an argument is not valid, or the provider has no such endpoint. Nothing was sent.
        ProviderError: the provider failed. The answers that came are stored.
        OutputError: with another `method`, no answer names an option.

    >>> from llm_provider import choice, predicate
    >>> from llm_provider.simulator import Simulator
    >>> questions = {"polite": predicate("It is polite."), "tone": choice("Which tone?", ["dry", "warm"])}
    >>> with Simulator() as simulator:
    ...     decisions = decide("gpt-6-luna", "Please come in.", questions, base_url=simulator.url("openai"))
    >>> 0 <= decisions["polite"].probability <= 1, decisions["tone"].choice in ("dry", "warm")
    (True, True)
    >>> decisions.asked_together
    (('polite', 'tone'),)
    """
    seal(parameters)
    return default_client().decide(model, input, questions, **parameters)


@with_parameters
async def adecide(
    model: str, input: Prompt, questions: Questions, **parameters: Unpack[DecideParameters]
) -> Decisions:
    """`decide` for any event loop. Cancelling it cancels the requests at the server."""
    seal(parameters)
    return await default_client().adecide(model, input, questions, **parameters)


@with_parameters
def decide_many(
    model: str,
    inputs: Inputs,
    questions: Questions,
    *,
    on_error: OnError = "return",
    **parameters: Unpack[DecideManyParameters],
) -> Results[Decisions | LLMError]:
    """Ask the same questions about many inputs. After an interruption, a second run asks only the rest.

    Args:
        model: As for `decide`. So are the errors.
        inputs: Any iterable of inputs, such as a column of a data frame.
        questions: As for `decide`.
        on_error: "return" puts the error of a failed input into its place, "raise" raises a `BatchError`.
        **parameters: See `DecideManyParameters`.

    >>> from llm_provider import predicate
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     where, polite = {"base_url": simulator.url("openai")}, predicate("It is polite.", name="polite")
    ...     results = decide_many("gpt-6-luna", ["Come in.", "Get out."], polite, **where)
    >>> results.to_pandas()[["input_index", "question"]].values.tolist()
    [[0, 'polite'], [1, 'polite']]
    """
    seal(parameters)
    return default_client().decide_many(model, inputs, questions, on_error=on_error, **parameters)


@with_parameters
async def adecide_many(
    model: str,
    inputs: AsyncInputs,
    questions: Questions,
    *,
    on_error: OnError = "return",
    **parameters: Unpack[DecideManyParameters],
) -> Results[Decisions | LLMError]:
    """`decide_many` for any event loop. `inputs` may also be an asynchronous iterable."""
    seal(parameters)
    return await default_client().adecide_many(model, inputs, questions, on_error=on_error, **parameters)


@with_parameters
def recheck(model: str, inputs: Inputs | None = None, **parameters: Unpack[RecheckParameters]) -> Recheck:
    """Ask stored questions again, or border prompts, and say whether the model still answers as before.

    Stored answers stay: new ones are stored under draws of their own. docs/evidence.md has the tests.

    Args:
        model: The model, by the name under which it was asked.
        inputs: The inputs of stored answers, or the `Results`. None for the border prompts of `history=`, or
            for the questions that the cache has: those to the model, or of a `tag`.
        **parameters: The parameters of the calls for `inputs`, and see `RecheckParameters`.

    Raises:
        RequestError: an argument is not valid, no answer is stored, or the budget is too small.
        LLMError: all calls failed; this is the first error.
        OSError: the history cannot be written.

    >>> from llm_provider import call_many
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     where = {"base_url": simulator.url("openai"), "max_tokens": 200}
    ...     answers = call_many("gpt-6.1-sol", [f"{number} + 5?" for number in range(30)], **where)
    ...     report = recheck("gpt-6.1-sol", answers, detect=0.5, budget=0.10, **where)
    >>> report.outcome, report.questions
    ('same', 17)
    """
    seal(parameters)
    return default_client().recheck(model, inputs, **parameters)
