"""Variables of the environment that are on or off.

It is alone because the cache, the settings and features ask it.
"""

import os

from ..errors import RequestError
from ..words import read_switch


def switch(variable: str) -> bool | None:
    """A variable of the environment that is on or off; None if it is not set."""
    text = os.environ.get(variable, "").strip()
    is_on = read_switch(text)
    if text and is_on is None:
        raise RequestError(f"{variable} must be 1 or 0, not {text!r}")
    return is_on
