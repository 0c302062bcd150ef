"""Runs confined: `python -I -S source_digest_script.py` digests Python files as the compiler reads them.

stdin is, for each file, its length in decimal, a newline and its bytes. stdout is a line for each: the
SHA-256 of its syntax tree without positions, so that layout and comments do not count, or of its bytes if it
is not Python.
"""

from __future__ import annotations

import ast
import hashlib
import sys


def main() -> None:
    """Reads files until the end of stdin."""
    stdin = sys.stdin.buffer
    while length := stdin.readline():
        content = stdin.read(int(length))
        try:
            content = ast.dump(ast.parse(content)).encode("utf-8", "surrogatepass")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            content = b"not Python:" + content
        sys.stdout.write(hashlib.sha256(content).hexdigest() + "\n")


if __name__ == "__main__":
    main()
