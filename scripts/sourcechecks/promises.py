# SPDX-License-Identifier: Apache-2.0
"""Messages, exit reasons and background modes: compares documents and libraries with the code.

All by the text of the sources. A word counts as used (`gives`) if the code names its case outside of patterns and
comparisons, which only test for it.
"""

import functools
import json
import re
from collections.abc import Iterator

from .runner import Finding
from .tree import Problem, ending, text

STATES = "Sources/Lifecycle/States.swift"
DELEGATE = "Sources/EverydayVerbs/AppSide/DelegateMessage.swift"
MODES = "Sources/Lifecycle/BackgroundMode.swift"
# The modules that decide and send. DEFINITIONS are the files that define the cases or only read records.
GIVERS = ("Archives", "ControlService", "Engine", "EventSources", "Lifecycle", "Recovery", "Supervisor")
DEFINITIONS = (STATES, MODES, "Sources/Lifecycle/Record.swift")


def cases(path: str, name: str) -> dict[str, str]:
    """The cases of an enumeration with their raw values; the name if none is written."""
    body = re.search(rf"\benum {name}\b.*?\{{\n(.*?)^\}}", text(path), re.DOTALL | re.MULTILINE)
    found = re.findall(r'^    case (\w+)(?: = "([^"]+)")?$', body[1] if body else "", re.MULTILINE)
    if not found:
        raise Problem(f"there is no enum {name} with cases in {path}: teach scripts/sourcechecks/promises.py where it is")
    return {case: word or case for case, word in found}


@functools.cache
def given() -> frozenset[str]:
    """The names of cases that are used as values."""
    names: set[str] = set()
    for path in ending(".swift"):
        if path.startswith(tuple(f"Sources/{name}/" for name in GIVERS)) and path not in DEFINITIONS:
            code = re.sub(r"//.*", "", text(path))
            # Remove patterns (`case .a, .b(let x):`) and comparisons.
            code = re.sub(r"\bcase\b[^:{}]*:", " ", code)
            code = re.sub(r"[!=]=\s*\w*\.\w+", " ", code)
            code = re.sub(r"\.contains\(\.\w+\)|\[[^\[\]]*\]\.contains\b", " ", code)
            names.update(re.findall(r"(?<!\w)(?:[A-Z]\w*)?\.([a-z]\w*)\b(?!\()", code))
    return frozenset(names)


def table(page: str, header: str) -> dict[str, int]:
    """The words in the first column of the table with this header, with their lines; a cell may have several."""
    words: dict[str, int] = {}
    lines = text(page).splitlines()
    if header not in lines:
        raise Problem(f"{page} has no table that begins with {header}: correct it, or scripts/sourcechecks/promises.py")
    for number, line in enumerate(lines[lines.index(header) + 2 :], lines.index(header) + 3):
        if not line.startswith("|"):
            break
        cell = line.split("|")[1]
        words.update((word, number) for word in re.findall("`([^`]+)`", cell) or [cell.strip()])
    return words


def compare(wanted: set[str], what: str, page: str, found: dict[str, int] | set[str]) -> Iterator[Finding]:
    """Words that only one side has."""
    lines = found if isinstance(found, dict) else dict.fromkeys(found, 0)
    for word in sorted(wanted - lines.keys()):
        yield Finding(f"it does not have the {what} {word}, which is in the code: add it", page)
    for word in sorted(lines.keys() - wanted):
        yield Finding(f"it has the {what} {word}, which the code does not: remove it", page, lines[word])


def methods_of_swift() -> set[str]:
    """The messages for which the library calls a method of the same name."""
    protocol = text("Sources/TorporApp/AppDelegate.swift").partition("extension AppDelegate")[0]
    handed = re.search(r"func dispatch\(.*?^    \}", text("Sources/TorporApp/MessageLoop.swift"), re.DOTALL | re.MULTILINE)
    named = re.findall(r'"(\w+)"', "".join(re.findall(r"^        case (.*?):", handed[0] if handed else "", re.MULTILINE)))
    return set(named) & set(re.findall(r"^    func (\w+)\(", protocol, re.MULTILINE))


def methods_of_python() -> set[str]:
    delegate = text("Clients/python/torpor/_delegate.py")
    methods = set(re.findall(r"^    def (\w+)\(", delegate, re.MULTILINE))
    return {name for name, method in re.findall(r'^    "(\w+)": "(\w+)",$', delegate, re.MULTILINE) if method in methods}


def functions_of_c() -> set[str]:
    functions = set(re.findall(r"^    torpor_handler \*(\w+);", text("Clients/c/torpor_app.h"), re.MULTILINE))
    rows = re.findall(r'\{"(\w+)", delegate->(\w+), ', text("Clients/c/torpor_app.c"))
    return {name for name, function in rows if function in functions}


def passed_on_by_clients() -> dict[str, set[str]]:
    """The messages that another app may get if the app has no use for them, as each client has them."""
    found = {}
    delegate = re.search(r"var isForOthers: Bool \{.*?case ([^:]*):\s*true", text(DELEGATE), re.DOTALL)
    found[DELEGATE] = set(re.findall(r"\.(\w+)", delegate[1] if delegate else ""))
    python = re.search(r"^_FOR_OTHERS = \((.*?)\)", text("Clients/python/torpor/_delegate.py"), re.DOTALL | re.MULTILINE)
    found["Clients/python/torpor/_delegate.py"] = set(re.findall(r'"(\w+)"', python[1] if python else ""))
    rows = re.findall(r'\{"(\w+)", delegate->\w+, true\}', text("Clients/c/torpor_app.c"))
    found["Clients/c/torpor_app.c"] = set(rows)
    return found


def check_promises() -> Iterator[Finding]:
    messages = cases(STATES, "Message")
    reasons = cases(STATES, "TerminationReason")
    modes = cases(MODES, "BackgroundMode")
    for case in sorted((messages.keys() | reasons.keys()) - given()):
        kind = "message" if case in messages else "reason"
        yield Finding(f"nothing gives the {kind} .{case}: remove the case (records keep its place), or give it", STATES)

    names = set(messages.values())
    yield from compare(names, "message", "docs/lifecycle.md", table("docs/lifecycle.md", "| message | told | parameters |"))
    header = "| message | Swift | Python | C | shell: `TORPOR_MESSAGE_…` |"
    yield from compare(names, "message", "docs/apps.md", table("docs/apps.md", header))
    yield from compare(names, "message", "Sources/TorporApp/AppDelegate.swift", methods_of_swift())
    yield from compare(names, "message", "Clients/python/torpor/_delegate.py", methods_of_python())
    yield from compare(names, "message", "Clients/c/torpor_app.c", functions_of_c())
    yield from compare(names, "message", DELEGATE, set(cases(DELEGATE, "DelegateMessage").values()))

    passed_on = re.search(r"^- `unhandled` is an answer to (.*?):", text("docs/lifecycle.md"), re.MULTILINE)
    wanted = set(re.findall(r"\w+[A-Z]\w+", passed_on[1] if passed_on else ""))
    for path, found in passed_on_by_clients().items():
        yield from compare(wanted, "message that may be unhandled,", path, found)

    # A signal cannot name a scene.
    about = re.search(r"var isAboutScenes: Bool \{.*?case (.*?):\n", text(STATES), re.DOTALL)
    signalled = names - {messages[case] for case in re.findall(r"\.(\w+)", about[1] if about else "")}
    schema = json.loads(text("config/torpor.schema.json"))["$defs"]["app"]["properties"]
    yield from compare(signalled, "message", "config/torpor.schema.json", set(schema["signals"]["properties"]))
    manual = "docs/man/torpor.toml.5.md"
    signals = re.search(r"The messages that the app hears as a signal: (.*?)\.", text(manual))
    yield from compare(signalled, "message", manual, set(re.findall("`(\\w+)`", signals[1] if signals else "")))
    for page in ending(".md"):
        if page.startswith("docs/") and page != "docs/policies.md":
            yield from unknown_words(page, names, set(reasons.values()))

    reason_table = table("docs/lifecycle.md", "| reason | code | restarted by `on-failure` | events launch it |")
    yield from compare(set(reasons.values()), "reason", "docs/lifecycle.md", {
        word: line for word, line in reason_table.items() if word != "apply"
    })

    yield from compare(set(modes.values()), "mode", "docs/events.md", table("docs/events.md", "| mode | what it does |"))
    yield from compare(set(modes.values()), "mode", "config/torpor.schema.json", set(schema["background_modes"]["items"]["enum"]))
    listed = re.search(r"^`background_modes`\n: \*list of\* (.*?), default", text(manual), re.MULTILINE)
    yield from compare(set(modes.values()), "mode", manual, set(re.findall('`"([\\w-]+)"`', listed[1] if listed else "")))
    idle = re.findall(r"case (\.[^:]*): false", text(MODES))
    yield from check_effects(modes, set(re.findall(r"\.(\w+)", " ".join(idle))))


def unknown_words(page: str, messages: set[str], reasons: set[str]) -> Iterator[Finding]:
    """Words that look like messages, and removed reasons."""
    gone = {"cpu-limit", "gpu-in-background", "no-purpose-string", "refresh", "didReceiveLocalNotification"}
    for number, line in enumerate(text(page).splitlines(), 1):
        for word in re.findall(r"`([\w-]+)`", line):
            looks = re.fullmatch(r"(did|will)[A-Z]\w+|\w+(Did|Will)[A-Z]\w+", word)
            if (looks and word not in messages) or (word in gone and word not in messages | reasons):
                yield Finding(f"it names {word}, which nothing gives: remove it", page, number)


def check_effects(modes: dict[str, str], idle: set[str]) -> Iterator[Finding]:
    """The configuration code must test each mode that has an effect; others must be documented as without one."""
    asked: set[str] = set()
    for path in ending(".swift"):
        if path.startswith(("Sources/EventSources/", "Sources/Supervisor/")):
            asked.update(re.findall(r"\b(?:backgroundModes|modes)\.contains\(\.(\w+)\)", text(path)))
    rows = {word: line for line in text("docs/events.md").splitlines() if line.startswith("| `")
            for word in re.findall("^\\| `([^`]+)`", line)}
    for case, word in modes.items():
        if (case in asked) == (case in idle):
            said = "does something" if case in asked else "does nothing"
            yield Finding(f"the mode .{case} {said}: correct isBuilt", MODES)
        if (case in idle) != ("nothing yet" in rows.get(word, "")):
            yield Finding(f"the row of {word} must say “nothing yet” as long as the mode does nothing, and only then", "docs/events.md")
