"""What a plan promises its agents, held against the machine before a model is paid.

`hold` is short, and part of every run: packages that the plan names, graphics processors, the disk.
`checks` is for `langgraft preview --check`: it also imports what agents are told of, unpacks and verifies
data, sends every sample submission the way that an agent's goes, and counts tokens, money and disk.
"""

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from langgraft._core.errors import CompetitionError, LanggraftError, SandboxUnavailableError
from langgraft.benchmarks.harness.budget import in_dollars, price_of
from langgraft.benchmarks.harness.study import SIMULATED, Checked, RunSpec
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.settings import (
    AgentSettings,
    ChainSettings,
    StepSettings,
    TreeSettings,
)
from langgraft.benchmarks.mle.plan import MlePlan, agent_of, competition_of, memory_of
from langgraft.benchmarks.mle.sandboxes import make_sandbox, packages_of, weights_of
from langgraft.environments.competitions.attempts import INPUT, attempt
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.sandboxes.docker import engine
from langgraft.environments.sandboxes.result_text import size_text
from langgraft.environments.sandboxes.sandbox import Job, PythonProgram

_PROBE: Final = """\
import ctypes, importlib.metadata, importlib.util, json, os, re, subprocess, sys

def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()

found = {}
for each in importlib.metadata.distributions():
    files = [str(path) for path in each.files or ()]
    tops = {path.split("/")[0].split(".")[0] for path in files if path.endswith((".py", ".so"))}
    modules = sorted(top for top in tops if top.isidentifier() and not top.startswith("_"))
    found[plain(str(each.metadata["Name"]))] = (str(each.version), modules)

def looked_up(name):
    version, modules = found.get(plain(name), (None, []))
    own = plain(name).replace("-", "_")
    if own in modules or not modules:
        modules = [own]
    if version is None:
        try:
            there = importlib.util.find_spec(own) is not None
        except (ImportError, ValueError):
            there = False
        if not there:
            return {"there": False}
        version = next((v for v, tops in found.values() if own in tops), "")
    return {"there": True, "version": version, "module": modules[0]}

def processors():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value

def run(code):
    try:
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "took more than 300 s"
    said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if ended.returncode == 0 else (said[-1] if said else f"exit code {ended.returncode}")

names, importing = json.loads(sys.argv[1])
disk = os.statvfs(".")
report = {"packages": {name: looked_up(name) for name in names}, "gpus": processors()}
report["left"] = disk.f_bavail * disk.f_frsize
if importing:
    for told in report["packages"].values():
        if told["there"]:
            told["failed"] = run("import " + told["module"])
    if "torch" in found and report["gpus"]:
        report["torch"] = run("import torch; assert torch.cuda.is_available(), 'it sees no GPU'")
print(json.dumps(report))
"""
"""Tells which of the named packages are there, and import; and how many GPUs the driver shows."""
_PROBE_SECONDS: Final = 1800.0
_VERSION: Final = re.compile(r"[=~>]*\s*v?(\d[\w.+]*)\s*\Z")
_SHOWN: Final = 8
"""Names in a line."""
_COPY: Final = "import shutil, sys; shutil.copyfile(sys.argv[1], 'submission.csv')"


def tried(what: str, find: Callable[[], str]) -> Checked:
    """Return what was found, or in a line why it was not."""
    try:
        return Checked(what, find())
    except LanggraftError as error:
        return Checked(what, " ".join(str(error).split()), ok=False)


def hold(plan: MlePlan) -> None:
    """Refuse a plan whose promises the sandbox does not keep; a plan that makes none costs nothing.

    Raises:
        SandboxUnavailableError: A package that the plan names is not in the image, a graphics
            processor is not there, or the disk has no room for a workspace.
        InputError: The weights are not there.
    """
    weights_of(plan)
    if plan.sandbox != "docker":
        return
    on_disk = plan.limits.workspace_on == "disk"
    if not (plan.packages or plan.gpus or plan.weights or on_disk):
        return
    report = _asked(plan, plan.packages or (), importing=False)
    if wrong := [*_lacking(plan, report), *_blind(plan, report)]:
        raise SandboxUnavailableError("; ".join(wrong))


def checks(
    plan: MlePlan,
    runs: Sequence[RunSpec],
    competitions: Sequence[Competition],
    *,
    concurrency: int,
    place: Path,
) -> Iterator[Checked]:
    """Try out what a plan's runs need.

    Args:
        plan: The plan.
        runs: Its runs.
        competitions: Those that it is run at, prepared as a run prepares them.
        concurrency: Runs under way at the same time.
        place: Folder whose disk the run directory will be on.
    """
    yield tried("weights", lambda: ", ".join(weights_of(plan)) or "none are given")
    if plan.sandbox == "docker":
        there = tried("image", lambda: _image(plan))
        yield there
        if not there.ok:
            return  # nothing else can be tried
        yield _machine(plan, concurrency)
        report: dict[str, Any] = {}
        container = tried("container", lambda: _container(plan, concurrency, report))
        yield container
        if not container.ok:
            return
        yield from _inside(plan, report)
    sample = plan.agents[0]
    for each in competitions:
        yield tried(f"sample of {each.id}", partial(_sample, plan, sample, each))
    yield _disk(plan, runs, competitions, place)
    yield from _cost(plan, runs, competitions)


# In the sandbox ----------------------------------------------------------------------------


def _asked(plan: MlePlan, packages: Sequence[str], *, importing: bool) -> Mapping[str, Any]:
    """Run the probe.

    Raises:
        SandboxUnavailableError: No container can be had as the plan wants it, or it says nothing.
    """
    names = sorted({each.split()[0] for each in packages})
    program = PythonProgram(_PROBE, "probe.py", (json.dumps([names, importing]),))
    limits = plan.limits.model_copy(update={"seconds": _PROBE_SECONDS, "output": 1_000_000})
    with make_sandbox(plan, limits, None) as sandbox:
        result = sandbox.run(Job(program))
    try:
        report: Mapping[str, Any] = json.loads(result.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        said = (result.stderr or result.stdout).strip()[-200:]
        msg = (
            f"{plan.image} could not be asked what it has: a program that looks ended with {said!r}"
        )
        raise SandboxUnavailableError(msg) from None
    return report


def _lacking(plan: MlePlan, report: Mapping[str, Any]) -> Iterator[str]:
    """Say which packages that agents are told of are not there, or not of that version."""
    packages = report["packages"]
    missing = [name for name, told in packages.items() if not told["there"]]
    if missing:
        yield (
            f"agents are told of {_some(missing)}, which the image {plan.image} does not have: build"
            " one with `langgraft sandbox build --requirements mle --tag NAME` and name it in `image`,"
            " or change `packages`"
        )
    for told in plan.packages or ():
        name, _, rest = told.partition(" ")
        asked, there = _VERSION.match(rest.strip()), packages.get(name, {})
        if asked and there.get("there") and not _is_version(there["version"], asked[1]):
            yield f"agents are told of {told}, and {plan.image} has {name} {there['version']}"


def _is_version(there: str, asked: str) -> bool:
    return there == asked or there.startswith((f"{asked}.", f"{asked}+"))


def _blind(plan: MlePlan, report: Mapping[str, Any]) -> Iterator[str]:
    """Say whether fewer graphics processors are to be seen than were asked for."""
    least = 1 if plan.gpus == "all" else plan.gpus or 0
    if report["gpus"] < least:
        yield (
            f"gpus is {plan.gpus}, and programs see {report['gpus']}: NVIDIA's driver shows them in no"
            f" container of {plan.image} (`docker run --rm --gpus all IMAGE nvidia-smi` tells more)"
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _image(plan: MlePlan) -> str:
    client = engine.connect()
    try:
        engine.check_engine(client.api)
        digest = engine.image_id(client.api, plan.image)
    finally:
        client.close()
    return f"{plan.image} ({digest.removeprefix('sha256:')[:12]})"


def _machine(plan: MlePlan, concurrency: int) -> Checked:
    """Compare limits, which agents are told, with what the engine's machine has."""
    client = engine.connect()
    try:
        info = client.info()
    finally:
        client.close()
    cpus, memory = int(info["NCPU"]), int(info["MemTotal"])
    limits = plan.limits
    there = f"{cpus} processors and {size_text(memory)} of memory"
    wrong = [f"{limits.cpus:g} processors"] if limits.cpus > cpus else []
    wrong += [f"{size_text(limits.memory)} of memory"] if limits.memory > memory else []
    if wrong:
        told = f"programs are promised {' and '.join(wrong)}, and the machine has {there}: lower `limits`"
        return Checked("machine", told, ok=False)
    once = _at_once(plan, concurrency)
    told = f"{there}; a program may use {limits.cpus:g} and {size_text(limits.memory)}"
    if limits.memory * once > memory or limits.cpus * once > cpus:
        told += f", and {once} that run at once share it: fewer `--concurrency` give each its own"
    if plan.gpus and once > 1:
        told += f"; {once} at once share graphics processors"
    return Checked("machine", told)


def _at_once(plan: MlePlan, concurrency: int) -> int:
    return concurrency * max(agent_named(each.name).at_once(each) for each in plan.agents)


def _container(plan: MlePlan, concurrency: int, report: dict[str, Any]) -> str:
    """Fill a report of what a container of the plan has, and say that it can be had.

    Raises:
        SandboxUnavailableError: It cannot, or the disk does not hold all workspaces at once.
    """
    limits = plan.limits
    with make_sandbox(plan, limits, None) as sandbox:
        report["told"] = packages_of(plan, sandbox)
    report |= _asked(plan, report["told"], importing=True)
    if limits.workspace_on == "memory":
        return f"every limit holds; a workspace of {size_text(limits.workspace)} in memory"
    once, left = _at_once(plan, concurrency), int(report["left"])
    if limits.workspace * once > left:
        msg = (
            f"workspaces on disk may take {size_text(limits.workspace)} each, {once} at once, and the"
            f" engine's disk has {size_text(left)} left: lower `workspace` of the limits, or --concurrency"
        )
        raise SandboxUnavailableError(msg)
    return (
        f"every limit holds; {once} workspaces of {size_text(limits.workspace)} at once on the engine's"
        f" disk, which has {size_text(left)} left"
    )


def _inside(plan: MlePlan, report: Mapping[str, Any]) -> Iterator[Checked]:
    """Say what was seen from inside of packages and graphics processors."""
    wrong = [*_lacking(plan, report)]
    wrong += [
        f"{name} cannot be imported ({each['failed'][:200]})"
        for name, each in report["packages"].items()
        if each.get("failed")
    ]
    good = f"all {len(report['told'])} that agents are told of can be imported"
    yield Checked("packages", "; ".join(wrong) or good, ok=not wrong)
    if plan.gpus:
        wrong = [*_blind(plan, report)]
        wrong += [f"torch in {plan.image}: {report['torch']}"] if report.get("torch") else []
        good = f"programs see {report['gpus']}"
        yield Checked("graphics processors", "; ".join(wrong) or good, ok=not wrong)


def _sample(plan: MlePlan, agent: AgentSettings, competition: Competition) -> str:
    """Submit a competition's sample as an agent would.

    Raises:
        CompetitionError: It is not collected, or not valid.
    """
    path = competition.sample_submission.relative_to(competition.public_dir).as_posix()
    program = PythonProgram(_COPY, arguments=(f"{INPUT}/{path}",))
    with make_sandbox(plan, plan.limits_of(agent), competition) as sandbox:
        made = attempt(program, competition, sandbox, seconds=600)
    if not made.submission_valid:
        reasons = "; ".join(made.reasons)
        msg = (
            f"the sample submission of {competition.id}, submitted as it is, is refused: {reasons}"
        )
        raise CompetitionError(msg)
    return f"{size_text(len(made.submission or b''))} collected, and valid"


# Disk, tokens, money -------------------------------------------------------------------------


def _disk(
    plan: MlePlan, runs: Sequence[RunSpec], competitions: Sequence[Competition], place: Path
) -> Checked:
    """Estimate what submissions take that are kept, if each is as large as the sample."""
    sizes = {each.id: each.sample_submission.stat().st_size for each in competitions}
    total = 0
    for run in runs:
        section = plan.agent(agent_of(run))
        kept = section.steps if isinstance(section, TreeSettings) else 1
        total += run.length * kept * sizes.get(competition_of(run), 0)
    free = shutil.disk_usage(place).free
    told = (
        f"submissions of all runs, as large as their samples, take about {size_text(total)};"
        f" {size_text(free)} are free here"
    )
    return Checked("disk", told, ok=total < free)


_CHARACTERS: Final = 4
"""Of a token."""
_SHOWN_TOKENS: Final = 4_000
"""Of instructions, a program and its output in a prompt of the tree and MLAB, beside the data."""
_REPLY_TOKENS: Final = 2_000
"""Of a program with its plan, or an action; what a model reasons before comes on top."""
_CONTEXT: Final = 100_000
"""Of a chain whose plan names no `context`."""


def _cost(
    plan: MlePlan, runs: Sequence[RunSpec], competitions: Sequence[Competition]
) -> Iterator[Checked]:
    """Estimate tokens, and dollars where prices are given."""
    shown = {each.id: _told_tokens(each) for each in competitions}
    for section in plan.agents:
        own = [run for run in runs if agent_of(run) == section.label]
        most = sum(
            run.length
            * agent_named(section.name).most_calls(
                section, memory=memory_of(plan, run).start != "off"
            )
            for run in own
        )
        calls = sum(run.length for run in own) * _usual_calls(section)
        prompts = sum(
            run.length * _usual_calls(section) * _prompt_tokens(section, shown[competition_of(run)])
            for run in own
            if competition_of(run) in shown
        )
        replies = calls * _REPLY_TOKENS
        told = (
            f"{calls:,} calls if nothing has to be asked again, {most:,} at the most; then about"
            f" {_rough(prompts)} tokens sent (much of it cached by a provider) and"
            f" {_rough(replies)} replied, besides what a model reasons"
        )
        yield Checked(
            f"cost of {section.label}", told + _dollars(plan, section, own, prompts, replies)
        )


def _usual_calls(section: AgentSettings) -> int:
    """Return the calls of a run in which nothing is asked again: a program, and its review."""
    return section.steps * (2 if isinstance(section, TreeSettings) else 1)


def _prompt_tokens(section: AgentSettings, data: int) -> int:
    if isinstance(section, ChainSettings):
        # It grows from little to all there is room for.
        return (section.context or _CONTEXT) // 2
    return data + _SHOWN_TOKENS


def _told_tokens(competition: Competition) -> int:
    try:
        data = data_preview(competition.input_dir)
    except LanggraftError:
        data = ""
    return (len(competition.description) + len(data)) // _CHARACTERS


def _dollars(
    plan: MlePlan, section: AgentSettings, runs: Sequence[RunSpec], prompts: int, replies: int
) -> str:
    if plan.model == SIMULATED:
        return "; the simulated model costs nothing"
    price = price_of(section.model or plan.model, plan.prices)
    if price is None:
        return "; no price of its model is known: `prices` of the plan would make it dollars"
    dollars = in_dollars(price.cost(prompts, replies))
    most = section.dollars if isinstance(section, StepSettings) else None
    if most is not None:
        dollars = min(dollars, most * sum(run.length for run in runs))
    return (
        f"; about {dollars:,.0f} dollars" if dollars >= _CENTS else f"; about {dollars:.2f} dollars"
    )


_CENTS: Final = 10
"""Dollars below which cents are told."""
_MILLION: Final = 1_000_000


def _rough(tokens: int) -> str:
    if tokens < _MILLION:
        return f"{math.ceil(tokens / 1000):,},000"
    return f"{math.ceil(tokens / _MILLION):,} million"
