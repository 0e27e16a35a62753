"""A loopback server that speaks the providers' wire formats, for tests, demonstrations and benchmarks.

It tests any program that talks to OpenAI, Anthropic, Gemini or a host compatible with OpenAI. It imports
nothing of the rest of the library, and no call of the library needs it. The extra ``simulator`` installs it.

>>> with Simulator(latency=0.01) as simulator:
...     base_url = simulator.url("openai")

Inside, from the bottom up (each part imports only from those before it):

- `_settings`, `_addresses`: what can be set, and the URLs and environment variables of a server.
- `formats/`: the wire formats, one module each.
- `_behaviour/`: answers, rate limits and faults, the same for every wire format.
- `_records/`: counts, prices and recorded requests.
- `_server/`: the server process and its command line.
- `_simulator`: :class:`Simulator`, which starts the server process and controls it.
- `__main__` starts a server from a shell, `pytest_plugin` starts one in a test session.
"""

from ._behaviour.faults import Fault
from ._records.ledger import Ledger, ModelLedger
from ._records.recorded_requests import RecordedRequest
from ._settings import Settings
from ._simulator import Simulator

__all__ = ["Fault", "Ledger", "ModelLedger", "RecordedRequest", "Settings", "Simulator"]
