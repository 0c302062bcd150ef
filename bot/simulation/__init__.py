"""How many runners a workload needs: a simulation of the queue of campaigns."""
