# SPDX-License-Identifier: Apache-2.0
"""The types in Swift sources and their number of stored properties, from the text alone."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .tree import ending, text

TYPE = re.compile(r"^( *)(?:[\w@()]+ )*?(?:class|struct|actor) (\w+)\b(?! *\()")
PROPERTY = re.compile(
    r"^ *(?:@\w+(?:\([^)]*\))? )*(?:(?:public|package|internal|private|fileprivate)(?:\(set\))? |final |lazy |weak |unowned(?:\(\w+\))? "
    r"|nonisolated(?:\(unsafe\))? )*(?:let|var) (?P<rest>[\w(].*)$"
)


class Type(NamedTuple):
    name: str
    path: str
    line: int
    stored: int


def stored(rest: str, following: str) -> int:
    """The stored properties of a declaration: 0 if it is computed."""
    head = rest.split(" = ")[0]
    if "{" in head:
        inside = (head.split("{", 1)[1] + " " + following).strip()
        if not re.match(r"(did|will)Set\b", inside):
            return 0
    elif rest.endswith("{") and " = " not in rest:
        return 1 if re.match(r"(did|will)Set\b", following.strip()) else 0
    # `var a, b: Int` stores two.
    return head.split(":")[0].count(",") + 1 if not head.startswith("(") else head.split(")")[0].count(",") + 1


def types() -> Iterator[Type]:
    for path in ending(".swift"):
        if not path.startswith("Sources/"):
            continue
        lines = text(path).splitlines()
        for number, line in enumerate(lines):
            begin = TYPE.match(line)
            if not begin or not line.rstrip().endswith("{"):
                continue
            indent = begin[1]
            count = 0
            for index in range(number + 1, len(lines)):
                if lines[index].startswith(indent + "}"):
                    break
                if not re.match(rf"{indent}    [^ ]", lines[index]):
                    continue
                if found := PROPERTY.match(lines[index]):
                    count += stored(found["rest"], lines[index + 1] if index + 1 < len(lines) else "")
            yield Type(begin[2], path, number + 1, count)
