import pytest

from benchmarks import hot_path


def test_the_hot_path_has_not_grown() -> None:
    """Counts, not times: they do not depend on what else the machine does."""
    name, now = hot_path.measured()
    assert name == hot_path.environment()
    known = hot_path.baselines().get(name)
    if known is None:
        pytest.skip(f"nothing is known of {name}; to measure it: {hot_path.RENEW}")
    assert now.keys() == known.keys(), f"other cases than before; measure anew: {hot_path.RENEW}"
    grown = hot_path.grown(known, now)
    assert not grown, "\n".join(
        [f"The path of a call has grown ({name}):", *grown, f"If it is worth it: {hot_path.RENEW}"]
    )
