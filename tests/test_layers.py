"""Imports go one way, what `import llm_provider` loads is light, and no module or function grows long.

What a simulation replaces is used through its module of `_runtime` alone.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from support import parse_module

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "llm_provider"

# From the bottom up, each folder or module of the top level: a room imports from the rooms before it
# in this list only. "" is llm_provider/__init__.py.
LAYERS: tuple[str, ...] = (
    "_json_values", "_terminal_text", "_words", "_html", "_foreign_attributes", "_errors", "_runtime",
    "_schemas", "_types", "_telemetry", "_limits", "_money", "_cache", "_requests", "_settings",
    "_providers", "_tokens", "_calls", "_batches", "_estimates", "_recheck", "_evidence", "_client",
    "_check", "", "pytest_plugin", "ray", "integrations", "_cli", "__main__",
)  # fmt: skip

# The rooms of `_calls`, in the same way. Its modules outside rooms are below them.
ROOMS_OF_CALLS = ("sending", "lifecycle", "operations", "batch", "tools")

# A package of its own that shares nothing with the call path.
SEPARATE = "simulator"
MAY_START_SEPARATE = frozenset({"_cli"})

HEAVY = frozenset({
    "aiohttp", "anthropic", "cryptography", "diskcache", "google", "granian", "httpx", "httpx2", "litellm",
    "matplotlib", "numpy", "openai", "opentelemetry", "pandas", "platformdirs", "polars", "pydantic", "tqdm",
})  # fmt: skip
# These are themselves imported only where they are first needed.
MAY_BE_HEAVY = frozenset({
    "integrations.llm", "simulator._server.certificate", "simulator._server.process",
})  # fmt: skip

SEAMS = {
    "_core.runtime.clock": (
        "time.monotonic time.monotonic_ns time.perf_counter time.perf_counter_ns time.sleep time.time "
        "time.time_ns datetime.date.today datetime.datetime.now datetime.datetime.today "
        "datetime.datetime.utcnow"
    ),
    "_core.runtime.randomness": (
        "os.urandom random.Random random.SystemRandom random.choice random.randint random.random "
        "random.randrange random.uniform secrets.choice secrets.token_bytes secrets.token_hex "
        "secrets.token_urlsafe uuid.uuid1 uuid.uuid4"
    ),
    "_core.runtime.threads": (
        "_thread.start_new_thread concurrent.futures.ThreadPoolExecutor multiprocessing.pool.ThreadPool "
        "threading.Thread threading.Timer"
    ),
    "_core.runtime.databases": "diskcache.Cache diskcache.FanoutCache sqlite3.connect",
    "_core.runtime.files": (
        "open() .open() os.fdatasync os.fsync os.ftruncate os.link os.open os.pwrite os.remove os.rename "
        "os.replace os.truncate os.unlink os.write os.writev shutil.copyfile shutil.move shutil.rmtree"
    ),
}
"""Module → what no other module uses, but for the exceptions below: names outside the package, and calls that
open a file for writing, or are those of a path."""

ASK_THE_TIME = {"time.ctime": 1, "time.gmtime": 1, "time.localtime": 1, "time.strftime": 2}
"""Function → the number of arguments below which it reads the clock of the system."""

CHANGE_A_FILE = {
    ".rename": 1, ".replace": 1, ".touch": 0, ".unlink": 0, ".write_bytes": 1, ".write_text": 1
}  # fmt: skip
"""Method of a path → its positional arguments. The `replace` of a text has two."""

DIRECT_USES = {
    ("_core.store.store", "shutil.copyfile"): "copies a database before it gets its name",
    ("_core.store.store", "shutil.rmtree"): "removes a folder that never got its name",
    ("_core.batches.preload", "os.open"): "opens the null device",
    ("_features.cli.output", "os.open"): "opens the null device",
    ("_core.types.rich_content", ".open()"): "writes to memory",
    ("_core.types.rich_content", "open()"): "exports to a file of the user",
    ("integrations.llm", ".open()"): "adds a line to the settings of another tool",
}
"""A module and what it uses directly → the reason."""

UPWARD_FOR_TYPES = {
    "_core.client.batch_methods": {"_core.client.functions", "_core.client.model_functions"},
    "_core.client.client": {"_core.client.functions"},
}
"""Module → those above it that it names for type checkers alone: its methods have the types of theirs."""

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 70


class Import(NamedTuple):
    """An absolute dotted name, and whether importing the module imports it too."""

    name: str
    eager: bool


def module_name(path: Path) -> str:
    """'providers._chat' for its file, '' for the package's own __init__."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


PATHS = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def dotted_name(node: ast.expr) -> str:
    """ "a.b" for a name and its attributes; the attributes alone, as ".b", of what is no name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "", *reversed(parts)])


def statements(tree: ast.Module) -> list[tuple[ast.AST, bool]]:
    """Every node, and whether it runs at import: not in a function, nor under TYPE_CHECKING."""
    nodes: list[tuple[ast.AST, bool]] = [(tree, True)]
    for node, eager in nodes:
        lazy = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and dotted_name(node.test).endswith("TYPE_CHECKING")
        )
        nodes += [(child, eager and not lazy) for child in ast.iter_child_nodes(node)]
    return nodes


def named_module(text: str) -> str | None:
    """The module of this package that a text names, such as "llm_provider._core.settings"; None if it names none.

    An f-string has only its beginning before the first field, which names a folder.
    """
    first, *parts = text.split(".")
    while parts and ".".join(parts) not in PATHS:
        parts.pop()
    return ".".join(parts) if first == "llm_provider" and parts else None


@cache
def imports(module: str) -> tuple[Import, ...]:
    """Everything a module imports anywhere, lazily, by a string and under TYPE_CHECKING too."""
    return tuple(_imports(module))


def _imports(module: str) -> Iterator[Import]:
    package = ["llm_provider", *filter(None, module.split("."))]
    if PATHS[module].name != "__init__.py":
        package.pop()
    for node, eager in statements(parse_module(PATHS[module])):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = named_module(node.value)
            # A module names the package that it is in where it starts a program.
            if named is not None and not f"{module}.".startswith(f"{named}."):
                yield Import(f"llm_provider.{named}", eager=False)
        elif isinstance(node, ast.Import):
            yield from (Import(alias.name, eager) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, (node.module or "").split("."))])
            for alias in node.names:
                # `from . import x` names a module where there is one, else something inside the package.
                name = f"{source}.{alias.name}"
                yield Import(name if name.removeprefix("llm_provider.") in PATHS else source, eager)


def own_imports(module: str) -> set[str]:
    """The modules of this package that a module imports, relative to the package."""
    names = (name for name, _ in imports(module) if name.partition(".")[0] == "llm_provider")
    return {name.removeprefix("llm_provider").removeprefix(".") for name in names}


def unit(module: str) -> str:
    """What a module counts as in LAYERS."""
    return module.partition(".")[0]


def arrows() -> Iterator[tuple[str, str]]:
    """Every import of one unit by another."""
    for module in PATHS:
        for imported in own_imports(module):
            if unit(module) != unit(imported):
                yield unit(module), unit(imported)


def test_the_imports_are_seen() -> None:
    assert {"_errors", "_core.types.messages"} <= own_imports("_core.requests.request")
    assert "_core.formats.protocol" in own_imports("_core.formats.openai.adapter")
    assert Import("openai", eager=False) in set(imports("_core.formats.openai.connection"))
    assert "_core.journey.repair" in own_imports("_core.batches.preload")
    assert named_module("llm_provider._core.formats.") == "_providers"  # an f-string, before its first field


def test_every_module_has_a_layer() -> None:
    placed = {*LAYERS, SEPARATE}
    assert {unit(module) for module in PATHS} <= placed


def test_imports_point_down() -> None:
    upward = {
        f"{here or '__init__'} imports {there or '__init__'}"
        for here, there in arrows()
        if SEPARATE not in (here, there) and LAYERS.index(there) >= LAYERS.index(here)
    }
    assert upward == set()


def test_imports_point_down_in_the_rooms_of_calls() -> None:
    def room(module: str) -> int:
        name = module.split(".")[1]
        return ROOMS_OF_CALLS.index(name) if name in ROOMS_OF_CALLS else -1

    calls = [module for module in PATHS if module.startswith("_calls.")]
    upward = {
        f"{module} imports {imported}"
        for module in calls
        for imported in own_imports(module) & set(calls)
        if room(imported) > room(module)
    }
    assert upward == set()


def test_the_simulator_stands_alone() -> None:
    assert {there for here, there in arrows() if here == SEPARATE} == set()
    assert {here for here, there in arrows() if there == SEPARATE} <= MAY_START_SEPARATE


def test_the_package_imports_nothing_that_is_not_shipped() -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    assert {"benchmarks", "tests", "tools"} <= folders
    assert {
        name for module in PATHS for name, _ in imports(module) if name.partition(".")[0] in folders
    } == set()


def test_there_are_no_cycles() -> None:
    graph = {module: own_imports(module) - UPWARD_FOR_TYPES.get(module, set()) - {module} for module in PATHS}
    assert set(TopologicalSorter(graph).static_order()) == set(PATHS)


def test_what_is_named_for_types_alone_is_not_loaded() -> None:
    for module, others in UPWARD_FOR_TYPES.items():
        named = {Import(f"llm_provider.{other}", eager) for other in others for eager in (True, False)}
        assert {each for each in imports(module) if each in named} == {
            each for each in named if not each.eager
        }


def test_heavy_packages_and_modules_are_imported_lazily() -> None:
    assert PATHS.keys() >= MAY_BE_HEAVY
    heavy = HEAVY | {f"llm_provider.{module}" for module in MAY_BE_HEAVY}
    eager = {
        f"{module} imports {name}"
        for module in PATHS.keys() - MAY_BE_HEAVY
        for name, at_import in imports(module)
        if at_import and {name, name.partition(".")[0]} & heavy
    }
    assert eager == set()


def outside_names(tree: ast.Module) -> Iterator[str]:
    """The names outside this package that code uses, such as "time.time", however it has imported them."""
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = dotted_name(node).partition(".")
            yield f"{imported.get(first, first)}.{rest}"
        if isinstance(node, ast.Call):
            yield from revealing_calls(node)


def revealing_calls(call: ast.Call) -> Iterator[str]:
    """What only the arguments of a call reveal: that it reads the clock, or changes a file."""
    name = dotted_name(call.func)
    method = "." + call.func.attr if isinstance(call.func, ast.Attribute) else name
    if len(call.args) < ASK_THE_TIME.get(name, 0):
        yield f"{name}()"
    if len(call.args) == CHANGE_A_FILE.get(method):
        yield f"{method}()"
    words = (str(word.value) for word in call.args if isinstance(word, ast.Constant))
    if method.removeprefix(".") == "open" and any(re.fullmatch("[rbt]*[wax+][bt+]*", word) for word in words):
        yield f"{method}()"


def test_what_a_simulation_replaces_has_one_module() -> None:
    seam_of = {name: seam for seam, names in SEAMS.items() for name in names.split()}
    seam_of |= {f"{name}()": "_core.runtime.clock" for name in ASK_THE_TIME}
    seam_of |= {f"{name}()": "_core.runtime.files" for name in CHANGE_A_FILE}
    direct = {
        (module, name)
        for module in PATHS
        if unit(module) != SEPARATE
        for name in outside_names(parse_module(PATHS[module]))
        if seam_of.get(name, module) != module
    }
    assert direct == set(DIRECT_USES)


def test_uses_of_outside_names_are_seen() -> None:
    code = "import os as system, time; from time import time as now; system.replace(a, time.gmtime())"
    assert {"os.replace", "time.time", "time.gmtime()"} <= set(outside_names(ast.parse(code)))
    assert "time.gmtime()" not in set(outside_names(ast.parse("import time; time.gmtime(1.0)")))
    for seam, names in SEAMS.items():
        assert set(names.split()) & set(outside_names(parse_module(PATHS[seam])))


def test_modules_and_functions_stay_short() -> None:
    paths = PATHS | {str(path.relative_to(ROOT)): path for path in ROOT.glob("tools/**/*.py")}
    long = []
    for module, path in paths.items():
        text = path.read_text(encoding="utf-8")
        if len(text.splitlines()) > MAX_MODULE_LINES:
            long.append(module)
        long += [
            f"{module}: {node.name}"
            for node in ast.walk(parse_module(path))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES
        ]
    assert long == []
