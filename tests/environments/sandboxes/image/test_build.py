"""The image: built once for each recipe, with the ML stack and without answers."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import ImageNotFound, NotFound

from langgraft._core.errors import InputError, SandboxUnavailableError
from langgraft.environments.sandboxes import image
from langgraft.environments.sandboxes.image.build import RECIPE_LABEL, SHIPPED, _split, build_image
from langgraft.environments.sandboxes.image.packages import (
    PACKAGES_LABEL,
    read_label,
    shipped_packages,
)

STACK = "numpy pandas sklearn scipy lightgbm xgboost PIL matplotlib tqdm"
LOADERS = "load_digits load_iris load_wine load_diabetes load_breast_cancer load_linnerud"


class FakeImage:
    """An image as docker-py shows it."""

    def __init__(
        self, identity: str, names: dict[str, "FakeImage"], labels: dict[str, str] | None = None
    ) -> None:
        self.id = identity
        self.labels = labels or {}
        self._names = names

    def tag(self, repository: str, tag: str) -> None:
        """Name it."""
        self._names[f"{repository}:{tag}"] = self


class FakeEngine:
    """An engine whose builder answers with messages of ours, and keeps what it is sent."""

    def __init__(self, messages: list[dict[str, Any]] | None = None) -> None:
        self.names: dict[str, FakeImage] = {}
        self.names["base:1"] = FakeImage("sha256:base", self.names)
        self.builds: list[dict[str, Any]] = []
        self.messages = messages or [{"stream": "Step 1/1 : FROM base\n"}]
        self.images = self.api = self.containers = self
        self.printed = b'{"named": ["torch", "numpy"], "needed": ["numpy"]}'

    def get(self, name: str) -> FakeImage:
        """Find an image."""
        if name not in self.names:
            raise ImageNotFound(name)
        return self.names[name]

    def pull(self, name: str) -> None:
        """Have no registry."""
        raise NotFound("no such host")

    def build(self, **options: Any) -> Iterator[dict[str, Any]]:
        """Build what is sent."""
        files: dict[str, bytes] = {}
        with tarfile.open(fileobj=io.BytesIO(options["fileobj"].read())) as context:
            for each in context:
                content = context.extractfile(each)
                files[each.name] = content.read() if content else b""
        self.builds.append({**options, "files": files})
        identity = f"sha256:built-{len(self.builds)}"
        self.names[options["tag"]] = FakeImage(identity, self.names, options["labels"])
        return iter(self.messages)

    def run(self, image: str, command: list[str], **options: Any) -> bytes:
        """Print what a program prints."""
        assert options["network_mode"] == "none"
        return self.printed


def build(engine: FakeEngine, **options: Any) -> Any:
    """Build on the fake engine's base."""
    client: Any = engine
    return build_image(client, **{"base": "base:1", **options})


def test_image_when_its_recipe_is_unchanged_is_not_built_again() -> None:
    """The same Dockerfile, requirements and base are one image, under any tag."""
    engine = FakeEngine()
    first, second = build(engine), build(engine, tag="mine:2")
    assert (first.made, second.made) == (True, False)
    assert first.id == second.id == engine.names["mine:2"].id
    assert len(engine.builds) == 2  # the image, and its label


def test_image_when_built_says_on_a_label_which_packages_it_has() -> None:
    """What a base brought is told as well: the image that was built is asked, not the recipe."""
    engine = FakeEngine()
    made = build(engine)
    image = engine.names["langgraft-sandbox:latest"]
    assert image.id == made.id
    assert read_label(image.labels[PACKAGES_LABEL]) == ("numpy", "torch")
    assert image.labels[RECIPE_LABEL]
    del image.labels[PACKAGES_LABEL]  # as an earlier version left it
    build(engine)
    assert PACKAGES_LABEL in engine.names["langgraft-sandbox:latest"].labels


def test_image_when_it_does_not_say_what_it_has_is_named() -> None:
    """An image whose Python prints something else is not taken for one without packages."""
    engine = FakeEngine()
    engine.printed = b"hello"
    with pytest.raises(SandboxUnavailableError, match="which packages"):
        build(engine)


def test_image_when_requirements_or_base_differ_is_another_one(tmp_path: Path) -> None:
    """What decides the image decides its tag."""
    engine = FakeEngine()
    own = tmp_path / "own.txt"
    own.write_text("numpy\n")
    build(engine)
    assert build(engine, requirements=own).made
    assert engine.builds[-2]["files"]["requirements.txt"] == b"numpy\n"
    engine.names["base:1"].id = "sha256:another"
    assert build(engine).made


@pytest.mark.parametrize("name", SHIPPED)
def test_image_when_a_list_of_ours_is_named_then_it_is_installed(name: str) -> None:
    """By its name, wherever the command is given; each package stands once, to the version."""
    engine = FakeEngine()
    build(engine, requirements=Path(name))
    listed = engine.builds[0]["files"]["requirements.txt"].decode().splitlines()
    packages = [line.partition("==")[0] for line in listed if line and not line.startswith("#")]
    assert {"torch", "torchvision", "transformers", "timm", "librosa", "xgboost"} <= set(packages)
    assert len(set(packages)) == len(packages)
    assert all("==" in line for line in listed if line and not line.startswith("#"))


def test_image_when_a_list_cannot_be_read_then_ours_are_named(tmp_path: Path) -> None:
    """A name that is nearly right is soon put right."""
    with pytest.raises(InputError, match="of our own there are mle, mle-newer"):
        build(FakeEngine(), requirements=tmp_path / "mel")


def test_build_when_a_step_fails_says_what_was_printed_before() -> None:
    """The error has the builder's words in one line."""
    engine = FakeEngine([{"stream": "ERROR: no such package\n"}, {"error": "returned 1"}])
    with pytest.raises(SandboxUnavailableError, match=r"returned 1.*no such package"):
        build(engine)


def test_build_when_the_base_cannot_be_pulled_says_how_to_have_one() -> None:
    """A machine without a registry is told what to do."""
    with pytest.raises(SandboxUnavailableError, match=r"no such host.*make base-image"):
        build(FakeEngine(), base="python:3.11-slim")


def test_build_when_requirements_are_missing_names_the_file(tmp_path: Path) -> None:
    """Nothing is built from a list that cannot be read."""
    engine = FakeEngine()
    with pytest.raises(InputError, match=r"none\.txt"):
        build(engine, requirements=tmp_path / "none.txt")
    assert not engine.builds


@pytest.mark.parametrize("tag", ["BAD:TAG:x", "Upper", "", "a b", "-a", "a:", "a/", "ä"])
def test_build_when_the_tag_is_none_then_that_is_said_before_anything_is_built(tag: str) -> None:
    """Nobody waits for a build to learn that its name was mistyped."""
    engine = FakeEngine()
    with pytest.raises(InputError, match="names no image"):
        build(engine, tag=tag)
    assert not engine.builds


@pytest.mark.parametrize("tag", ["a", "a/b:1.0", "Host:5000/team/a-b_c:V1", "localhost/a"])
def test_build_when_the_tag_is_one_then_the_image_gets_it(tag: str) -> None:
    """Registries, ports and versions are parts of names."""
    engine = FakeEngine()
    assert build(engine, tag=tag).id == engine.names[":".join(_split(tag))].id


@pytest.mark.parametrize(
    ("tag", "parts"),
    [
        ("name", ("name", "latest")),
        ("name:2", ("name", "2")),
        ("host:5000/name", ("host:5000/name", "latest")),
        ("host:5000/name:2", ("host:5000/name", "2")),
    ],
)
def test_tag_when_split_keeps_the_port_of_a_registry(tag: str, parts: tuple[str, str]) -> None:
    """A colon before the last slash begins a port."""
    assert _split(tag) == parts


def test_requirements_when_listed_are_pinned_and_hold_no_sources_of_competitions() -> None:
    """A result is cached by its image, and answers are not for programs to import."""
    text = (Path(image.__path__[0]) / "requirements.txt").read_text()
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(pin.count("==") == 1 for pin in pins)
    names = {pin.partition("==")[0] for pin in pins}
    assert not names & {"statsmodels", "scikit-image", "vega-datasets", "wordfreq", "seaborn"}


def test_image_when_used_has_the_stack_and_none_of_its_data(docker_image: str) -> None:
    """Everything can be imported without a network, and no data set can be loaded."""
    program = f"""
import importlib
for name in {STACK.split()}:
    importlib.import_module(name)
from sklearn import datasets
datasets.make_classification()
for name in {LOADERS.split()}:
    try:
        getattr(datasets, name)()
        print(name)
    except FileNotFoundError:
        pass
assert not datasets.load_sample_images().images
print("done")
"""
    client = docker.from_env()
    try:
        told = client.containers.run(
            docker_image,
            ["python3", "-c", program],
            network_mode="none",
            read_only=True,
            tmpfs={"/tmp": ""},
            remove=True,
        )
        labels = client.images.get(docker_image).labels
        assert labels[RECIPE_LABEL]
        assert read_label(labels[PACKAGES_LABEL]) == shipped_packages()
    finally:
        client.close()
    assert told == b"done\n"
