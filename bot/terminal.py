"""Text for terminals.

What commands print may come from compilers, commits and issues. On a terminal, its control characters could
move the cursor, change the title or retype commands, so they are replaced.
"""

from __future__ import annotations

import re
import sys

import click

#: Control characters but tab and line feed (Unicode's category Cc), and those that reorder text
#: (CVE-2021-42574).
_CONTROLS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


def replace_controls(text: str) -> str:
    """`text` with U+FFFD for each character that a terminal would obey, and plain line ends."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints a text as it is, or on a terminal without control characters."""
    stream = sys.stderr if err else sys.stdout
    click.echo(replace_controls(text) if stream.isatty() else text, err=err, nl=nl)
