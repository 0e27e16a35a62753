"""Checks a file of evidence, computes each value of a row anew, and sums up what it holds."""

import functools
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from ..._core import doors
from ..._core.errors import EvidenceError, LLMError, OutputError
from ..._core.formats import registry
from ..._core.formats.protocol import Answer, Iteration
from ..._core.formats.shared.payload import find_tier, read_served_by
from ..._core.json_values import JSONObject, json_value
from ..._core.money.price_rows import PriceWarning, check, mapping_lines
from ..._core.money.pricing import PriceTable
from ..._core.requests.routing import INTERACTIONS, ROUTES
from ..._core.runtime.exact_decimal import total
from ..._core.runtime.files import open_data
from ..._core.runtime.json_pieces import canonical
from ..._core.store.entry import cache_key
from ..._core.types.response import Response
from ..._core.types.results_table import SCORE
from ..._core.types.usage import Usage
from .container import (
    FORMAT,
    VERSION,
    Evidence,
    Figures,
    Part,
    describe_parts,
    hash_whole,
    make_statement,
    read_json,
    read_parts,
)
from .score_records import ScoreRecords

FORMATS = frozenset(row.adapter for row in (*ROUTES.values(), INTERACTIONS))
_OF_CHOICE = ("text", "reasoning", "tool_calls", "finish_reason")
"""What a response shows of its first sample."""
_OF_LAST_ROUND = (
    *_OF_CHOICE,
    "body",
    "choices",
    "model",
    "id",
    "provider",
    "served_by",
    "parsed",
    "cache_keys",
)
_OF_COST = ("cost", "cost_bounds", "cost_unknown")
_SCORES = frozenset({SCORE, "sample_scores"})


def list_differences(
    row: JSONObject, prices: PriceTable, score: str | None = None
) -> Iterator[tuple[str, str]]:
    """Each value of a row that is another one when it is computed, with the reason; none if all agree."""
    if type(row.get("result")) is not dict:
        yield "result", "there is none"
        return
    result = row["result"]
    kinds = {"error": _list_of_chat, "scores": _list_of_scores, "decisions": _list_of_decisions}
    kind = next((kinds[name] for name in kinds if result.get(name)), _list_of_chat)
    try:
        comparisons: list[_Compared] = [
            ("keys", lambda: _compare_keys(row)),
            ("prompt", lambda: _compare_prompts(row)),
            (SCORE, lambda: ({each: row[each] for each in _SCORES & row.keys()}, make_scores(result, score))),
            *kind(row, prices),
        ]
    except (KeyError, TypeError, AttributeError) as error:
        yield "result", f"it lacks its answers: {error!r}"
        return
    for name, make in comparisons:
        try:
            claimed, computed = make()
            equal = claimed == computed
            problem = None if equal else f"it is {_cite(claimed)}, and computed {_cite(computed)}"
        except Exception as error:  # a file of a stranger may hold anything, and a decoder raises any error
            problem = f"it cannot be computed: {_cite(error)}"
        if problem is not None:
            yield name, problem


_Compared = tuple[str, Callable[[], tuple[Any, Any]]]
"""The name of a value, and what makes the value of the row and the value computed of its parts."""


def _compare_keys(row: JSONObject) -> tuple[Any, Any]:
    """The keys of the requests and of the result, which both name."""
    known = [request for request in row["requests"] if "why" not in request]
    claimed = [request["key"] for request in row["requests"]]
    of_result = [key for piece in list_pieces(row["result"]) for key in piece.get("cache_keys", ())]
    return ([request["key"] for request in known], claimed), (list(map(make_key, known)), of_result)


def _compare_prompts(row: JSONObject) -> tuple[Any, Any]:
    """The texts of the prompt, and those of them that the first request has."""
    result, sent = row["result"], list(list_texts([each.get("payload") for each in row["requests"][:1]]))
    prompt: Any = next((result[name] for name in ("prompt", "context", "input") if result.get(name)), "")
    contents = [prompt] if isinstance(prompt, str) else [message["content"] for message in prompt]
    parts = [part for each in contents for part in (each if isinstance(each, list) else [each])]
    texts: list[Any] = [part["text"] if isinstance(part, dict) and "text" in part else part for part in parts]
    texts = [text for text in texts if isinstance(text, str)] if sent else []
    return texts, [text for text in texts if any(text in each for each in sent)]


def list_texts(value: Any) -> Iterator[str]:
    """The texts of a JSON value, without the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from list_texts(each)


def make_scores(result: JSONObject, score: str | None) -> JSONObject:
    """The fields of a row for the score of this column: the mean of the samples, and each of several."""
    if score is None:
        return {}
    values, failed = result.get("score_values", ()), bool(result.get("error"))
    numbers = list(doors.score_summaries.read_samples(values, score, failed=failed))
    known = [number for number in numbers if number is not None]
    mean = {"score": doors.score_summaries.average(known)} if known else {}
    return mean | ({"sample_scores": numbers} if known and len(numbers) > 1 else {})


def make_key(request: JSONObject) -> str:
    """The cache key of a request without headers."""
    same = {name: request[name] for name in ("provider", "base_url", "operation", "draw")}
    return cache_key(**same, body=canonical(request["payload"]), headers={})


def _list_of_chat(row: JSONObject, prices: PriceTable) -> Iterator[_Compared]:
    """The values of a response, or of an error with samples."""
    result, pieces = row["result"], list_pieces(row["result"])
    read = functools.cache(lambda: decode_pieces(row))

    def flat() -> list[Answer]:
        return [answer for reply in read() for answer in reply.answers]

    if result.get("error"):
        yield "error", lambda: (result, LLMError.from_dict(result).to_dict())
        yield "answers", lambda: _compare_answers(pieces, read())
        return
    yield "answers", lambda: _compare_answers(pieces, read(), result)
    # The rounds of a result tell their own usage, price and cost beside its sums.
    parts = [] if pieces[-1] is result else pieces

    def compare_usage() -> tuple[Any, Any]:
        computed = [flat(), *(each.answers for each in read()[: len(parts)])]
        return [each["usage"] for each in (result, *parts)], list(map(json_value, map(sum_usage, computed)))

    yield "usage", compare_usage
    yield "served_by", lambda: _compare_origins(pieces, read())
    yield "parsed", lambda: (result["parsed"], _parse(result))
    # The price of an answer has the requests whose answers did not match, and none that failed.
    find = find_cost if result["cost"] in (None, result["price"]) else find_price

    def compare_prices() -> tuple[Any, Any]:
        of_parts = [find_price(each.answers, row, prices) for each in read()[: len(parts)]]
        computed = list(map(_float, [find(flat(), row, prices), *of_parts]))
        return [each["price"] for each in (result, *parts)], computed

    yield "price", compare_prices

    def compute_cost() -> float | None:
        if result["cached"]:
            return 0.0
        return _float(find_cost(flat(), row, prices)) if row["others"] else result["price"]

    def compare_costs() -> tuple[Any, Any]:
        costs = [compute_cost(), *(0.0 if each["cached"] else each["price"] for each in parts)]
        claimed = [[each.get(name) for name in _OF_COST] for each in (result, *parts)]
        return claimed, [[cost, None, None] for cost in costs]

    yield "cost", compare_costs


def _list_of_scores(row: JSONObject, prices: PriceTable) -> Iterator[_Compared]:
    scores = row["result"]["scores"]

    def sum_up() -> tuple[Any, Any]:
        return [score["logprob"] for score in scores], [sum(score["token_logprobs"]) for score in scores]

    def decode() -> tuple[Any, Any]:
        read = doors.scores.Score.from_dict
        replies = [read(_read_reply(reply)["score"]) for reply in row["replies"]]
        return list({score["text"]: score for score in scores}.values()), list(map(json_value, replies))

    yield from (("logprobs", sum_up), ("scores", decode))


def _list_of_decisions(row: JSONObject, prices: PriceTable) -> Iterator[_Compared]:
    read, own = doors.decisions.Decision.from_dict, {"name": "", "instructions": "", "cached": False}

    def decode() -> tuple[Any, Any]:
        """The answers of the result and of its replies, in one order. Refusals are mostly not stored."""
        of_result = [each | own for each in row["result"]["decisions"] if each["refusal"] is None]
        stored = [asdict(read(_read_reply(reply)["decision"] | own)) for reply in row["replies"]]
        of_replies = [
            canonical(json_value({name: field for name, field in each.items() if name != "value"}))
            for each in stored
            if each["refusal"] is None
        ]
        return sorted(set(map(canonical, of_result))), sorted(set(of_replies))

    yield "decisions", decode


def list_pieces(result: JSONObject) -> list[JSONObject]:
    """The answers that a result is made of: its rounds, the samples of an error, or itself."""
    rounds = result.get("tool_rounds") or {"responses": result.get("samples")}
    pieces: list[JSONObject] = rounds["responses"] or ([] if result.get("error") else [result])
    return pieces


class Reply(NamedTuple):
    """The stored reply of an answer, as JSON and decoded: several replies if each sample has its own."""

    raw: Any
    answers: list[Answer]


def decode_pieces(row: JSONObject) -> list[Reply]:
    replies = []
    for piece in list_pieces(row["result"]):
        if row["format"] not in FORMATS:
            raise ValueError(f"{_cite(row['format'])} is no format of replies")
        raw, size = _read_reply(piece["body"]), len(piece["choices"])
        alike = size > 1 and isinstance(raw, list) and len(raw) == size
        reply = Reply(raw, decode_replies(row["format"], raw if alike else [raw]))
        for answer, origin in zip(reply.answers, piece["origins"], strict=False):
            answer.origin = origin
        replies.append(reply)
    return replies


def decode_replies(form: str, replies: Sequence[Any]) -> list[Answer]:
    """The replies of a provider as answers. A usage of zeros counts as none."""
    answers = []
    for reply in replies:
        # A model of Gemini's has two endpoints.
        is_interaction = form == "gemini" and isinstance(reply, dict) and "steps" in reply
        answers.append(registry.load("gemini_interactions" if is_interaction else form).decode(reply))
    for answer in answers:
        usage = answer.usage
        if usage is not None and not usage.output_tokens and not usage.input_tokens:
            answer.usage = None
    return answers


def _read_reply(body: str) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        return json.loads(body)


def _compare_answers(
    pieces: Sequence[JSONObject], replies: Sequence[Reply], result: JSONObject | None = None
) -> tuple[Any, Any]:
    claimed, computed = list[Any](), list[Any]()
    for piece, (_, answers) in zip(pieces, replies, strict=True):
        choices = [_without_tools(choice) for choice in piece["choices"]]
        first = _without_tools({name: piece[name] for name in _OF_CHOICE})
        claimed.append((choices, first, piece["id"], piece["model"]))
        made = json_value([choice for each in answers for choice in each.choices])
        model = answers[0].model or piece["model"]
        computed.append((made, {name: made[0][name] for name in _OF_CHOICE}, answers[0].id, model))
    if result is not None and pieces[-1] is not result:
        # The last round is the result.
        for side, holder in ((claimed, result), (computed, pieces[-1])):
            side.append([holder[name] for name in _OF_LAST_ROUND])
    return claimed, computed


def _without_tools(choice: JSONObject) -> JSONObject:
    """A sample whose calls do not name the functions of the program."""
    return {**choice, "tool_calls": [{**call, "tool": None} for call in choice["tool_calls"]]}


def _compare_origins(pieces: Sequence[JSONObject], replies: Sequence[Reply]) -> tuple[Any, Any]:
    computed = []
    for piece, reply in zip(pieces, replies, strict=True):
        who = read_served_by(piece["provider"], reply.raw, next(iter(piece["origins"]), None))
        computed.append(None if who is None else who.to_dict())
    return [piece["served_by"] for piece in pieces], computed


def _parse(result: JSONObject) -> Any:
    if result["response_format"] is None:
        return None
    try:
        return json_value(Response.from_dict(result).parsed)
    except OutputError:
        return None


def sum_usage(answers: Sequence[Answer]) -> Usage:
    return sum((answer.usage for answer in answers if answer.usage is not None), Usage())


def find_price(answers: Sequence[Answer], row: JSONObject, prices: PriceTable) -> Decimal | None:
    """The USD of the answers of a row: what they say, else by a price list; None if one is not known.

    `priced` has the names, the service level and the time (Unix seconds) by which the list is searched.
    """
    priced = row["priced"]
    amounts: list[Decimal] = []
    for number, answer in enumerate(answers):
        usd = answer.cost
        if usd is None and answer.usage is not None and priced is not None:
            tier = find_tier(answer.origin, answer.service_tier)
            usd = _price_usage(answer.usage, priced, prices, tier, answer.iterations)
        if usd is not None:
            amounts.append(usd)
        elif answer.usage is not None or not number:
            # Of several samples in one reply, the first has the usage of all.
            return None
    return total(amounts)


def find_cost(answers: Sequence[Answer], row: JSONObject, prices: PriceTable) -> Decimal | None:
    """The USD of all requests of a row: its price, and the price of usage that its answers do not have.

    `others` has the names for this usage, as `priced`; None if there is none, or if it is not known whose.
    """
    own, own_usage = find_price(answers, row, prices), sum_usage(answers)
    if own is None or row["others"] is None:
        return own
    more = {name: count - getattr(own_usage, name) for name, count in row["result"]["usage"].items()}
    usd = _price_usage(Usage(**more), row["others"], prices)
    return None if usd is None else total([own, usd])


def _price_usage(
    usage: Usage,
    priced: JSONObject,
    prices: PriceTable,
    service_tier: str | None = None,
    iterations: Sequence[Iteration] = (),
) -> Decimal | None:
    variant = priced["variant"]
    if variant != "batch" and service_tier:
        variant = service_tier
    at = datetime.fromtimestamp(priced["at"], UTC)
    names = priced["provider"], priced["model"]
    return prices.cost(*names, usage, variant=variant, at=at, iterations=iterations)


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _cite(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


ROWS, PRICES, MANIFEST = "rows.jsonl", "prices.jsonl", "manifest.json"
STATEMENT = ".intoto.json"
"""The end of the name of a statement, behind the name of its file."""
_LONGEST_STATEMENT = 1 << 24
"""Bytes. The figures of a model take some hundred."""


def verify(path: str | os.PathLike[str]) -> Evidence:
    """Check a file that `Results.export` wrote. It needs no key, no network and no cache.

    Every byte is compared with what an export would write of the parts, and every digest with its part. Then
    each stored reply is decoded again, and keys, usage, who answered, parsed values, prices by the price rows
    inside, and all sums are computed anew. The statement beside the file is compared, if there is one. Rows
    that somebody changed together with all digests are found by the signature of a statement alone.
    `ResponseCache.verify` checks the cache of this machine instead.

    Raises:
        EvidenceError: something differs. The message names the first thing that does.
        OSError: the file cannot be read.
    """
    goal = Path(path).expanduser()
    with open_data(goal) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", PriceWarning)
        comparison = _Comparison(file, read_parts(file))
        try:
            manifest, rows = comparison.read_manifest(), comparison.compare_rows()
        except (EvidenceError, OSError):
            raise
        except Exception as error:  # a file of a stranger may hold anything in the place of each value
            raise EvidenceError(f"{comparison.where}: it cannot be read: {error!r:.200}") from None
        digest = hash_whole(file)
    beside = goal.with_name(goal.name + STATEMENT)
    has_statement = beside.exists()
    if has_statement:
        expected = make_statement(goal.name, digest, manifest)
        with open_data(beside) as file:
            statement = read_json(file.read(_LONGEST_STATEMENT).strip(), beside.name)
        for field in expected:
            if not isinstance(statement, dict) or statement.get(field) != expected[field]:
                raise EvidenceError(f"{beside.name}: its {field} is not that of the file")
    return Evidence(path=goal, sha256=digest, rows=rows, manifest=manifest, has_statement=has_statement)


class _Comparison:
    """Compares the parts of a file with each other."""

    def __init__(self, file: IO[bytes], parts: dict[str, Part]) -> None:
        self._file, self._parts, self._manifest = file, parts, JSONObject()
        self.where = MANIFEST
        """What is read."""

    def read_manifest(self) -> JSONObject:
        """The manifest, whose digests fit the parts."""
        if list(self._parts)[-1] != MANIFEST or not {ROWS, PRICES} <= self._parts.keys():
            raise EvidenceError(
                f"the parts are {', '.join(self._parts)}, not {ROWS}, {PRICES} and {MANIFEST}"
            )
        (manifest,) = self._read_objects(MANIFEST)
        if (manifest.get("format"), manifest.get("version")) != (FORMAT, VERSION):
            raise EvidenceError(f"{MANIFEST}: it is not that of {FORMAT}, version {VERSION}")
        described = describe_parts(part for part in self._parts.values() if part.name != MANIFEST)
        for name in [*described, *manifest["parts"]]:
            if described.get(name) != manifest["parts"].get(name):
                raise EvidenceError(f"{name}: its size or SHA-256 is not that of {MANIFEST}")
        self._manifest = manifest
        return manifest

    def compare_rows(self) -> int:
        """Compute all that can be computed, and return the number of rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriceWarning)
            prices = PriceTable(check(mapping_lines(self._read_objects(PRICES))))
        figures, records, count = Figures(), ScoreRecords(self._manifest), 0
        for row in self._read_objects(ROWS):
            allowed = row["not_computed"]
            if type(allowed) is not dict or row["index"] != count:
                raise EvidenceError(f"{self.where}: it is not row {count}")
            for name, problem in list_differences(row, prices, self._manifest.get("score")):
                if name not in allowed or name == SCORE:
                    raise EvidenceError(f"{self.where}: {name}: {problem}")
            figures.add(row)
            records.add(row)
            count += 1
        expected = dict(records.finish())
        for name in self._parts.keys() - expected.keys() - {ROWS, PRICES, MANIFEST}:
            raise EvidenceError(f"{name}: a file of evidence has no such part")
        for name, lines in expected.items():
            read = self._parts[name].read_lines(self._file) if name in self._parts else iter(())
            for number, (line, made) in enumerate(zip_longest(read, lines), start=1):
                if line != made:
                    raise EvidenceError(f"{name}, line {number:,}: it is not that of the scores in {ROWS}")
        if figures.to_dict() != self._manifest["figures"]:
            raise EvidenceError(f"{MANIFEST}: its figures are not those of the rows")
        return count

    def _read_objects(self, name: str) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(self._parts[name].read_lines(self._file), start=1):
            self.where = f"{name}, line {number:,}"
            value = read_json(line, self.where)
            if not isinstance(value, dict):
                raise EvidenceError(f"{self.where}: it is no object")
            yield value
