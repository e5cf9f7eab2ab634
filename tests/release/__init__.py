"""What is done before a release: `make bare`, `make compat`, `make audit`."""
