"""The plans that ship, as YAML files."""
