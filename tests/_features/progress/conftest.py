"""Jobs without calls of the user."""

from batch_records import journal, make_record  # noqa: F401  # fixtures
