"""What a commit touches: turns a diff of a compiler's repository into weighted operators, passes and
frontends.

diff            the change as the bot writes it, read with limits
areas           what a path means: which frontend, converter, kernel or pass (`compilers`: one file each)
symbols         definitions, uses and registrations; from python_outline and cpp_outline
evidence        one changed file → hints
operator_names  one name for one operator, whatever its spelling
touched         hints matched with the operators that have cases
history         past results of cases, and the expectations from them
"""

from fuzzing.prioritize.change.diff import Change, FileChange, Hunk, read
from fuzzing.prioritize.change.touched import TouchedOperators, find_touched_operators, spelled_operators

__all__ = [
    "Change",
    "FileChange",
    "Hunk",
    "TouchedOperators",
    "find_touched_operators",
    "read",
    "spelled_operators",
]
