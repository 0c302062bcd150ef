"""An index of a compiler's releases that is a folder, so that bisections need no network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.support.wheels import make_wheel

BACKEND = str(Path(__file__).parent / "tiny_backend.py")

GOOD = "def add(x, y):\n    return x + y\n"
WRONG = "def add(x, y):\n    return x - y\n"
RAISES = "def add(x, y):\n    raise RuntimeError('adder is broken')\n"
LACKS = "def add(x, y):\n    raise RuntimeError('tinyc has no Add')\n"
NO_IMPORT = "raise ImportError('libadd.so: cannot open shared object file')\n"

# Toolchains hold what the worker needs: a numpy that hands on to the one which the tests have.
_NUMPY = f"""import sys
sys.path.insert(0, {str(Path(np.__file__).parents[1])!r})
del sys.modules["numpy"]
import numpy
"""


def make_index(folder: Path, releases: Mapping[str, str]) -> dict[str, str]:
    """Makes the releases, version → source, and returns the environment in which they are all there is."""
    wheels = folder / "index"
    wheels.mkdir()
    make_wheel(wheels, "numpy", "2.0", code=_NUMPY)
    for version, code in releases.items():
        make_wheel(wheels, "tinyc", version, code=code)
    return {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheels), "UV_CACHE_DIR": str(folder / "uv-cache")}
