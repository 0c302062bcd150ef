"""Case prioritization: operator instances, strategies that rank them, and metrics of an order."""
