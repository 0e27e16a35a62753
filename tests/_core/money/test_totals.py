from collections import Counter
from decimal import Decimal, getcontext, localcontext

from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Usage
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.money.totals import HitGroup, Key, Posting, Timeline, Totals
from llm_provider._core.runtime.exact_decimal import total
from llm_provider._core.types.usage import COUNTS
from support import run_in_thread

TABLE = PriceTable.load()
KEYS = [Key("openai", model, model, tag) for model in ("gpt-5.5", "gpt-6.1-sol") for tag in ("", "a")]
USD = st.decimals(min_value=0, max_value=10**6, places=18)


def prices() -> PriceTable:
    return TABLE


def hits(model: str = "gpt-6.1-sol") -> HitGroup:
    return HitGroup(Key("openai", model, model, ""), prices, ("openai", model), "standard")


usages = st.builds(
    Usage,
    input_tokens=st.one_of(st.integers(100, 2000), st.integers(271_990, 272_010)),
    output_tokens=st.integers(0, 10**6),
    cache_read_input_tokens=st.integers(0, 100),
    reasoning_output_tokens=st.integers(0, 100),
    # No price is known for these.
    web_searches=st.sampled_from((0, 0, 0, 1)),
)
postings = st.builds(
    Posting,
    time=st.floats(0, 2e9),
    kind=st.sampled_from(("answered", "hit", "failed")),
    key=st.sampled_from(KEYS),
    usd=st.none() | USD,
    usage=st.none() | usages,
    at_most=st.none() | USD,
)


def reference(events: list[Posting]) -> dict[str, object]:
    paid = [event for event in events if event.kind != "hit"]
    unknown = [event for event in paid if event.usd is None]

    def sum_of(kind: str) -> Decimal:
        return total(event.usd or 0 for event in events if event.kind == kind)

    bounds = [event.at_most for event in unknown]
    counted = Counter(event.kind for event in events)
    used = sum((event.usage for event in paid if event.usage is not None), Usage())
    return {
        "requests": counted["answered"],
        "hits": counted["hit"],
        "failed": counted["failed"],
        "unknown": len(unknown),
        "spent": sum_of("answered"),
        "saved": sum_of("hit"),
        "wasted": sum_of("failed"),
        "at_most": None if None in bounds else total(bound or 0 for bound in bounds),
        "counts": [getattr(used, name) for name in COUNTS],
    }


@given(st.lists(postings, max_size=30))
def test_rows_are_the_sums_of_their_postings(events: list[Posting]) -> None:
    totals = Totals()
    for event in events:
        totals.post(event)
    rows = dict(totals.rows())
    assert set(rows) == {event.key for event in events}
    for key, sums in rows.items():
        expected = reference([event for event in events if event.key == key])
        assert {name: getattr(sums, name) for name in expected} == expected
    spent = [amount for points in totals.timeline().values() for _, amount in points]
    assert total(spent) == total(event.usd or 0 for event in events if event.kind != "hit")


@given(st.lists(usages, min_size=1, max_size=40))
def test_hits_that_are_priced_together_save_the_sum_of_their_costs(used: list[Usage]) -> None:
    totals, group = Totals(), hits()
    for usage in used:
        totals.hit(group, usage)
    ((_, sums),) = totals.rows()
    alone = [group.price(usage) for usage in used]
    assert sums.hits == len(used)
    assert sums.saved == total(usd for usd in alone if usd is not None)


def test_each_hit_saves_the_fee_of_a_request() -> None:
    row = {"provider": "openai", "model": "gpt-6.1-sol", "input": 1, "request": 5}
    table, totals = PriceTable.load(overrides=[row]), Totals()
    group = HitGroup(KEYS[2], lambda: table, ("openai", "gpt-6.1-sol"), "standard")
    for _ in range(3):
        totals.hit(group, Usage(input_tokens=1_000))
    assert group.price(Usage(input_tokens=1_000)) == Decimal("0.006")
    ((_, sums),) = totals.rows()
    assert sums.saved == Decimal("0.018")


def test_hits_whose_price_or_usage_is_unknown_are_counted() -> None:
    totals = Totals()
    totals.hit(hits(), None)
    totals.hit(hits("gpt-unheard-of"), Usage(input_tokens=5))
    assert [(sums.hits, sums.saved) for _, sums in totals.rows()] == [(1, 0), (1, 0)]


def test_nobody_waits_while_another_thread_adds() -> None:
    totals = Totals()

    with totals._adding:
        run_in_thread(totals._add_unless_others_do)
    totals._add_unless_others_do()
    run_in_thread(totals.rows)


def test_sums_are_exact_whatever_the_callers_arithmetic_is() -> None:
    totals = Totals()
    with localcontext() as context:
        context.prec = 3
        for _ in range(3):
            totals.post(Posting(0.0, "answered", KEYS[0], Decimal("1000000.000000000001")))
        ((_, sums),) = totals.rows()
        assert getcontext().prec == 3
    assert sums.spent == Decimal("3000000.000000000003")


def test_totals_stay_small_however_many_tags_and_moments_there_are() -> None:
    totals = Totals()
    for number in range(30_000):
        key = KEYS[0]._replace(tag=str(number))
        totals.post(Posting(number * 3600.0, "answered", key, Decimal("0.01")))
    rows = dict(totals.rows())
    assert (len(rows), rows[KEYS[0]._replace(tag="(other tags)")].requests) == (10_001, 20_000)
    assert len(totals.timeline()["gpt-5.5"]) <= 512
    assert len(totals._pending) == 0


def test_intervals_of_a_timeline_grow_only_with_the_time() -> None:
    timeline = Timeline(most=4)
    for moment in (7.2, 4.9, 5.0, 7.9):
        timeline.add(moment, "m", Decimal(1))
    assert timeline.series() == {"m": [(4, 1), (5, 1), (7, 2)]}
    timeline.add(1e9, "other", Decimal(1))
    timeline.add(1e9 + 1e6, "other", Decimal(1))
    assert timeline.width > 1
    assert sum(amount for points in timeline.series().values() for _, amount in points) == 6
