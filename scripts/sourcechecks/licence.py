# SPDX-License-Identifier: Apache-2.0
"""The line of each source that names its licence, as SPDX has it."""

import os
import re

from .tree import ROOT, files, text

LINE = "SPDX-License-Identifier: Apache-2.0"
# The start and the end of a one-line comment, by file extension.
COMMENTS = {
    ".swift": ("// ", ""), ".c": ("// ", ""), ".cpp": ("// ", ""), ".cc": ("// ", ""), ".h": ("/* ", " */"),
    ".js": ("// ", ""), ".css": ("/* ", " */"), ".py": ("# ", ""), ".sh": ("# ", ""),
}  # fmt: skip
# Inputs of tests, which must not change, and generated files.
EXCEPTED = ("Fuzz/Corpora/", "Fuzz/Regressions/", "packaging/completions/torpor.")


def comment(name: str) -> tuple[str, str] | None:
    """The comment syntax of a file that must have the line; None if it need not."""
    if name.startswith(EXCEPTED) or not (content := text(name)):
        return None
    if os.path.basename(name) == "Makefile" or re.match(r"#!.*\b(ba|da)?sh\b|#!.*\bpython", content):
        return "# ", ""
    return COMMENTS.get(os.path.splitext(name)[1])


def lacking() -> list[str]:
    return [name for name in files() if comment(name) and LINE not in "\n".join(text(name).splitlines()[:3])]


def write(name: str) -> None:
    """Puts the line first, but after a #! line or the tools version of a SwiftPM manifest."""
    begin, end = comment(name) or ("", "")
    content = text(name)
    first = re.match(r"(#!.*|// swift-tools-version.*)\n", content)
    head, rest = (first[0], content[first.end() :]) if first else ("", content)
    # Keep the line apart from a comment on what follows.
    gap = "" if begin == "# " or rest.startswith("\n") else "\n"
    (ROOT / name).write_text(f"{head}{begin}{LINE}{end}\n{gap}{rest}")
