"""Imported before numpy: its matrix products stay in one thread.

The matrices of a ranking are small. OpenBLAS would hand each to all processors, whose threads then wait for
one another: 100,000 instances take a third longer so, and more than twice the processor time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
