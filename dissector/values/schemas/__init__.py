"""Known schemas, and their sources: folders, dumps of a registry, and a registry's own topic."""
