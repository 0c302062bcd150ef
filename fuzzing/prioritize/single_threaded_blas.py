"""Keeps numpy's matrix products in one thread; must be imported before numpy.

The matrices of a ranking are small. OpenBLAS would distribute each over all processors, whose threads then
wait for one another: 100,000 instances would take a third longer, and more than twice the processor time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
