"""Errors of arguments that are no longer taken."""


def keyword(call: str, name: str) -> str:
    """Return what a refused argument prints, as a regular expression."""
    return rf"{call}.*unexpected keyword argument '{name}'"
