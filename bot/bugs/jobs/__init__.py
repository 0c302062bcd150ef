"""Jobs about bugs: retests, bisection, reduction, localization, filing."""
