"""Fills the caches of torch's decompositions when it is imported, as a fork server does before it forks.

No program runs for it. Of the 0.4 s in which a forked worker exports and decomposes its first program the
tables take 0.1 (torch 2.13).
"""

from fuzzing.backends.shared.torch_decompositions import fill_caches

fill_caches()
