"""Texts that a compiler's message or a foreign file may hold to make a reader slow: one unit, repeated."""

from __future__ import annotations

UNITS = (
    *(
        "a\n",
        " ",
        "a.",
        "(",
        "(1,",
        "/a",
        "a/",
        "a_",
        "1",
        "-",
        "1-",
        "a::",
        "'",
        "[1",
        "{",
        "\n \n",
        "1e",
        "0x",
    ),
    *("a_1", ".1", "_", "A", "-A", "\r", "a\\", "=1", "`", "aA", "\x1b[0", "\x1b]", "AAAA\n", "eyJ", "://a:"),
    *("Check '", "expected: a, ", "node ", "-- \n", "opset1::", "_test", "a.c:1 ", "Summary:\n", "name: "),
    *("::<lambda(", " [with ", '  File "', "Assertion '", '  Binary file "/', "Current thread a:\n"),
    *(
        "-----BEGIN A KEY",
        "-----END A KEY",
        "aaaaaaaaa.",
        "authorization ",
        "/home/",
        "C:\\Users\\",
        "file://",
    ),
    *("While validating ONNX node '<", "While validating node 'x' with friendly_name '", "input (", "NAME, "),
    "terminate called after throwing an instance of '",
    "This is an invalid model. In Node, ",
    "Non-zero status code returned while running a node. Name:'",
)


def repeat(unit: str, length: int) -> str:
    """A text of `length` characters that is made of `unit`, and a last character that fits nothing."""
    return (unit * length)[: length - 1] + "!"
