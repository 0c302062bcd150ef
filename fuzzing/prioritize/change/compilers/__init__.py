"""One file for each compiler: its areas. A new compiler is a new file here, and nothing else."""
