"""All servers, by their names."""

from importlib import import_module
from pathlib import Path

from witnesses.witness import Witness

WITNESSES: dict[str, Witness] = {
    witness.name: witness
    for path in sorted((Path(__file__).parent / "servers").glob("*.py"))
    for witness in [import_module(f"witnesses.servers.{path.stem}").WITNESS]
}
