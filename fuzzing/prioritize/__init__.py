"""Which cases to run first: operator instances, strategies that rank them, and how good an order was."""
