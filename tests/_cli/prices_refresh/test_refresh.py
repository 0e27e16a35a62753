"""Bringing prices.csv up to date: what is added, filled in, kept and reported."""

import csv
import doctest
import importlib.util
import json
import sys
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._cli import prices
from llm_provider._cli.prices_refresh import litellm_prices, merge, quotes
from llm_provider._cli.prices_refresh import refresh as refresh_module
from llm_provider._cli.prices_refresh.quotes import Cells, PriceList, Quotes
from llm_provider._cli.prices_refresh.refresh import Refreshed, Source, refresh
from llm_provider._money.price_rows import COLUMNS, PRICE_COLUMNS, PriceRow
from llm_provider._money.pricing import PriceTable, default_prices_path
from llm_provider._tokens.model_limits import COLUMNS as LIMIT_COLUMNS

TODAY = "2026-11-20"
TINY = ("openai", "tiny")

needs_genai_prices = pytest.mark.skipif(
    importlib.util.find_spec("genai_prices") is None,
    reason="genai-prices is a development dependency, which not every environment has",
)


def cells(**prices: float | str) -> Cells:
    return {column: Decimal(str(price)) for column, price in prices.items()}


def source(name: str, quotes: Quotes, *, model: tuple[str, str] = TINY) -> Source:
    return Source(name, {model: quotes})


def flat(**prices: float | str) -> Quotes:
    """One price list without a date or tiers."""
    return {"standard": {"": {0: cells(**prices)}}}


def row(
    model: str = "tiny", start: str = "", variant: str = "standard", minimum: int = 0, **prices: float | str
) -> PriceRow:
    known = cells(**prices)
    values = (known.get(column) for column in PRICE_COLUMNS)
    return PriceRow._make(("openai", model, variant, minimum, *values, start, "old 1", "2026-01-01"))


def shown(rows: list[PriceRow]) -> list[tuple[object, ...]]:
    return [
        (entry.variant, entry.min_input_tokens, entry.effective_from, entry.input, entry.output)
        for entry in rows
    ]


# One source


def test_a_new_model_comes_with_its_history_and_what_is_announced() -> None:
    dated: dict[str, PriceList] = {
        "": {0: cells(input=1, output=2)},
        "2026-03-01": {0: cells(input=2, output=4), 1001: cells(input=4, output=8)},
        "2027-01-01": {0: cells(input=3, output=6)},
    }
    done = refresh([], [source("new 1", {"standard": dated})], TODAY)
    assert shown(done.rows) == [
        ("standard", 0, "", 1, 2),
        ("standard", 0, "2026-03-01", 2, 4),
        ("standard", 0, "2027-01-01", 3, 6),
        ("standard", 1001, "2026-03-01", 4, 8),
    ]
    assert done.added == sorted(done.rows, key=lambda entry: entry.effective_from)
    assert {(entry.source, entry.as_of) for entry in done.rows} == {("new 1", TODAY)}


def test_what_holds_stays_as_it_was_read() -> None:
    old = [row(input=1, output=2)]
    done = refresh(old, [source("new 2", flat(input=1, output=2))], TODAY)
    assert done == Refreshed(rows=old)


def test_a_change_adds_a_row_of_today_and_keeps_the_old() -> None:
    old = [row(input=1, output=2)]
    done = refresh(old, [source("new 2", flat(input=1, output=3))], TODAY)
    assert shown(done.rows) == [("standard", 0, "", 1, 2), ("standard", 0, TODAY, 1, 3)]
    assert done.rows[0] is old[0]
    assert done.added == done.rows[1:]


def test_a_change_begins_on_the_day_that_the_source_tells() -> None:
    quotes: Quotes = {"standard": {"": {0: cells(input=1)}, "2026-11-02": {0: cells(input=3)}}}
    done = refresh([row(input=1)], [source("new 2", quotes)], TODAY)
    assert [(entry.effective_from, entry.input) for entry in done.rows] == [("", 1), ("2026-11-02", 3)]


def test_a_change_told_for_a_day_that_has_its_price_begins_today() -> None:
    old = [row(start="2026-11-02", input=2)]
    quotes: Quotes = {"standard": {"2026-11-02": {0: cells(input=3)}}}
    done = refresh(old, [source("new 2", quotes)], TODAY)
    assert [(entry.effective_from, entry.input) for entry in done.rows] == [("2026-11-02", 2), (TODAY, 3)]


def test_a_tier_that_comes_or_goes_is_a_change() -> None:
    tiered: Quotes = {"standard": {"": {0: cells(input=1), 1001: cells(input=2)}}}
    done = refresh([row(input=1)], [source("new 2", tiered)], TODAY)
    assert [(entry.min_input_tokens, entry.effective_from) for entry in done.rows] == [
        (0, ""),
        (0, TODAY),
        (1001, TODAY),
    ]
    back = refresh(done.rows, [source("new 3", flat(input=1))], "2026-12-24")
    assert [(entry.min_input_tokens, entry.effective_from) for entry in back.added] == [(0, "2026-12-24")]


def test_a_blank_cell_is_filled_in_place_and_a_silent_source_takes_nothing_away() -> None:
    old = [row(input=1, cache_read="0.1")]
    done = refresh(old, [source("new 2", flat(input=1, output=2))], TODAY)
    (entry,) = done.rows
    assert (entry.input, entry.cache_read, entry.output) == (1, Decimal("0.1"), 2)
    assert (entry.source, entry.as_of, entry.effective_from) == ("new 2; old 1", TODAY, "")
    assert (done.added, done.filled) == ([], [entry])


def test_what_is_announced_may_change_until_its_day() -> None:
    def announced(price: float) -> list[Source]:
        later = {"": {0: cells(input=1)}, "2027-01-01": {0: cells(input=price)}}
        return [source("new 2", {"standard": later})]

    first = refresh([row(input=1)], announced(5), TODAY)
    second = refresh(first.rows, announced(6), "2026-12-01")
    assert [entry.input for entry in second.rows] == [1, 6]
    assert second.added == [second.rows[1]]
    third = refresh(second.rows, [source("new 3", flat(input=1))], "2026-12-02")
    assert [entry.input for entry in third.rows] == [1]
    assert third.withdrawn == [second.rows[1]]
    begun = refresh(second.rows, announced(6), "2027-01-02")
    assert begun.rows == second.rows


def test_a_past_that_differs_is_reported_and_left() -> None:
    old = [row(input=1), row(start="2026-05-01", input=2)]
    quotes: Quotes = {"standard": {"2026-02-01": {0: cells(input=9)}, "2026-05-01": {0: cells(input=2)}}}
    done = refresh(old, [source("new 2", quotes)], TODAY)
    assert done.rows == old
    assert done.past == [(*TINY, "standard", "2026-02-01")]


def test_a_model_that_no_source_has_stays() -> None:
    old = [row(input=1), row("other", input=4)]
    done = refresh(old, [source("new 2", flat(input=1))], TODAY)
    assert done.rows == sorted(old, key=lambda entry: entry.model)
    assert done.unlisted == [("openai", "other")]


def test_a_level_without_a_price_of_its_own_never_borrows_a_cheaper_one() -> None:
    quotes: Quotes = {
        "standard": {"": {0: cells(input=2), 1001: cells(input=4)}, "2027-01-01": {0: cells(input=3)}},
        "batch": {"": {0: cells(input=1)}},
    }
    done = refresh([], [source("new 1", quotes)], TODAY)
    batch = [entry for entry in done.rows if entry.variant == "batch"]
    assert [(entry.min_input_tokens, entry.effective_from, entry.input, entry.source) for entry in batch] == [
        (0, "", 1, "new 1"),
        (0, "2027-01-01", None, "none"),
        (1001, "", None, "none"),
    ]


def test_a_snapshot_has_rows_only_where_it_costs_otherwise() -> None:
    found = Source("new 1")
    found.models = {
        ("openai", "tiny"): flat(input=1),
        ("openai", "tiny-2026-01-01"): flat(input=1),
        ("openai", "tiny-20260201"): flat(input=2),
        ("openai", "lonely-2026-01-01"): flat(input=3),
    }
    done = refresh([], [found], TODAY)
    assert [entry.model for entry in done.rows] == ["lonely-2026-01-01", "tiny", "tiny-20260201"]


def test_a_model_that_one_source_calls_shut_down_is_not_added() -> None:
    gone = Source("other 1", shut_down={TINY})
    assert refresh([], [source("new 1", flat(input=1)), gone], TODAY).rows == []
    old = [row(input=1)]
    assert refresh(old, [gone], TODAY).rows == old


# Sources that disagree


def test_of_two_figures_the_dearer_is_taken_and_both_are_listed() -> None:
    sources = [source("left 1", flat(input=1, output=9)), source("right 1", flat(input="1.5", output=9))]
    done = refresh([], sources, TODAY)
    (entry,) = done.rows
    assert (entry.input, entry.source) == (Decimal("1.5"), "left 1; right 1")
    assert done.disagreements == [(*TINY, "standard", 0, "input", ("1", "1.5"), "1.5")]


def test_the_files_figure_stays_while_a_source_has_it() -> None:
    sources = [source("left 1", flat(input=1)), source("right 1", flat(input=2))]
    old = [row(input=1)]
    done = refresh(old, sources, TODAY)
    assert done.rows == old
    assert [found.kept for found in done.disagreements] == ["1"]
    agreed = refresh(old, [source("left 2", flat(input=2)), sources[1]], TODAY)
    assert [entry.input for entry in agreed.rows] == [1, 2]
    assert agreed.disagreements == []


def test_a_tier_that_one_source_lacks_is_listed() -> None:
    tiered: Quotes = {"standard": {"": {0: cells(input=1), 1001: cells(input=2)}}}
    done = refresh([], [source("left 1", flat(input=1)), source("right 1", tiered)], TODAY)
    assert done.disagreements == [(*TINY, "standard", 1001, "input", ("", "2"), "2")]


def test_the_disagreements_of_today_are_listed_and_what_was_kept_is_in_the_file() -> None:
    table, path = PriceTable.load(), Path(default_prices_path()).parent / "docs" / "prices-disagreements.csv"
    with path.open(encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file))
    assert listed
    for found in listed:
        kept = table.find(
            found["provider"],
            found["model"],
            variant=found["variant"],
            input_tokens=int(found["min_input_tokens"]),
            at=date.fromisoformat(TODAY),
        )
        assert getattr(kept, found["column"]) == Decimal(found["kept"]), found


def test_an_undated_list_is_the_dated_one_of_today() -> None:
    dated: Quotes = {"standard": {"": {0: cells(input=1)}, "2026-05-01": {0: cells(input=2)}}}
    done = refresh([], [source("left 1", flat(input=2, output=8)), source("right 1", dated)], TODAY)
    assert shown(done.rows) == [("standard", 0, "", 1, None), ("standard", 0, "2026-05-01", 2, 8)]


# Whatever the sources say

figures = st.integers(min_value=1, max_value=3).map(Decimal)
some_cells = st.fixed_dictionaries({"input": figures}, optional={"output": figures, "cache_read": figures})
days = st.sampled_from(["", "2026-01-01", "2026-11-19", TODAY, "2026-12-01", "2027-06-01"])
lists = st.fixed_dictionaries({0: some_cells}, optional={1001: some_cells})
quoted = st.dictionaries(
    st.sampled_from(["standard", "batch"]), st.dictionaries(days, lists, min_size=1, max_size=3), max_size=2
)
two_sources = st.tuples(quoted, quoted).map(
    lambda pair: [source("left 1", pair[0]), source("right 1", pair[1])]
)


@settings(deadline=None)
@given(st.lists(two_sources, min_size=1, max_size=4), st.integers(min_value=0, max_value=300))
def test_no_past_price_is_ever_changed_and_a_second_run_changes_nothing(
    history: list[list[Source]], step: int
) -> None:
    rows: list[PriceRow] = []
    day = date.fromisoformat(TODAY)
    for sources in history:
        before, rows = rows, refresh(rows, sources, day.isoformat()).rows
        after = {(*entry[:4], entry.effective_from): entry for entry in rows}
        for entry in before:
            if entry.effective_from < day.isoformat():
                now = after[(*entry[:4], entry.effective_from)]
                for column in PRICE_COLUMNS:
                    assert getattr(entry, column) in (None, getattr(now, column))
        again = refresh(rows, sources, day.isoformat())
        assert again.rows == rows
        assert (again.added, again.filled, again.withdrawn) == ([], [], [])
        day += timedelta(days=step)


# litellm's map


def price_map(folder: Path, **entries: dict[str, object]) -> Path:
    package = folder / "litellm"
    package.mkdir()
    path = package / litellm_prices.FILE_NAME
    path.write_text(
        json.dumps({name.replace("__", "/"): entry for name, entry in entries.items()}), encoding="utf-8"
    )
    (folder / "litellm-1.2.3.dist-info").mkdir()
    (folder / "litellm-1.2.3.dist-info" / "METADATA").write_text(
        "Name: litellm\nVersion: 1.2.3\n", encoding="utf-8"
    )
    return path


def entry(provider: str = "openai", **values: object) -> dict[str, object]:
    return {"litellm_provider": provider, "mode": "chat", "input_cost_per_token": 2e-06, **values}


def test_the_map_is_read_in_our_columns(tmp_path: Path) -> None:
    path = price_map(
        tmp_path,
        tiny=entry(
            output_cost_per_token=1e-05,
            output_cost_per_reasoning_token=1e-05,
            cache_read_input_token_cost=1e-07,
            cache_creation_input_token_cost=2.5e-06,
            cache_creation_input_token_cost_above_1hr=4e-06,
            cache_creation_input_token_cost_above_12hr=5e-06,
            input_cost_per_audio_token=3.2e-05,
            input_cost_per_token_above_272k_tokens=4e-06,
            cache_creation_input_token_cost_above_1hr_above_272k_tokens=8e-06,
            input_cost_per_token_batches=1e-06,
            input_cost_per_token_above_272k_tokens_batches=2e-06,
            output_cost_per_token_flex=5e-06,
            search_context_cost_per_query={"search_context_size_low": 0.01, "search_context_size_high": 0.01},
        ),
    )
    found = litellm_prices.read(path, TODAY)
    assert found.name == "litellm 1.2.3"
    assert found.quotes(TINY) == {
        "standard": {
            "": {
                0: cells(
                    input=2,
                    output=10,
                    cache_read="0.1",
                    cache_write="2.5",
                    cache_write_1h=4,
                    input_audio=32,
                    web_search=10,
                ),
                272_001: cells(input=4, cache_write_1h=8, web_search=10),
            }
        },
        "batch": {"": {0: cells(input=1), 272_001: cells(input=2)}},
    }


def test_only_models_that_can_be_called_by_the_token_are_read(tmp_path: Path) -> None:
    path = price_map(
        tmp_path,
        tiny=entry(),
        openai__prefixed=entry(mode="embedding"),
        painter=entry(mode="image_generation"),
        free=entry(input_cost_per_token=0),
        elsewhere=entry("azure"),
        bygone=entry(deprecation_date="2026-11-19"),
        leaving=entry(deprecation_date=TODAY),
        family=entry(),
        **{"family-2026-01-01": entry(deprecation_date="2026-10-01")},
        size_class=entry("together_ai"),
        together_ai__org_model=entry("together_ai"),
        fireworks_ai__accounts__fireworks__models__listed=entry("fireworks_ai", source="a serverless list"),
        fireworks_ai__guessed=entry("fireworks_ai"),
    )
    found = litellm_prices.read(path, TODAY)
    assert set(found.models) == {
        TINY,
        ("openai", "prefixed"),
        ("openai", "leaving"),
        ("together_ai", "org_model"),
        ("fireworks_ai", "listed"),
    }
    assert found.shut_down == {("openai", "bygone"), ("openai", "family-2026-01-01"), ("openai", "family")}


def test_limits_exclude_themselves_except_xais(tmp_path: Path) -> None:
    tiered = {"input_cost_per_token_above_200k_tokens": 4e-06}
    path = price_map(tmp_path, tiny=entry(**tiered), xai__tiny=entry("xai", **tiered))
    found = litellm_prices.read(path, TODAY)
    assert list(found.quotes(TINY)["standard"][""]) == [0, 200_001]
    assert list(found.quotes(("xai", "tiny"))["standard"][""]) == [0, 200_000]


def test_off_peak_prices_are_a_level_of_their_own(tmp_path: Path) -> None:
    off_peak = {"input_cost_per_token": 1e-06, "windows": [{"hours_utc": "00:00-00:00", "weekdays": [6, 7]}]}
    found = litellm_prices.read(
        price_map(tmp_path, deepseek__tiny=entry("deepseek", off_peak_pricing=off_peak)), TODAY
    )
    assert found.quotes(("deepseek", "tiny"))["off_peak"] == {"": {0: cells(input=1)}}


def test_without_litellm_its_map_must_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    # Imported by another test, it would be found without its path.
    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    with pytest.raises(FileNotFoundError, match="litellm is not installed; give the path"):
        litellm_prices.installed_file()


# genai-prices and the command


@pytest.fixture(scope="module")
def genai() -> Source:
    from llm_provider._cli.prices_refresh import genai_prices

    return genai_prices.read()


@needs_genai_prices
def test_the_package_is_read_in_our_columns(genai: Source) -> None:
    standard = genai.quotes(("openai", "gpt-5.5"))["standard"][""]
    assert standard[0]["input"] == 5
    assert standard[272_001]["cache_read"] == 1
    off_peak, peak = (
        genai.quotes(("deepseek", "deepseek-v4-pro"))[name] for name in ("off_peak", "standard")
    )
    assert off_peak["2026-08-17"][0]["input"] * 2 == peak["2026-08-17"][0]["input"]
    # By a declared alias, in any case of letters, and by no beginning.
    assert genai.quotes(("openrouter", "Anthropic/Claude-Sonnet-5.5-20260928"))
    assert not genai.quotes(("openai", "gpt-5.5-turbo-nonsense"))
    assert ("gemini", "claude-opus-5-5") not in genai.models
    assert ("openai", "gpt-oss-120b") not in genai.models


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `prices refresh` on a copy of the file, with a map that holds one model."""
    path = price_map(tmp_path, tiny=entry(output_cost_per_token=1e-05))

    def run(file: Path, *arguments: str) -> tuple[int, str, str]:
        options = ["--file", str(file), "--litellm", str(path), "--day", TODAY]
        code = prices.main([*options, *arguments])
        return code, *capsys.readouterr()

    return run


@needs_genai_prices
def test_the_command_refreshes_a_file_once(tmp_path: Path, command: Command) -> None:
    file, listed = tmp_path / "prices.csv", tmp_path / "disagreements.csv"
    before = Path(default_prices_path()).read_text(encoding="utf-8")
    file.write_text(before, encoding="utf-8")
    assert command(file, "--check")[0] == 1
    assert file.read_text(encoding="utf-8") == before
    code, out, _ = command(file, "--disagreements", str(listed))
    assert code == 0
    assert f"  openai,tiny,standard,0,2,,,,10{',' * 10}litellm 1.2.3,{TODAY}\n" in out
    after = file.read_text(encoding="utf-8")
    past = [line for line in before.splitlines() if line.split(",")[COLUMNS.index("effective_from")] <= TODAY]
    prices = {line.rsplit(",", 2)[0] for line in after.splitlines()}
    assert {line.rsplit(",", 2)[0] for line in past} <= prices
    assert listed.read_text(encoding="utf-8").startswith(
        "provider,model,variant,min_input_tokens,column,litellm 1.2.3,genai-prices "
    )
    assert command(file, "--check")[0] == 0
    assert sorted(tmp_path.glob(".prices*")) == []


@needs_genai_prices
def test_the_command_brings_the_limits_beside_the_file_up_to_date(tmp_path: Path, command: Command) -> None:
    file, limits = tmp_path / "prices.csv", tmp_path / "model_limits.csv"
    file.write_text("provider,model,input\n", encoding="utf-8")
    limits.write_text(f"{','.join(LIMIT_COLUMNS)}\nopenai,gone,1,,a,{TODAY}\n", encoding="utf-8")
    assert command(file, "--check")[0] == 1
    code, out, _ = command(file)
    assert code == 0
    assert "limits added or changed: " in out
    assert "limits in no source, and left as they are: 1\n  openai/gone\n" in out
    rows = limits.read_text(encoding="utf-8").splitlines()
    assert f"openai,gone,1,,a,{TODAY}" in rows
    assert any(row.startswith("anthropic,claude-sonnet-5-5,1000000,") for row in rows)
    assert command(file, "--check")[0] == 0
    limits.write_text(f"{','.join(LIMIT_COLUMNS)}\nopenai,gone,one,,a,{TODAY}\n", encoding="utf-8")
    code, _, err = command(file)
    assert code == 1
    assert err.startswith("llm-provider: error: model_limits.csv line 2 is skipped: 'one' is not")


def test_a_file_with_a_bad_row_is_not_rewritten(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("provider,model,input\nopenai,tiny,free\n", encoding="utf-8")
    code, out, err = command(file)
    assert (code, out) == (1, "")
    assert err.startswith("llm-provider: error: prices.csv line 2 is skipped: input 'free'")
    assert file.read_text(encoding="utf-8") == "provider,model,input\nopenai,tiny,free\n"


def test_a_source_that_is_not_there_is_an_error(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("provider,model,input\n", encoding="utf-8")
    code, out, err = command(file, "--litellm", str(tmp_path / "absent.json"))
    assert (code, out) == (1, "")
    assert "absent.json" in err


def test_a_day_is_a_day_of_the_calendar(tmp_path: Path, command: Command) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(tmp_path / "prices.csv", "--day", "2026-02-30")


@pytest.mark.parametrize("module", [refresh_module, quotes, merge, litellm_prices])
def test_examples_run(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
