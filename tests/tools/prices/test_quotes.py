"""The prices of one source, and which of them can be billed."""

from __future__ import annotations

from price_sources import TINY, cells, flat
from tools.prices.quotes import SNAPSHOT, Source, usable


def test_a_model_is_known_by_its_name_and_by_spellings_in_any_case() -> None:
    source = Source("a 1", {TINY: flat(input=1)}, {("openai", "tiny-latest"): flat(input=2)})
    assert source.quotes(TINY) == flat(input=1)
    assert source.quotes(("openai", "Tiny-Latest")) == flat(input=2)
    assert source.quotes(("openai", "Tiny")) == {}
    assert source.quotes(("groq", "tiny")) == {}


def test_a_cell_that_repeats_the_price_of_its_tokens_is_left_out() -> None:
    assert usable(cells(input=2, cache_write=2, cache_write_1h="1.9")) == cells(input=2, cache_write=2)
    assert usable(cells(input=2, input_audio=2, output=3, output_image=3)) == cells(input=2, output=3)


def test_a_snapshot_ends_in_a_date() -> None:
    for ending in ("-2026-01-31", "-20260131", "@20260131"):
        assert SNAPSHOT.fullmatch(ending)
    for ending in ("-2026-01", "-latest", "-0131"):
        assert not SNAPSHOT.search(ending)
