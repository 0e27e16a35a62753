"""mitmproxy before the simulator: it reads an answer to its end before it passes it on."""

from witnesses.servers.nginx import WAYS
from witnesses.witness import Place, Witness, refuse_upstream


def command(place: Place) -> list[str]:
    assert place.upstream is not None
    address = place.upstream.url("openai").removesuffix("/openai/v1")
    options = ["--listen-host", "127.0.0.1", "--listen-port", str(place.port)]
    return ["mitmdump", "--quiet", "--mode", f"reverse:{address}", *options]


WITNESS = Witness(
    "mitmproxy", "mitmproxy", command, WAYS, refuse=refuse_upstream, gateway=True, python="3.12"
)
