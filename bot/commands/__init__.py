"""Commands: `/assay …` in comments on issues and pull requests."""
