"""What a batch returns: a list with sums, errors and views."""

import copy
import json
import math
import pickle

import pytest

from llm_provider import (
    APITimeoutError,
    BatchError,
    Client,
    Cost,
    LLMError,
    RateLimitError,
    Response,
    Results,
    Usage,
)
from llm_provider.simulator import Fault, Simulator
from support import response

MODEL = "gpt-6.1-sol"


@pytest.fixture
def results() -> Results[Response | LLMError]:
    return Results([response("a"), RateLimitError("slow"), response("b", cost=None), response("c", cost=0.5)])


class TestCost:
    def test_is_a_float(self) -> None:
        cost = Cost(0.5, unknown=2)
        assert (cost == 0.5, cost + 1, cost * 2, f"{cost:.2f}") == (True, 1.5, 1.0, "0.50")
        assert json.dumps({"cost": cost}) == '{"cost": 0.5}'

    def test_sums_know_what_is_unknown(self) -> None:
        total = sum([Cost(0.1), Cost(0.25, unknown=1), 0.5], Cost()) + None
        assert (repr(total), str(total)) == ("Cost(0.85, unknown=2)", "≥ $0.85, 2 costs unknown")
        assert math.isclose(sum([Cost(0.1), Cost(0.2)]), 0.3)
        # Many small costs add up exactly.
        assert Cost.of([0.1] * 10) == 1.0
        with pytest.raises(TypeError):
            Cost() + "a"  # type: ignore[operator]  # on purpose

    @pytest.mark.parametrize(
        ("cost", "text"),
        [
            (Cost(), "$0.00"), (Cost(1234.5), "$1,234.50"), (Cost(0.00042), "$0.00042"),
            (Cost(6e-8), "$0.00000006"), (Cost(0.0123, unknown=2), "≥ $0.0123, 2 costs unknown"),
            (Cost(unknown=1234), "1,234 costs unknown"),
        ],
    )  # fmt: skip
    def test_never_shows_an_unknown_cost_as_nothing(self, cost: Cost, text: str) -> None:
        assert str(cost) == f"{cost}" == text

    def test_pickles_and_copies(self) -> None:
        cost = Cost(0.5, unknown=2)
        for back in (pickle.loads(pickle.dumps(cost)), copy.copy(cost), copy.deepcopy(cost)):
            assert repr(back) == repr(cost)


class TestResults:
    def test_tells_responses_from_errors(self, results: Results[Response | LLMError]) -> None:
        assert [answer.text for answer in results.ok] == ["a", "b", "c"]
        assert results.errors == [results[1]]
        assert results.errors_by_index == {1: results[1]}
        assert results.texts == ["a", None, "b", "c"]

    def test_sums(self, results: Results[Response | LLMError]) -> None:
        assert (results.cost, results.cost.unknown) == (0.75, 1)
        assert results.usage == Usage(input_tokens=3702, output_tokens=3)
        assert (Results().cost, Results().usage) == (0, Usage())
        # A request that may have been billed has cost something.
        assert Results([APITimeoutError("late")]).cost.unknown == 1
        assert sum(result.cost for result in (*results[:2], results[3])) == 0.75

    def test_an_error_in_place_raises_itself(self, results: Results[Response | LLMError]) -> None:
        with pytest.raises(RateLimitError) as caught:
            [result.text for result in results]
        assert vars(caught.value) == vars(results[1])

    def test_raises_for_errors(self, results: Results[Response | LLMError]) -> None:
        with pytest.raises(BatchError, match=r"1 of 4 calls failed \(1 of them were not sent\)") as caught:
            results.raise_for_errors()
        assert caught.value.results is results
        assert caught.value.__cause__ is results[1]
        good = results.ok
        assert good.raise_for_errors() is good

    def test_is_a_list_whose_parts_are_results_too(self, results: Results[Response | LLMError]) -> None:
        assert isinstance(results, list)
        assert results == list(results)
        for part in (results[1:], results[::-1], results.copy(), copy.copy(results)):
            assert type(part) is Results
        more = results + [response()]  # noqa: RUF005  # `+` is what is tested
        assert (type(more), len(more)) == (Results, 5)
        for joined in (sum([results, more]), sum([results, more], [])):  # noqa: RUF017  # as users write
            assert (type(joined), joined) == (Results, [*results, *more])
        with pytest.raises(TypeError):
            sum([results], 1)
        back = pickle.loads(pickle.dumps(results))
        assert (type(back), back.texts, str(back[1])) == (Results, results.texts, "slow")
        assert type(copy.deepcopy(results)) is Results

    def test_shows_what_it_holds_in_a_line(self, results: Results[Response | LLMError]) -> None:
        results.append(response(cached=True, cost=0.0))
        assert repr(results) == ("Results(4 responses, 1 error, 1 from the cache, ≥ $0.75, 1 cost unknown)")
        assert repr(Results([response()])) == "Results(1 response, $0.25)"


def test_prices_and_savings_count_what_is_unknown() -> None:
    stored = [response(cost=0.0, price=price, cached=True) for price in (0.5, None)]
    bought = [response(cost=None, price=None), response(cost=0.25, price=1.0, stored_price=0.75)]
    results = Results([response(price=0.25), *stored, *bought, RateLimitError("slow")])
    assert repr(results.price) == "Cost(1.75, unknown=2)"
    assert repr(results.saved) == "Cost(1.25, unknown=1)"
    assert (results.maybe_billed, results[1:3].maybe_billed, results.attempts) == (True, False, 0)


def test_the_error_of_a_batch_has_the_sums_of_its_calls(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400))
    with pytest.raises(BatchError) as caught:
        client.call_many(MODEL, ["1+1?", "2+2?"], on_error="raise")
    error = caught.value
    assert (error.attempts, error.maybe_billed) == (2, True)
    assert error.cost == pytest.approx(float(client.usage.cost)) != 0
    assert error.usage == client.usage.usage
