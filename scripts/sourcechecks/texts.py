# SPDX-License-Identifier: Apache-2.0
"""The texts in sources that users read: help, errors, events, log messages."""

import ast
import bisect
import re
from collections.abc import Iterator
from typing import NamedTuple

from .tree import files, text

# The kind of a text, from the code before it.
KINDS = (
    ("help", r"\bhelp:\s*(ArgumentHelp\()?\s*(\.init\()?$"),
    ("abstract", r"\babstract:\s*$"),
    ("discussion", r"\bdiscussion:\s*$"),
    ("event", r"\b(note\([^()]*|text:\s*)$"),
    ("log", r"\blog\.\w+\(\s*$|\b_log\.\w+\(\s*$"),
    ("error", r"\b(error|warning|fail|refuse|refused|problem|ValidationError|RequestError|Exception|\w*Error)\([^()]*$"),
)
# Words that slow readers down, with replacements.
WORDS = {
    r"nobody|nobody's": "no app, no user, no process",
    r"somebody|somebody's": "a user, another process",
    r"whoever": "the app, process or user that",
    r"anew": "again, fresh; restart, reload, rebind",
    r"meanwhile": "by then; say what happened",
    r"go(?:es)? on(?! by itself)": "continues, keeps running",
    r"no more(?=[.,;:)]|$| and\b)": "no longer, not again",
    r"(?:tells?|told) of": "reports, notifies",
    r"(?:is|are) to be": "will be, must be, is wanted",
    r"as long as it is so": "while",
    r"what there was": "name it",
    r"(?:app|apps|process|processes|scene|scenes|client|clients) who": "an app is “it” or “that”",
}
OLD = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): instead for words, instead in WORDS.items()}
LEAST_HELP = 3


class Text(NamedTuple):
    path: str
    line: int
    kind: str
    text: str


def old_words(sentence: str) -> Iterator[tuple[str, str]]:
    """Words to replace, with their replacements.

    >>> list(old_words("it goes on, and nobody sees it"))
    [('nobody', 'no app, no user, no process'), ('goes on', 'continues, keeps running')]
    >>> list(old_words("no more than 5 apps, whose process is there"))
    []
    """
    for pattern, instead in OLD.items():
        for match in pattern.finditer(sentence):
            yield match[0], instead


def literals(source: str, quotes: str = '"') -> Iterator[tuple[int, str, str]]:
    r"""The literals of a Swift, C or JavaScript source: line, code before it on this line and the previous one, text.

    An interpolation becomes an ellipsis, and its own literals are texts too; parts joined by + are one text.

    >>> [text for _, _, text in literals('f("a \\(x("b c")) d") // "no"')]
    ['b c', 'a … d']
    >>> [text for _, _, text in literals('let a = "one "\n    + "two" /* "no" */ + b')]
    ['one two']
    >>> [text for _, _, text in literals('"\"\"\n  a "quoted" word\n  "\"\"')]
    ['\n  a "quoted" word\n  ']
    >>> [text for _, _, text in literals("say('it is', `${name} there`)", "\"'`")]
    ['it is', '… there']
    """
    found: list[tuple[int, str, str]] = []
    ends = [match.start() for match in re.finditer("\n", source)]

    def line(at: int) -> int:
        return bisect.bisect_left(ends, at) + 1

    def interpolated(at: int, close: str) -> int:
        depth = 1
        while depth and at < len(source):
            if source[at] in quotes:
                start = at
                words, at = literal(at, 0)
                found.append((line(start), "", words))
                continue
            depth += {"({"[close == "}"]: 1, close: -1}.get(source[at], 0)
            at += 1
        return at

    def literal(at: int, hashes: int) -> tuple[str, int]:
        quote = source[at]
        mark = quote * 3 if quote == '"' and source.startswith('"""', at) else quote
        at += len(mark)
        escape, end, words = "\\" + "#" * hashes, mark + "#" * hashes, ""
        while at < len(source) and not source.startswith(end, at):
            if source.startswith(escape + "(", at) and quotes == '"':
                at = interpolated(at + len(escape) + 1, ")")
                words += "…"
            elif quote == "`" and source.startswith("${", at):
                at = interpolated(at + 2, "}")
                words += "…"
            elif source.startswith(escape, at):
                following = source[at + len(escape) : at + len(escape) + 1]
                words += {"n": "\n", "t": "\t", "\n": ""}.get(following, following)
                at += len(escape) + 1
            else:
                words += source[at]
                at += 1
        return words, at + len(end)

    token = re.compile(rf"//[^\n]*|/\*.*?\*/|#*[{quotes}]", re.DOTALL)
    # In C, adjacent literals are one.
    joint = re.compile(r"\s*\+?\s*(?=#*[\"])")
    at, joined = 0, -1
    while match := token.search(source, at):
        at = match.end()
        if match[0].startswith("/"):
            continue
        start = match.start()
        words, at = literal(at - 1, len(match[0]) - 1)
        if start == joined:
            found[-1] = (*found[-1][:2], found[-1][2] + words)
        else:
            before = source.rfind("\n", 0, max(source.rfind("\n", 0, start), 0)) + 1
            found.append((line(start), source[before:start], words))
        following = joint.match(source, at)
        joined = following.end() if following else -1
    yield from found


def kind(before: str) -> str:
    return next((kind for kind, pattern in KINDS if re.search(pattern, before)), "text")


def of_python(path: str) -> Iterator[Text]:
    tree = ast.parse(text(path))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield Text(path, node.lineno, "text", node.value)


def all_texts() -> Iterator[Text]:
    """Every literal of the product that has more than one word."""
    for path in files():
        if not path.startswith(("Sources/", "Plugins/", "Clients/c/torpor", "Clients/python/torpor/")):
            continue
        if path.endswith(".py"):
            found = of_python(path)
        elif path.endswith(".js"):
            found = (Text(path, line, kind(before), words) for line, before, words in literals(text(path), "\"'`"))
        elif path.endswith((".swift", ".c", ".cpp", ".h")):
            found = (Text(path, line, kind(before), words) for line, before, words in literals(text(path)))
        else:
            continue
        yield from (each for each in found if re.search(r"\w\W*\s\W*\w", each.text))


def advice(word: str, instead: str) -> str:
    return f"“{word}” slows readers down, write: {instead}"


def troubles() -> Iterator[tuple[Text, str]]:
    """Texts to rewrite, with the reason."""
    for each in all_texts():
        for word, instead in old_words(each.text):
            yield each, advice(word, instead)
        if each.kind == "help" and len(each.text.split()) < LEAST_HELP:
            yield each, "this help does not say what the option does: begin with a verb, or name what it takes"
