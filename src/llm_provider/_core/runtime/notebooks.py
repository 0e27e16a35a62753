"""Notebooks: which one, loaded already, this process runs in, and how it shows a value.

It is alone because a module without an event loop asks it too.
"""

import sys


def in_notebook() -> bool:
    """Whether this thread runs a cell of a notebook."""
    return in_jupyter() or in_marimo()


def in_jupyter() -> bool:
    """Whether this process is a Jupyter kernel, such as JupyterLab, VS Code and Colab start."""
    # A script that runs notebooks in other processes, as by nbclient, imports ipykernel too.
    kernels = sys.modules.get("ipykernel.kernelapp")
    return kernels is not None and bool(kernels.IPKernelApp.initialized())


def in_marimo() -> bool:
    """Whether this thread runs a cell of marimo. A marimo notebook that is run as a script is a script."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


def show(value: object) -> None:
    """Show a value below the cell that runs, above the cell's last expression."""
    if in_jupyter():
        from IPython.display import display

        display(value)
    elif in_marimo():
        sys.modules["marimo"].output.append(value)
