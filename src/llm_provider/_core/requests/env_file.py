"""API keys and servers from a `.env` file of a client, which get into no environment, `repr` or pickle."""

import io
import os
from pathlib import Path

from ..errors import RequestError
from ..runtime.files import check_path, read_text

_OWN = "LLM_PROVIDER_"
"""The beginning of this library's own variables, which are settings of a client."""


class EnvFile:
    """The variables of a `.env` file, as python-dotenv reads it, without those of the environment alone."""

    __slots__ = ("_values", "path")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(check_path("env_file", path)).expanduser()
        self._values: dict[str, str] = {}
        problem = self._read()
        if problem is not None:
            raise RequestError(f"env_file: {str(self.path)!r} {problem}")

    def _read(self) -> str | None:
        """Read the file, and return its problem, raised elsewhere: tracebacks may show this frame."""
        import dotenv
        from dotenv.parser import parse_stream

        try:
            text = read_text(self.path)
        except FileNotFoundError:
            where = "" if self.path.is_absolute() else f" in {str(Path.cwd())!r}"
            return f"is not there{where}: write the path of the file"
        except IsADirectoryError:
            return "is a folder: write the path of the file in it"
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            return "is not UTF-8 text: save it as UTF-8"
        for line in parse_stream(io.StringIO(text)):
            if line.error:
                return f"has line {line.original.line}, which is not NAME=value: correct it"
        variables = dotenv.dotenv_values(stream=io.StringIO(text))
        self._values = {name: value.strip() for name, value in variables.items() if value and value.strip()}
        for name in self._values:
            if name.startswith(_OWN) and os.environ.get(name, "").strip() != self._values[name]:
                setting = name.removeprefix(_OWN).lower()
                return (
                    f"has {name}, which only the environment may set: write Client({setting}=...), or export "
                    "it before the program starts"
                )
        return None

    def get(self, name: str) -> str:
        """The value of a variable; empty if it has none."""
        return self._values.get(name, "")

    def __repr__(self) -> str:
        return f"EnvFile({str(self.path)!r})"

    def __reduce__(self) -> str:
        raise TypeError("an EnvFile cannot be pickled, so that no key is written to a file")
