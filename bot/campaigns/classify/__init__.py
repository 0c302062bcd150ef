"""What outcomes amount to: classifications, resource failures, and the bug of each finding."""
