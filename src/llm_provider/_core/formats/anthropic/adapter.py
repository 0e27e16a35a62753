"""Anthropic's Messages format, as the protocol names its parts. Claude on other servers speaks it too."""

from ..shared.errors import from_sdk as map_error
from ..shared.replies import keep_whole as split
from .decode import decode, is_paused, usage
from .encode import encode
from .request_facts import facts, variant
from .stream import assembler

__all__ = ["assembler", "decode", "encode", "facts", "is_paused", "map_error", "split", "usage", "variant"]
