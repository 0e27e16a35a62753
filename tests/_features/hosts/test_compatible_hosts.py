"""The hosts that a line each describes."""

from llm_provider._core.requests.routing import ROUTES
from llm_provider._features.hosts.compatible_hosts import HOSTS


def test_each_line_is_a_row_whose_samples_are_sent_one_by_one() -> None:
    assert list(HOSTS) == sorted(HOSTS)
    for name, (url, *variables) in HOSTS.items():
        row = ROUTES[name]
        assert (row.base_url, row.lacks, row.adapter) == (url, {"n"}, "openai")
        assert row.key_variables[1:] == tuple(variables)
        assert url.startswith("https://")
        assert name not in [other for route in ROUTES.values() for other in route.other_names]
