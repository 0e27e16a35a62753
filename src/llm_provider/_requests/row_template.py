"""Text with the names of fields, such as `Translate: {text}`, which the rows of a table fill in.

A field is a column, with `.name` or `[index]` for what lies inside it. Python's own `str.format` would follow
`{text.__init__.__globals__}` to whatever the program holds, and pad a text to any width.
"""

import re
import string

from .._errors import RequestError

BRACES = "a brace that is text is written twice, as {{ or }}"

_MOST_DIGITS = 4
"""Digits of a number in a format, such as a width."""


def parse_template(template: str, name: str, example: str) -> tuple[str, list[str]]:
    """A template that reads fields of rows alone, else a `RequestError`, and the names of its columns.

    Messages call it by its `name`, and have an `example` of a field, such as "{text}".

    >>> parse_template("{person.name:>10} {{}}", "the template", "{text}")
    ('{person[name]:>10} {{}}', ['person'])
    """
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        raise RequestError(f"{name} is not valid: {error}; {BRACES}") from None
    text, columns = "", []
    for literal, field, spec, conversion in pieces:
        text += literal.replace("{", "{{").replace("}", "}}")
        if field is None:
            continue
        column, path = re.fullmatch(r"([^.\[]*)(.*)", field, re.DOTALL).groups()  # type: ignore[union-attr]  # it matches all
        if not column or column.isdigit():
            raise RequestError(f"{name} has the field {{{field}}}; name a column, as in {example}")
        if re.search(r"\.\s*(__|$|[.\[])", path):
            raise RequestError(f"{name} has {{{field}}}; it may name fields of rows, and no attributes")
        if re.search(rf"[{{}}]|\d{{{_MOST_DIGITS + 1}}}", spec or ""):
            raise RequestError(
                f"{name} has the field {{{field}}} with the format {spec!r}, which may hold no field and no "
                f"number of more than {_MOST_DIGITS} digits; {BRACES}"
            )
        columns.append(column)
        # A field in brackets is looked up in the row; one after a dot would be an attribute.
        path = re.sub(r"\.([^.\[]+)", r"[\1]", path)
        text += f"{{{column}{path}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}"
    if not columns:
        raise RequestError(f"{name} has no field such as {example}, so all prompts would be equal")
    return text, list(dict.fromkeys(columns))
