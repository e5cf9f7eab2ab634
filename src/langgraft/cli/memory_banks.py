"""From what a user typed to a bank, a file or one in a store, and to the choices of an import."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from langgraph.store.base import BaseStore

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON
from langgraft._core.effects import drive
from langgraft._core.errors import InputError
from langgraft._core.untrusted import load_yaml, read_most
from langgraft.benchmarks.harness.plans import look_here
from langgraft.memory.bank import RECORDS, bank_namespace, read_content, records_namespace
from langgraft.memory.bundle import Bundle, Manifest, read_bank_file
from langgraft.memory.importing import METADATA, ImportChoices
from langgraft.memory.model import BankContent, MemoryItem, Scalar
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider, provider_settings
from langgraft.memory.stores.named import open_store, shown, store_kind
from langgraft.memory.stores.programs import Namespace
from langgraft.memory.stores.sqlite import sqlite_path

_DATABASE: Final = "chroma.sqlite3"
"""The file that makes a folder a Chroma database."""
_FIELDS: Final = {"domain": "source_domain"}
"""Short names of fields."""
_MOST_BANKS: Final = 10
"""That are named where a bank is looked for."""
_FILES: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a bank is, as it was typed."""

    file: Path | None = None
    store: str | None = None
    provider: str | None = None
    settings: str = ""
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Bank:
    """A bank that was read."""

    name: str
    content: BankContent
    architecture: Mapping[str, JSON] = field(default_factory=dict)
    manifest: Manifest | None = None
    others: tuple[str, ...] = ()
    """Where it is empty: the banks that its store holds."""

    @property
    def items(self) -> list[MemoryItem]:
        """The items in their order."""
        return sorted(self.content.items.values(), key=lambda item: (item.order_index, item.id))


def read(address: Address) -> Bank:
    """Read a bank.

    Raises:
        InputError: There is no such bank, or it is not told which.
    """
    if address.file is None:
        return _read_store(address)
    if address.store or address.provider or address.settings or address.namespace:
        msg = f"{address.file}: a bank is a file or lies in a store; give one of the two"
        raise InputError(msg)
    return read_file(address.file)


def read_file(path: Path) -> Bank:
    """Read a bundle or bare content.

    Raises:
        BankFormatError: The file is neither, or damaged.
    """
    found = read_bank_file(path)
    if not isinstance(found, Bundle):
        return Bank(str(path), of_items(found))
    content = of_items(found.items)
    content.notes = {identity: dict(notes) for identity, notes in found.notes.items()}
    return Bank(str(path), content, found.manifest.architecture, found.manifest)


def of_items(items: tuple[MemoryItem, ...] | list[MemoryItem]) -> BankContent:
    """Return the content of a bank that holds items and nothing else."""
    return BankContent(items={item.id: item for item in items})


@contextmanager
def provider_at(address: Address, *, dry_run: bool) -> Iterator[MemoryProvider[Any]]:
    """Open the provider of a bank in a store, which may be a new one.

    Raises:
        InputError: It is not told which, or something of it is not possible; nothing was made.
    """
    if not dry_run and address.store is not None and store_kind(address.store) == "memory":
        msg = "an import into the store 'memory' is gone when the command ends: name another store"
        raise InputError(msg)
    with _provider(address, dry_run=dry_run) as memory:
        yield memory


@contextmanager
def kept_provider(address: Address) -> Iterator[MemoryProvider[Any]]:
    """Open the provider of a bank that is there, to change it.

    Raises:
        InputError: It is not told which, or there is no such store.
    """
    if address.store is not None:
        _check_kept(address.store)
    with _provider(address, dry_run=False) as memory:
        yield memory


@contextmanager
def _provider(address: Address, *, dry_run: bool) -> Iterator[MemoryProvider[Any]]:
    store, name = address.store, address.provider
    if store is None or name is None:
        msg = "this changes a provider's bank in a store: give --store and --provider"
        raise InputError(msg)
    look_here()
    settings = mapping("--settings", address.settings)
    provider_settings(name, settings)
    namespace = _namespace(address)
    # A new folder would be a trace, and holds nothing that a preview could depend on.
    spec = "memory" if dry_run and _is_missing(store) else store
    with open_store(spec) as opened:
        yield make_provider(name, opened, settings=settings, namespace=namespace)


def _read_store(address: Address) -> Bank:
    spec = address.store
    if spec is None:
        msg = "which bank? Give a file, or --store and --provider or --namespace"
        raise InputError(msg)
    _check_kept(spec)
    namespace = _namespace(address)
    if address.provider is None and namespace is None:
        msg = f"store {shown(spec)} may hold many banks: give --provider or --namespace"
        raise InputError(msg)
    settings = mapping("--settings", address.settings)
    if address.provider is not None:
        look_here()
        provider_settings(address.provider, settings)
    with open_store(spec) as store:
        return _read_bank(store, shown(spec), address.provider, settings, namespace)


def _read_bank(
    store: BaseStore,
    name: str,
    provider: str | None,
    settings: Mapping[str, Any],
    namespace: Namespace | None,
) -> Bank:
    if provider is None:
        assert namespace is not None
        exact, architecture = records_namespace(namespace), {}
    else:
        memory = make_provider(provider, store, settings=settings, namespace=namespace)
        exact, architecture = memory.namespace, memory.describe()
    content = drive(read_content(exact), store)
    others = () if content.items else _banks_in(store)
    name = f"{name} {'/'.join(bank_namespace(exact))}"
    return Bank(name, content, architecture, others=others)


def _banks_in(store: BaseStore) -> tuple[str, ...]:
    """List the banks of a store, as `--namespace` names them: those of users, too."""
    found = store.list_namespaces(prefix=(RECORDS,), suffix=(RECORDS,), limit=_MOST_BANKS + 1)
    return tuple("/".join(bank_namespace(tuple(each))) for each in found)


def told_banks(banks: Sequence[str]) -> str:
    """Say which banks a store holds; nothing where it holds none."""
    if not banks:
        return ""
    more = " and more" if len(banks) > _MOST_BANKS else ""
    return f"it holds --namespace {', '.join(banks[:_MOST_BANKS])}{more}"


def _namespace(address: Address) -> Namespace | None:
    if address.namespace is None:
        return None
    namespace = tuple(address.namespace.split("/"))
    records_namespace(namespace)  # before a store is opened
    return namespace


def _check_kept(spec: str) -> None:
    if store_kind(spec) == "memory":
        msg = "the store 'memory' is empty whenever a command begins: name another store, or a file"
        raise InputError(msg)
    if _is_missing(spec):
        what = "folder, or no Chroma database in it" if store_kind(spec) == "chroma" else "file"
        msg = f"there is no store {spec!r}: no such {what}"
        raise InputError(msg)


def _is_missing(spec: str) -> bool:
    """Say whether opening a store would make it."""
    path = spec.partition(":")[2]
    match store_kind(spec):
        case "chroma":
            return not (Path(path).expanduser() / _DATABASE).exists()
        case "sqlite":
            return not sqlite_path(path).exists()
    return False


def mapping(option: str, text: str) -> dict[str, Any]:
    """Read YAML or JSON, typed as it is or in a file, that must be a mapping.

    Raises:
        InputError: It is something else.
    """
    if not text:
        return {}
    try:
        # What looks like a file and is none would be refused as no mapping: say the better thing.
        value = load_yaml(read_most(Path(text)).decode() if text.endswith(_FILES) else text)
    except OSError as error:
        msg = f"{option}: {text!r} cannot be read: {error.strerror}"
        raise InputError(msg) from error
    except ValueError as error:
        msg = f"{option}: neither YAML nor JSON: {error}"
        raise InputError(msg) from error
    if not isinstance(value, dict):
        msg = f"{option} takes a mapping such as '{{name: value}}', got {value!r:.80}"
        raise InputError(msg)
    return value


def import_choices(
    where: Iterable[str], remap: Iterable[str], on_conflict: str, source: str | None = None
) -> ImportChoices:
    """Read the choices of an import.

    Raises:
        InputError: One of them is not possible; one line says which.
    """
    given = {
        "where": _where(where),
        "remap": _remap(remap),
        "on_conflict": on_conflict,
        "source": source,
    }
    with validation_as(InputError):
        return ImportChoices.model_validate(given)


def _where(texts: Iterable[str]) -> dict[str, tuple[Scalar, ...]]:
    filters: dict[str, tuple[Scalar, ...]] = {}
    for text in texts:
        name, found, value = text.partition("=")
        if not found:
            msg = f"--where takes FIELD=VALUE, got {text!r:.80}"
            raise InputError(msg)
        field = _FIELDS.get(name, name)
        filters[field] = (*filters.get(field, ()), *_readings(field, value))
    return filters


def _readings(field: str, text: str) -> tuple[Scalar, ...]:
    """Say which values a typed one may mean: in metadata, `1` may be a number or a text."""
    if field == "success":
        if text not in ("true", "false"):
            msg = f"--where success is true or false, got {text!r:.80}"
            raise InputError(msg)
        return (text == "true",)
    if not field.startswith(METADATA):
        return (text,)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return (text,)
    match value:
        case bool():
            return text, value
        case int() | float() if abs(value) <= sys.float_info.max:
            whole = (int(value),) if value == value // 1 else ()
            return (text, float(value), *whole)
        case _:
            return (text,)


def _remap(texts: Iterable[str]) -> dict[str, str | dict[str, str]]:
    everything: dict[str, str | dict[str, str]] = {}
    for text in texts:
        left, found, new = text.partition("=")
        name, some, old = left.partition(":")
        field = _FIELDS.get(name, name)
        earlier = everything.get(field, {})
        if not found or isinstance(earlier, str) or (earlier and not some):
            msg = f"--remap takes FIELD=NEW once, or FIELD:OLD=NEW for each OLD, got {text!r:.80}"
            raise InputError(msg)
        everything[field] = {**earlier, old: new} if some else new
    return everything
