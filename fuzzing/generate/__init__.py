"""Case generators: from documentation, from relations between APIs, from constraints."""
