"""A loopback server that speaks the providers' wire formats, for tests, demonstrations and benchmarks.

It takes part in nothing the library does for a call; it can be used to test any program that talks to OpenAI,
Anthropic, Gemini or a host compatible with OpenAI. Needs the extra ``simulator``.

>>> with Simulator(latency=0.01) as simulator:
...     base_url = simulator.url("openai")
"""

from ._faults import Fault
from ._ledger import Ledger, ModelLedger
from ._recording import RecordedRequest
from ._settings import Settings
from ._simulator import Simulator

__all__ = ["Fault", "Ledger", "ModelLedger", "RecordedRequest", "Settings", "Simulator"]
