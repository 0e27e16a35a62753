"""Progress bars of notebooks: bars of tqdm that leave their last line as text in the saved notebook."""

import contextlib
import importlib
import sys
from typing import Any


def jupyter_bar(**options: Any) -> Any:
    """A bar of ipywidgets that becomes a line of text when it ends; None in a kernel without widgets.

    tqdm's own bar is saved as it was at first, "0%", and has no widgets in a notebook that is opened again.
    """
    try:
        importlib.import_module("ipywidgets")
        display: Any = importlib.import_module("IPython.display")
        kind: Any = importlib.import_module("tqdm.notebook").tqdm
    except ImportError:
        return None

    class JupyterBar(kind):  # type: ignore[misc]  # tqdm has no types
        def __init__(self) -> None:
            super().__init__(display=False, **options)
            self._handle = display.DisplayHandle()
            self._handle.display(self.container)

        def close(self) -> None:
            if not self.disable:
                super().close()
                self._handle.update({"text/plain": _last_line(self)}, raw=True)
                for widget in (*self.container.children, self.container):
                    widget.close()

    return JupyterBar()


def marimo_bar(**options: Any) -> Any:
    """A bar of marimo in the output of the cell, which leaves a line in its console; text without a total."""
    from tqdm import tqdm

    if not options.get("total"):
        return tqdm(**options)
    kind: Any = tqdm
    frame: Any = sys.modules["marimo"].status.progress_bar(total=options["total"], remove_on_exit=True)
    native = frame.__enter__()

    class MarimoBar(kind):  # type: ignore[misc]  # tqdm has no types
        drawn = 0

        def display(self, *_: object, **__: object) -> None:
            step, self.drawn = self.n - self.drawn, self.n
            # The thread that renews the text may do so at the moment when the bar ends.
            with contextlib.suppress(RuntimeError):
                native.update(step, title=self.desc or None, subtitle=self.postfix)

        def clear(self, *_: object, **__: object) -> None:
            """Nothing is printed, so nothing has to be cleared."""

        def close(self) -> None:
            if not self.disable:
                super().close()
                frame.__exit__(None, None, None)
                sys.stderr.write(f"{_last_line(self)}\n")

    # tqdm prints nothing for a bar that has a display of its own.
    return MarimoBar(gui=True, **options)


def _last_line(bar: Any) -> str:
    # Without a rate, tqdm writes that of the whole batch.
    return str(bar.format_meter(**{**bar.format_dict, "rate": None}))
