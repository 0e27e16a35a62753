"""What a request refers to at its provider: uploaded files, and a stored beginning of its prompt.

No slot is held while they are uploaded or stored, so it must be taken again.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .. import doors
from ..errors import LLMError
from ..pace.failures import FINAL
from .connections import list_budgets

Sending: TypeAlias = Any
"""`sender.Sending`, whose module imports this one."""


async def fill_in(sending: Sending) -> bool:
    """Put what the provider has into the request. False if something had to be sent to it before.

    An `LLMError` tells of a file that cannot be uploaded. A beginning that cannot be stored is sent whole.
    """
    encoded, prefix = sending.call.encoded, sending.call.encoded.prefix
    if encoded.uploads and not await _fill_in_files(sending):
        return False
    return prefix is None or not prefix.is_stored or await _fill_in_beginning(sending)


async def _fill_in_files(sending: Sending) -> bool:
    call, selection, uploads = sending.call, sending.selection, sending.sender.uploads
    just, sending.uploaded = sending.uploaded, None
    if just is not None and just[0] == selection.key:
        sending.file_ids = just[1]
    else:
        sending.file_ids = uploads.ids(call, selection.key)
    if sending.file_ids is not None:
        body = call.exchange.body(call, sending.parts)
        sending.encoded, sending.body = doors.uploads.fill_references(call.encoded, sending.file_ids, body)
        return True
    sending.withdraw()
    sending.verdict, key = FINAL, selection.key
    try:
        ids = await uploads.upload(call, key, sending.max_retries)
        sending.uploaded = key, ids
    except LLMError as error:
        # Another account may have the rights or the quota that this one lacks.
        if not selection.record_failure(error):
            raise
    return False


async def _fill_in_beginning(sending: Sending) -> bool:
    call, key, contents = sending.call, sending.selection.key, sending.sender.cached_contents
    whole = sending.body if call.encoded.uploads else call.exchange.body(call, sending.parts)
    just, sending.stored_with = sending.stored_with == key, None
    if (filled := contents.fill_in(call, key, whole, just=just)) is not None:
        sending.body, sending.cache_miss = filled
        sending.whole = None if sending.cache_miss else whole
        return True
    sending.withdraw()
    sending.verdict, sending.stored_with = FINAL, key
    await contents.store(call, sending.parts, key, whole, list_budgets(call.request, sending.sender.settings))
    return False


def forget_missing(sending: Sending, error: LLMError) -> bool:
    """Forget what a request referred to, if its error says that the provider does not have it, or refuses it.

    True if the request can be sent again.
    """
    call, key, sender, again = sending.call, sending.key, sending.sender, sending.is_renewed
    if sending.file_ids and not again and sender.uploads.forget(call, key, sending.file_ids, error):
        sending.is_renewed = True
        return True
    stored = sending.whole
    is_gone = stored is not None and sender.cached_contents.forget(call, key, stored, error, again=again)
    sending.is_renewed |= is_gone
    return is_gone
