"""Imports go one way, what `import llm_provider` loads is light, and no module or function grows long.

The core imports no feature. What a simulation replaces is used through its module of `_core/runtime` alone.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Literal, NamedTuple

from support import parse_module
from tools.layers import CORE

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "llm_provider"

PUBLIC = ("", "__main__", "pytest_plugin", "ray", "integrations")
"""The modules that users import or start. "" is llm_provider/__init__.py. Nothing private imports them."""

# A package of its own that shares nothing with the call path.
SEPARATE = "simulator"
MAY_START_SEPARATE = frozenset({"_features.cli"})

HEAVY = frozenset({
    "aiohttp", "anthropic", "cryptography", "diskcache", "google", "granian", "httpx", "httpx2", "litellm",
    "matplotlib", "numpy", "openai", "opentelemetry", "pandas", "platformdirs", "polars", "pydantic", "tqdm",
})  # fmt: skip
# These are themselves imported only where they are first needed.
MAY_BE_HEAVY = frozenset({
    "_core.store.row_format", "integrations.llm", "simulator._server.certificate",
    "simulator._server.process",
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
    ("_core.store.row_format", "diskcache.Cache"): "creates an empty database under another name",
    ("_core.store.store", ".write_bytes()"): "writes a database before it gets its name",
    ("_core.store.store", "shutil.rmtree"): "removes a folder that never got its name",
    ("_core.batches.lookup", "os.open"): "opens the null device",
    ("_features.cli.output", "os.open"): "opens the null device",
    ("_features.rich_content.values", ".open()"): "writes to memory",
    ("_features.rich_content.values", "open()"): "exports to a file of the user",
    ("integrations.llm", ".open()"): "adds a line to the settings of another tool",
}
"""A module and what it uses directly → the reason."""

DOORS = {
    "_core.doors": "every feature that the core asks by name",
    "_core.formats.registry": "what features add to a wire format, and the adapters that are features",
}
"""Module of the core that names features in a table → what they add. Each is imported when it is needed."""

OPTIONAL = frozenset({
    "azure", "backports", "botocore", "cryptography", "dspy", "granian", "inspect_ai", "litellm", "llm",
    "lm_eval", "matplotlib", "mcp", "mcp_types",
    "numpy", "opentelemetry", "pandas", "polars", "ray", "valkey",
})  # fmt: skip
"""Packages that an extra or the user installs."""

EXCEPTIONS_OF_PACKAGES: dict[tuple[str, str], str] = {
    ("_core.money.ledger", "matplotlib"): "draws where the user asks",
    ("_core.money.ledger", "pandas"): "makes a data frame where the user asks",
    ("_core.money.ledger", "polars"): "makes a data frame where the user asks",
    ("_core.types.embeddings", "numpy"): "makes an array where the user asks",
    ("_core.types.results", "matplotlib"): "names its figure for type checkers",
    ("_core.types.results", "pandas"): "names its data frame for type checkers",
    ("_core.types.results", "polars"): "names its data frame for type checkers",
    ("_core.types.results_table", "pandas"): "makes a data frame where the user asks",
    ("_core.types.results_table", "polars"): "makes a data frame where the user asks",
}
"""Module of the core and optional package → the reason."""

EXCEPTIONS_OF_THE_CORE: frozenset[tuple[str, str]] = frozenset({

})  # fmt: skip
"""A module of the core, and a feature that it imports: what is left to do. This list may only shrink."""

EXCEPTIONS_OF_FEATURES: dict[tuple[str, str], str] = {
    ("cli", "cache_care"): "a command shows it",
    ("cli", "check"): "a command shows it",
    ("cli", "evidence"): "a command shows it",
    ("cli", "foreign"): "a command shows it",
    ("cli", "hosts"): "a command shows it",
    ("cli", "models"): "a command shows it",
    ("cli", "reconcile"): "a command shows it",
}
"""Feature → another that it imports, and the reason."""

UPWARD_FOR_TYPES = {
    "_core.client.batch_methods": {
        "_core.client.functions", "_core.client.model_functions", "_features.estimates.estimates",
    },
    "_core.client.client": {"_core.client.functions"},
}  # fmt: skip
"""Module → those above it that it names for type checkers alone: its methods have the types of theirs."""

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 70


class Import(NamedTuple):
    """An absolute dotted name, whether importing the module imports it too, and how the module names it."""

    name: str
    eager: bool
    form: Literal["import", "text", "types"] = "import"


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


def statements(tree: ast.Module) -> list[tuple[ast.AST, bool, bool]]:
    """Every node, whether it runs at import, and whether it stands under TYPE_CHECKING."""
    nodes: list[tuple[ast.AST, bool, bool]] = [(tree, True, False)]
    for node, eager, types in nodes:
        lazy = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        of_types = isinstance(node, ast.If) and dotted_name(node.test).endswith("TYPE_CHECKING")
        at_import = eager and not lazy and not of_types
        nodes += [(child, at_import, types or of_types) for child in ast.iter_child_nodes(node)]
    return nodes


def named_module(text: str) -> str | None:
    """The module of this package that a text names, "llm_provider._core.errors"; None if it names none.

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
    for node, eager, types in statements(parse_module(PATHS[module])):
        form: Literal["import", "types"] = "types" if types else "import"
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = named_module(node.value)
            # A module names the package that it is in where it starts a program.
            if named is not None and not f"{module}.".startswith(f"{named}."):
                yield Import(f"llm_provider.{named}", eager=False, form="text")
        elif isinstance(node, ast.Import):
            yield from (Import(alias.name, eager, form) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, (node.module or "").split("."))])
            for alias in node.names:
                # `from . import x` names a module where there is one, else something inside the package.
                name = f"{source}.{alias.name}"
                yield Import(name if name.removeprefix("llm_provider.") in PATHS else source, eager, form)


def own_imports(module: str) -> set[str]:
    """The modules of this package that a module imports, relative to the package."""
    names = (name for name, _, _ in imports(module) if name.partition(".")[0] == "llm_provider")
    return {name.removeprefix("llm_provider").removeprefix(".") for name in names}


def unit(module: str) -> str:
    """What a module counts as: a room of the core, a feature, or a module of the top level."""
    first, *parts = module.split(".")
    return f"{first}.{parts[0]}" if first in ("_core", "_features") and parts else first


def arrows() -> Iterator[tuple[str, str]]:
    """Every import of one unit by another."""
    for module in PATHS:
        for imported in own_imports(module):
            if unit(module) != unit(imported):
                yield unit(module), unit(imported)


def imported_features(module: str) -> set[str]:
    """The features that a module imports when it runs, or that its functions import.

    A door names features in texts.
    """
    return {
        name.split(".")[2]
        for name, _, form in imports(module)
        if (name.startswith("llm_provider._features.") and form == "import")
        or (name.startswith("llm_provider._features") and form == "text" and module not in DOORS)
    }  # fmt: skip


def test_the_imports_are_seen() -> None:
    assert {"_core.errors", "_core.types.messages"} <= own_imports("_core.requests.request")
    assert "_core.formats.protocol" in own_imports("_core.formats.openai.encode")
    assert Import("openai", eager=False) in set(imports("_core.formats.openai.connection"))
    assert {"_core.store.row_format", "_core.schemas.reading"} <= own_imports("_core.batches.lookup")
    assert (
        named_module("llm_provider._core.formats.") == "_core.formats"
    )  # an f-string, before its first field


def test_every_module_has_a_room_or_is_a_feature() -> None:
    rooms = {f"_core.{room}" for room in CORE} | {"_core", "_features", *PUBLIC, SEPARATE}
    units = {unit(module) for module in PATHS}
    assert {name for name in units if not name.startswith("_features.")} == rooms


def test_imports_point_down_in_the_core() -> None:
    rooms = {f"_core.{room}": number for number, room in enumerate(CORE)}
    upward = {
        f"{here} imports {there}"
        for here, there in arrows()
        if here in rooms and there in rooms and rooms[there] >= rooms[here]
    }
    assert upward == set()


def test_nothing_private_imports_what_users_import() -> None:
    private = {(here, there) for here, there in arrows() if here not in PUBLIC and there in PUBLIC}
    assert private == {("_features.cli", "")}  # a program that uses the package as users do


def test_the_core_imports_no_feature() -> None:
    core = [module for module in PATHS if module.startswith("_core")]
    assert {(module, name) for module in core for name in imported_features(module)} == EXCEPTIONS_OF_THE_CORE


def test_a_feature_imports_no_other_feature() -> None:
    features = [module for module in PATHS if module.startswith("_features.")]
    named = {(unit(module).split(".")[1], name) for module in features for name in imported_features(module)}
    assert {pair for pair in named if pair[0] != pair[1]} == set(EXCEPTIONS_OF_FEATURES)


def test_a_feature_says_what_it_is() -> None:
    """The first line of each folder: what the feature is, its extra, and where its tests are."""
    for folder in sorted((PACKAGE / "_features").glob("*/__init__.py")):
        lines = (ast.get_docstring(parse_module(folder)) or "").split("\n")
        what, _, tests = lines[0].rstrip(".").rpartition("; ")
        assert re.search(r"\b(No extra|Extras? `\w+`.*)$", what), folder
        assert (ROOT / tests).exists(), folder


def test_the_core_imports_nothing_optional() -> None:
    optional = {
        (module, name.partition(".")[0])
        for module in PATHS
        if module.startswith("_core")
        for name, _, _ in imports(module)
        if name.partition(".")[0] in OPTIONAL
    }
    assert optional == set(EXCEPTIONS_OF_PACKAGES)


def test_the_simulator_stands_alone() -> None:
    assert {there for here, there in arrows() if here == SEPARATE} == set()
    assert {here for here, there in arrows() if there == SEPARATE} <= MAY_START_SEPARATE


def test_the_package_imports_nothing_that_is_not_shipped() -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    assert {"benchmarks", "tests", "tools"} <= folders
    assert {
        name for module in PATHS for name, _, _ in imports(module) if name.partition(".")[0] in folders
    } == set()


def test_there_are_no_cycles() -> None:
    graph = {module: own_imports(module) - UPWARD_FOR_TYPES.get(module, set()) - {module} for module in PATHS}
    graph["_core.doors"] = set()  # each feature behind it imports the core
    assert set(TopologicalSorter(graph).static_order()) == set(PATHS)


def test_what_is_named_for_types_alone_is_not_loaded() -> None:
    for module, others in UPWARD_FOR_TYPES.items():
        named = {f"llm_provider.{other}" for other in others}
        forms = {(name, form) for name, _, form in imports(module) if name in named}
        assert forms == {(name, "types") for name in named}


def test_heavy_packages_and_modules_are_imported_lazily() -> None:
    assert PATHS.keys() >= MAY_BE_HEAVY
    heavy = HEAVY | {f"llm_provider.{module}" for module in MAY_BE_HEAVY}
    eager = {
        f"{module} imports {name}"
        for module in PATHS.keys() - MAY_BE_HEAVY
        for name, at_import, _ in imports(module)
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
