"""One lite competition's rehearsal: made up, unpacked, previewed, submitted by each agent, graded.

python -m acceptance.rehearsal_worker ID FOLDER SHARE

A process of its own, so that its peak of memory is this competition's. Models are scripts that hand in
the sample submission: nothing in here says how an agent would do.
"""

import json
import re
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from chain_cases import call
from chain_cases import scripted as calling
from lite_layouts import make_layout
from mlab_cases import FINAL, edit, execute, fenced, stepping
from tree_cases import RuleModel, feedback, reply

from langgraft.environments.competitions.archives import unpack_archives
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.grading import grade_submission
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import MIB, Limits, Sandbox
from langgraft.graphs.chain import build_chain_agent
from langgraft.graphs.mlab import build_mlab_agent
from langgraft.graphs.tree import build_tree_agent
from langgraft.nodes.artifacts import FolderArtifacts
from langgraft.nodes.search.journal import read_search
from langgraft.nodes.workbench.limits import RunLimits
from langgraft.nodes.workbench.log import Observation, read_log

LIMITS: Final = Limits(cpus=2, memory=4096 * MIB, workspace=1024 * MIB, seconds=1800)
PROGRAM: Final = """\
import os
import pandas as pd
sample = pd.read_csv("input/{sample}", dtype=str, keep_default_na=False)
{change}sample.to_csv("submission.csv", index=False)
for name in ("memory.peak", "memory/memory.max_usage_in_bytes"):  # of cgroups 2 and 1
    if os.path.exists("/sys/fs/cgroup/" + name):
        print("Peak of memory:", open("/sys/fs/cgroup/" + name).read().strip())
print("Validation metric: 0.5")
"""
_ALL_DIGITS: Final = """\
import random
draw = random.Random(0).random
sample["{column}"] = [repr(draw()) for _ in range(len(sample))]
"""
LARGEST: Final = "denoising-dirty-documents"
"""Is submitted with all digits of each value, too: the largest submission of the 22."""


def main(name: str, work: Path, share: float) -> None:
    """Rehearse one competition, and print what it took as JSON."""
    started = time.process_time()
    make_layout(name, work / "data", share=share)
    made = time.process_time() - started
    competition = Registry(work / "data").get_competition(name)
    assert competition.prepared
    started = time.process_time()
    unpacked = unpack_archives(competition)
    unpacking = time.process_time() - started
    again = unpack_archives(competition)
    assert again == unpacked
    started = time.process_time()
    preview = data_preview(unpacked.folder, notes=unpacked.notes)
    looked = time.process_time() - started
    found: dict[str, Any] = {
        "id": name,
        "data": _size(competition.public_dir),
        "view": _added(competition, unpacked.folder),
        "preview": preview,
        "seconds": {"make": made, "unpack": unpacking, "preview": looked},
        "runs": [],
    }
    for agent in ("tree", "chain", "mlab", *(["tree, all digits"] if name == LARGEST else [])):
        inputs = {"input": competition.input_dir}
        kept = work / "kept" / agent.replace(", ", "-").replace(" ", "-")
        below = DockerSandbox(limits=LIMITS, inputs=inputs, pool=1)
        with CachedSandbox(below, kept / "executions.sqlite") as sandbox:
            found["runs"].append(_run(agent, competition, sandbox, kept))
    found["disk"] = _size(work / "kept")[0]
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    sys.stdout.write(json.dumps(found) + "\n")


def _run(agent: str, competition: Competition, sandbox: Sandbox, kept: Path) -> Mapping[str, Any]:
    sample = competition.sample_submission.relative_to(competition.public_dir).as_posix()
    change = _ALL_DIGITS.format(column="value") if agent.endswith("digits") else ""
    program = PROGRAM.format(sample=sample, change=change)
    artifacts = FolderArtifacts(kept / "artifacts")
    common: dict[str, Any] = {
        "competition": competition,
        "sandbox": sandbox,
        "artifacts": artifacts,
    }
    started, wall = time.process_time(), time.monotonic()
    config: Any = {"configurable": {"thread_id": agent}}
    if agent.startswith("tree"):
        writes = RuleModel(rule=lambda text, name: _of_tree(program, text, name))
        tree = build_tree_agent(
            writes, **common, steps=2, seconds=LIMITS.seconds, packages=["pandas"]
        )
        out: Any = tree.invoke({"episode_id": agent}, config)
        search = read_search(artifacts, out["journal"])
        seen = [node.output for node in search.nodes]
    else:
        limits = RunLimits(steps=4)
        common |= {"limits": limits, "seconds": LIMITS.seconds, "packages": ["pandas"]}
        common |= {"use_all_time": False}
        if agent == "chain":
            handed = call("run_python", "I hand it in.", code=program)
            model = calling(handed, call("validate_submission"), call("finish"))
            out = build_chain_agent(model, **common).invoke({"episode_id": agent}, config)
        else:
            edits = stepping(edit("do.py"), execute("do.py"), FINAL, aside=[fenced(program)])
            out = build_mlab_agent(edits, **common).invoke({"episode_id": agent}, config)
        events = read_log(artifacts, out["log"]).events
        seen = [event.text for event in events if isinstance(event, Observation)]
    file = kept.parents[1] / f"{kept.name}.csv"
    assert out["submission"], "\n".join(seen)
    file.write_bytes(artifacts.read(out["submission"]))
    cpu, wall = time.process_time() - started, time.monotonic() - wall
    started = time.process_time()
    report = grade_submission(file, competition)
    peaks = [int(each) for text in seen for each in re.findall(r"Peak of memory: (\d+)", text)]
    return {
        "agent": agent,
        "score": report.score,
        "valid": any("Submission: present and valid." in text for text in seen),
        "bytes": file.stat().st_size,
        "container": max(peaks, default=0),
        "cpu": cpu,
        "wall": wall,
        "grading": time.process_time() - started,
    }


def _of_tree(program: str, text: str, sample: str) -> str:
    return reply(program) if sample.endswith("/write") else feedback(text, sample)


def _size(folder: Path) -> tuple[int, int]:
    """Return bytes and files of a folder."""
    found = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(found), len(found)


def _added(competition: Competition, view: Path) -> tuple[int, int]:
    """Return bytes and files that a view has beyond the links to what was there."""
    if view == competition.public_dir:
        return 0, 0
    (before, files), (after, all_files) = _size(competition.public_dir), _size(view)
    return after - before, all_files - files


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
