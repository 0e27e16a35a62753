"""The cache's own benchmarks with a handful of answers: that they work, and that no kill loses anything."""

import pytest

from benchmarks import report
from benchmarks.__main__ import command
from benchmarks.scenarios import Options, cache, cache_kills, prompt_caching

QUICK = Options(quick=True)


@pytest.mark.long
def test_it_is_measured() -> None:
    result = cache.run(QUICK)
    page = report.markdown("cache", report.document(result, command("cache", QUICK)))
    assert page.startswith("# The cache\n")
    assert {"hit_of_floor", "hits", "loop_hits", "loop_lag", "hashing", "first_open", "rerun"} <= {
        *result.measured
    }
    assert all(value > 0 for value in result.measured.values())


# It forks while pytest has threads, as programs do.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.long
def test_nothing_is_lost() -> None:
    result = cache_kills.run(QUICK)
    assert result.measured == {"kills_lost": 0, "kills_orphans": 0}
    acknowledged = [row[1] for table in result.tables for row in table.rows]
    assert all(isinstance(count, int) and count > 100 for count in acknowledged)


@pytest.mark.long
def test_the_bill_with_the_prompt_cache_is_near_its_bound() -> None:
    result = prompt_caching.run(QUICK)
    assert result.problems == []
    assert result.measured["prompt_cache_of_bound"] <= 1.05
    assert result.measured["prompt_cache_of_plain"] <= 1
