"""Planning: sources of cases, their catalogs and collection, ranking, and the plan of a campaign."""
