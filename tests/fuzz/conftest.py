"""The profile of `make fuzz`. Four tests of each format make 100,000 examples; the corpus is kept."""

from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

CORPUS = Path(__file__).parent / "corpus"

settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=25_000,
    database=DirectoryBasedExampleDatabase(CORPUS),
    suppress_health_check=list(HealthCheck),
)
