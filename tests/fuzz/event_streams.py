"""A second reader of event streams, line by line as the HTML standard has it, and of all bytes at once."""

BOM = b"\xef\xbb\xbf"


def data_of_events(stream: bytes) -> list[bytes]:
    """The data of each event. The last one counts without its closing blank line, which some servers omit."""
    payloads: list[bytes] = []
    data: list[bytes] = []
    lines = stream.removeprefix(BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for line in [*lines, b""]:
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line and data:
            payloads.append(b"\n".join(data))
            data = []
    return payloads
