"""What `langgraft sandbox` does: build the image, attack the sandbox, and clear up after it."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraft._core.canonical import JSON
from langgraft.cli.printing import say, show_table, write_json
from langgraft.environments.sandboxes.docker.engine import IMAGE, connect, image_id, unenforceable
from langgraft.environments.sandboxes.hostile.battery import Outcome, battery_on
from langgraft.environments.sandboxes.image.build import build_image

if TYPE_CHECKING:
    from docker import DockerClient

from langgraft.environments.sandboxes.docker.engine import remove_all, remove_orphans
from langgraft.environments.sandboxes.image.build import remove_images


def build(base: str, tag: str, requirements: Path | None) -> None:
    """Build the image, telling of each step.

    Raises:
        InputError: The requirements cannot be read.
        SandboxUnavailableError: No engine answers, the base cannot be had, or a step fails.
    """
    with closing(connect()) as client:
        built = build_image(client, base=base, tag=tag or IMAGE, requirements=requirements, say=say)
    how = "built" if built.made else "there already"
    say(f"{built.tag}: {how}, on {built.base} ({built.id.removeprefix('sha256:')[:12]})")


def check(image: str, *, as_json: bool) -> bool:
    """Attack the sandbox, and show what was contained; return whether all was.

    Raises:
        SandboxUnavailableError: No engine or image, or it cannot hold the limits.
    """
    image = image or IMAGE
    with closing(connect()) as client:
        facts = engine_facts(client)
        if not as_json:
            for name, value in facts.items():
                say(f"{name}: {value}")
        image_id(client.api, image)  # said before anything is made
        with battery_on(client, image) as battery:
            if not as_json:
                say(f"{len(battery.attacks)} attacks on {image}; this takes about a minute")
            outcomes = battery.run()
    contained = all(outcome.contained for outcome in outcomes)
    if as_json:
        told: list[JSON] = [_told(outcome) for outcome in outcomes]
        write_json({"image": image, "engine": dict(facts), "contained": contained, "attacks": told})
    else:
        _show(outcomes)
    return contained


def engine_facts(client: "DockerClient") -> Mapping[str, str]:
    """Return what decides how well an engine isolates."""
    info: dict[str, Any] = client.info()
    options = [str(option).removeprefix("name=") for option in info.get("SecurityOptions") or ()]
    missing = unenforceable(info)
    return {
        "engine": f"{info.get('ServerVersion')} ({info.get('DefaultRuntime')})",
        "system": f"{info.get('OperatingSystem')}, {info.get('KernelVersion')}"
        f" {info.get('Architecture')}",
        "cgroups": f"version {info.get('CgroupVersion', '1')}, {info.get('CgroupDriver')}",
        "storage": str(info.get("Driver")),
        "security": "; ".join(options) or "none",
        "limits it cannot hold": "; ".join(missing) or "none",
    }


def _told(outcome: Outcome) -> JSON:
    return {
        "name": outcome.attack.name,
        "tries": outcome.attack.tries,
        "ended": outcome.ended,
        "contained": outcome.contained,
        "problems": list(outcome.problems),
        "seconds": round(outcome.seconds, 3),
    }


def _show(outcomes: list[Outcome]) -> None:
    rows = [
        (each.attack.name, each.attack.tries, each.ended, "yes" if each.contained else "NO")
        for each in outcomes
    ]
    contained = sum(outcome.contained for outcome in outcomes)
    show_table("Attacks", ("attack", "tries to", "ended as", "contained"), rows)
    for outcome in outcomes:
        for problem in outcome.problems:
            say(f"NOT contained, {outcome.attack.name}: {problem}")
    say(f"{contained} of {len(outcomes)} attacks were contained")


def clean(*, everything: bool, images: bool) -> None:
    """Remove containers, and images where that is asked for.

    Raises:
        SandboxUnavailableError: No engine answers.
    """
    with closing(connect()) as client:
        removed = remove_all(client) if everything else remove_orphans(client)
        say(f"{len(removed)} containers removed")
        if images:
            gone = remove_images(client)
            say(f"{len(gone)} images removed{': ' if gone else ''}{', '.join(gone)}")
