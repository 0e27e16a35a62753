"""Random numbers, and names that occur once.

A simulation seeds `generator`, also in the child of a fork, and replaces `make_token` in this module.
"""

import os
from random import Random

from .forks import run_around_forks

__all__ = ["Random", "generator", "make_token"]

generator = Random()
"""The source of all jitter. It is not the one of `random.random`, which a program may have seeded: then its
processes would all retry at the same moments."""

run_around_forks(after_in_child=generator.seed)


def make_token(size: int) -> str:
    """A name of so many random bytes, as hexadecimal digits."""
    return os.urandom(size).hex()
