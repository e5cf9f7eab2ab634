"""Stores in a PostgreSQL server for tests, which do not see each other."""

import os
import secrets
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
from langgraph.store.postgres import PostgresStore
from psycopg.conninfo import make_conninfo

from langgraft.benchmarks.acceptance.postgres import (
    GIVEN,
    HOW_TO_GET_IT,
    available,
    binaries,
    running_server,
)

__all__ = ["HOW_TO_GET_IT", "Schemas", "available", "has_vectors", "running_server"]


class Schemas:
    """Makes stores in one server, each in a schema of its own, and drops them in the end."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._names: list[str] = []
        self._open = ExitStack()

    def new(self) -> str:
        """Return what connects to a new, empty schema."""
        name = f"test_{secrets.token_hex(6)}"
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        self._names.append(name)
        return make_conninfo(self.uri, options=f"-csearch_path={name},public")

    def store(self, conninfo: str | None = None, **options: Any) -> PostgresStore:
        """Open a store in a schema: a new one, unless one is given."""
        store = self._open.enter_context(
            PostgresStore.from_conn_string(conninfo or self.new(), **options)
        )
        store.setup()
        return store

    def close(self) -> None:
        """Close the stores and drop their schemas."""
        self._open.close()
        with psycopg.connect(self.uri, autocommit=True) as connection:
            for name in self._names:
                connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def has_vectors() -> bool:
    """Say whether the server can store vectors (the extension pgvector); starts none."""
    if given := os.environ.get(GIVEN):
        with psycopg.connect(given) as connection:
            asked = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
            return connection.execute(asked).fetchone() is not None
    programs = binaries()
    if programs is None or not (programs / "pg_config").exists():
        return False
    command = [str(programs / "pg_config"), "--sharedir"]
    shared = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return (Path(shared) / "extension" / "vector.control").exists()
