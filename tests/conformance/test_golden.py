"""The golden requests fit the types of the SDKs."""

import re

from conformance.formats import ANTHROPIC, CHAT, GEMINI, RESPONSES, Format
from golden import Pair, read, subjects

# The tests want to see these go out as they came in.
ON_PURPOSE = re.compile(r"cache_control\.type: 'x'|no field of ChatCompletion")
# A call that a provider ran goes back as it came, beside a result that the types do not have.
OF_ANSWERS = re.compile(r"\.input\[\d+\]\.role: missing|'output_text' is none of")

# The oldest SDKs do not know these.
NEWER = re.compile(
    r"xhigh is not a valid ThinkingLevel|service_tier: 'fast'|reasoning_effort: 'max'"
    r"|prompt_cache_breakpoint: no field|'tool_search_(call|output)' is none of"
    r"|no field of ApplyPatchCallOutput"
)


def format_of(function: str, operation: str) -> Format:
    if function.startswith("openai."):
        return RESPONSES if operation == "responses" else CHAT
    return ANTHROPIC if function.startswith("anthropic.") else GEMINI


def is_request(pair: Pair) -> bool:
    """Whether it is a chat with an SDK's own provider, in the fields of the library alone."""
    if not pair.function.endswith((".adapter.encode", ".chat.encode", ".responses.encode")):
        return False
    own = "/" not in pair.inputs["model"] and pair.inputs.keys().isdisjoint({"base_url", "extra_body"})
    return own and "payload" in pair.expected["gives"]


REQUESTS: dict[str, Pair] = {
    f"{subject}: {sentence}": pair
    for subject in subjects()
    for sentence, pair in read(subject).items()
    if is_request(pair)
}


def test_every_golden_request_fits_the_sdks_types() -> None:
    excused = (ON_PURPOSE, OF_ANSWERS, NEWER)
    misfits = {}
    for sentence, pair in REQUESTS.items():
        request = pair.expected["gives"]
        wrong = format_of(pair.function, request["operation"]).check(request["payload"])
        misfits[sentence] = [entry for entry in wrong if not any(reason.search(entry) for reason in excused)]
    assert {sentence: wrong for sentence, wrong in misfits.items() if wrong} == {}
