"""What a commit touches: a diff of a compiler's repository becomes weighted operators, passes and frontends.

model       the change as the bot writes it, read with limits
areas       what a path says: which frontend, converter, kernel or pass (`compilers`: one file each)
symbols     definitions, who uses whom, registrations; made by python_code and cpp_code
evidence    one changed file → marks
names       one name for one operator, however it is spelled
touched     marks met with the operators that there are cases for
history     what cases did before, and what that lets one expect
"""

from fuzzing.prioritize.change.diff import Change, FileChange, Hunk, read
from fuzzing.prioritize.change.touched import TouchedOperators, find_touched_operators

__all__ = ["Change", "FileChange", "Hunk", "TouchedOperators", "find_touched_operators", "read"]
