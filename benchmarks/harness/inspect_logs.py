"""Runs as logs of Inspect, for its viewer and its readers: a file a run, written without Inspect.

A file is a zip:

    header.json                        what was evaluated, how it ended, scores and tokens
    summaries.json                     the list of samples
    samples/<id>_epoch_<n>.json        one item each: messages, output, scores, tokens, metadata
    _journal/start.json                the beginning of the header

What models, worlds and plans say is data in it: JSON strings, and names that lead out of no folder.
"""

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError, PlanError
from langgraft._core.files import atomic_write, make_directory
from langgraft.benchmarks.harness.budget import in_dollars
from langgraft.benchmarks.harness.conversations import Choice, Chooser, Message, PlayedEpisode
from langgraft.benchmarks.harness.log import PlanLog, Record, read_events, run_folder
from langgraft.benchmarks.harness.progress import moment, whole_number
from langgraft.benchmarks.harness.study import Plan, PlannedRun, Study
from langgraft.benchmarks.harness.watching import groups_of

_VERSION: Final = 2
"""Of the format of `.eval` files."""
_SCORE: Final = "success"
_SUMMARY_CHARACTERS: Final = 1_000
"""Of a text in the list of samples."""


@dataclass(slots=True)
class InspectLogs:
    """What an export to Inspect's logs came to."""

    logs: int = 0
    samples: int = 0
    unshown: Counter[str] = field(default_factory=Counter)
    """Why conversations are not as the agent saw them, and of how many samples; these show its steps."""


def write_inspect(
    study: Study[Any], plan: Plan, log: PlanLog, out: Path, choice: Choice, *, with_memory: bool
) -> InspectLogs:
    """Write a log a run, as Inspect's viewer and its `read_eval_log` take them: `<time>_<run>_<id>.eval`.

    An item is a sample; one that a run has twice is a sample of two epochs. A sample holds what its agent was
    sent and said, as far as the log or files kept of the run tell, its scores, its tokens, and its result
    as metadata. One run is held in memory at a time, and the same directory gives the same bytes.

    Args:
        study: The study.
        plan: Its plan.
        log: The log.
        out: A folder; made where it is missing.
        choice: Which episodes; only of studies that tell of them can any be left out.
        with_memory: Whether the recalled block stands where the agent saw it.

    Raises:
        InputError: A name that is to be chosen by is of no episode, or none passes.
        PlanError: Episodes are chosen, and the study tells of none.
        RunDirectoryError: A file cannot be written.
    """
    make_directory(out)
    made, chooser = InspectLogs(), Chooser(choice)
    try:
        told = groupby(study.episodes(plan, log), key=lambda each: each.run)
    except PlanError:
        if choice != Choice():
            raise
        told = groupby(())
    name, played = next(told, ("", iter(())))
    for run in log.graph:
        records = log.records(run.name)
        episodes: list[PlayedEpisode | None] = [None] * len(records)
        if run.name == name:
            episodes = [*played]
            name, played = next(told, ("", iter(())))
        elif choice != Choice():
            continue  # its items are no episodes
        pairs = [  # a run under way may have come further meanwhile
            (record, each)
            for record, each in zip(records, episodes, strict=False)
            if each is None or chooser.takes(each)
        ]
        if pairs:
            file = _InspectFile(study, plan, log, run, made.unshown, with_memory=with_memory)
            atomic_write(out / file.name, file.content(pairs))
            made.logs += 1
            made.samples += len(pairs)
    chooser.check()
    if not made.logs:
        raise InputError("nothing to export: no item of the log is chosen")
    return made


class _InspectFile:
    """The log of one run: a zip of a header, and of a JSON a sample."""

    def __init__(
        self,
        study: Study[Any],
        plan: Plan,
        log: PlanLog,
        run: PlannedRun,
        unshown: Counter[str],
        *,
        with_memory: bool,
    ) -> None:
        self._study, self._plan, self._log, self._run = study, plan, log, run
        self._unshown = unshown
        self._with_memory = with_memory
        self._folder = run_folder(log.path, run)
        events = list(read_events(self._folder / "events.jsonl"))
        self._items = {
            str(each.get("index")): each for each in events if each.get("event") == "item"
        }
        self._times = [moment(each.get("time")) for each in events] or [0.0]
        ended = [each for each in events if each.get("event") in {"failed", "opened"}]
        self._problem = str(ended[-1].get("text", "")) if ended else ""
        self._done = (self._folder / "DONE.json").exists()
        self._model = plan.model.replace(":", "/", 1)

    @property
    def name(self) -> str:
        begun = datetime.fromtimestamp(self._times[0], UTC).strftime("%Y-%m-%dT%H-%M-%S+00-00")
        return f"{begun}_{re.sub(r'[^a-zA-Z0-9]+', '-', self._run.name)[:80]}_{self._run.id}.eval"

    def content(self, pairs: Iterable[tuple[Record, PlayedEpisode | None]]) -> bytes:
        """Return the bytes of the file."""
        summaries: list[JSON] = []
        times: Counter[str] = Counter()
        scored: list[bool] = []
        used = Counter[str]()
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as archive:
            _add(archive, "_journal/start.json", self._start)
            for record, episode in pairs:
                name = _sample_name(record.item_id)
                times[name] += 1
                sample = self._sample(record, episode, name, times[name])
                _add(archive, f"samples/{name}_epoch_{times[name]}.json", sample)
                summaries.append(_summary(sample))
                used.update(sample["model_usage"].get(self._model, {}))
                if _SCORE in (sample["scores"] or {}):
                    scored.append(sample["scores"][_SCORE]["value"] == "C")
            _add(archive, "summaries.json", summaries)
            ids: list[JSON] = [*times]
            epochs = max(times.values())
            header = self._header(len(summaries), scored, {**used}, ids, epochs)
            _add(archive, "header.json", header)
        return written.getvalue()

    @property
    def _start(self) -> dict[str, JSON]:
        plan, run, manifest = self._plan, self._run, self._log.manifest
        condition, kind = groups_of([run.spec])[run.name]
        packages = manifest.get("packages")
        spec: dict[str, JSON] = {
            "eval_id": run.id,
            "run_id": str(manifest.get("plan"))[:12],
            "created": _iso(self._times[0]),
            "task": run.name,
            "task_id": run.id,
            "task_args": dict(run.spec.factors),
            "tags": [each for each in (condition, kind) if each],
            "dataset": {"name": str(run.spec.factors.get("domain") or run.spec.study)},
            "model": self._model,
            "model_base_url": plan.base_url,
            "model_generate_config": {
                "temperature": plan.temperature,
                "max_tokens": plan.max_tokens,
            },
            "config": {},
            "packages": packages if isinstance(packages, dict) else {},
            "metadata": {"study": run.spec.study, "title": plan.title, "run": run.name},
            "scorers": [{"name": _SCORE}],
        }
        steps: list[JSON] = [{"solver": f"{run.spec.study}/{condition}", "params": {}}]
        return {"version": _VERSION, "eval": spec, "plan": {"name": "plan", "steps": steps}}

    def _header(
        self,
        samples: int,
        scored: Sequence[bool],
        used: dict[str, Any],
        ids: list[JSON],
        epochs: int,
    ) -> dict[str, JSON]:
        start = self._start
        spec: Any = start["eval"]
        spec["dataset"] |= {"samples": len(ids), "sample_ids": ids}
        spec["config"] = {"epochs": epochs}
        share = sum(scored) / len(scored) if scored else 0.0
        metrics: dict[str, JSON] = {"accuracy": {"name": "accuracy", "value": share}}
        scores: list[JSON] = [{"name": _SCORE, "scorer": _SCORE, "metrics": metrics}]
        status = "success" if self._done else "error" if self._problem else "cancelled"
        return {
            **start,
            "status": status,
            "results": {
                "total_samples": max(samples, self._run.length),
                "completed_samples": samples,
                "scores": scores if scored else [],
            },
            "stats": {
                "started_at": _iso(self._times[0]),
                "completed_at": _iso(self._times[-1]),
                "model_usage": {self._model: used} if used else {},
            },
            "error": _error(self._problem) if status == "error" else None,
        }

    def _sample(
        self, record: Record, episode: PlayedEpisode | None, name: str, epoch: int
    ) -> dict[str, Any]:
        event = self._items.get(str(record.index), {})
        messages = self._messages(record, episode)
        written = [_inspect_message(each, n, self._model) for n, each in enumerate(messages)]
        said = [each for each in written if each["role"] == "assistant"]
        first = next(
            (n for n, each in enumerate(messages) if each.role == "assistant"), len(written)
        )
        data = event.get("data")
        usage = data.get("usage") if isinstance(data, dict) else None
        ended = moment(event.get("time")) or self._times[-1]
        seconds = moment(event.get("seconds"))
        rest = {key: each for key, each in record.result.items() if key != "steps"}
        output: dict[str, JSON] = {"model": self._model, "choices": []}
        if said:
            output["choices"] = [{"message": said[-1], "stop_reason": "stop"}]
            output["completion"] = said[-1]["content"]
        return {
            "id": name,
            "epoch": epoch,
            "input": written[:first] or record.item_id,
            "target": "",
            "messages": written,
            "output": output,
            "scores": self._scores(record, episode),
            "metadata": {"item": record.item_id, "index": record.index, **rest},
            "model_usage": {self._model: _inspect_usage(usage)} if isinstance(usage, dict) else {},
            "started_at": _iso(max(0.0, ended - seconds)),
            "completed_at": _iso(ended),
            "total_time": seconds,
            "uuid": f"{self._run.id}-{record.index}",
            "error": None,
        }

    def _messages(self, record: Record, episode: PlayedEpisode | None) -> Sequence[Message]:
        """Return what was said; where it cannot be made again as it was, what the log keeps of it."""
        if episode is None:
            kept = self._folder / "kept" / _sample_name(record.item_id)
            return self._study.messages(kept)
        try:
            told = episode.conversations(self._with_memory)
        except InputError as error:
            self._unshown[str(error).partition(":")[2] or str(error)] += 1
            told = ()
        if told:
            return max(told, key=lambda each: len(each.messages)).messages
        shown: list[Message] = []
        for thought, action, observation in episode.steps:
            if said := "\n".join(each for each in (thought, action) if each):
                shown.append(Message("assistant", said))
            if observation:
                shown.append(Message("user", observation))
        return shown

    def _scores(self, record: Record, episode: PlayedEpisode | None) -> dict[str, Any] | None:
        scores: dict[str, Any] = {}
        went_well = self._study.went_well(record.result)
        if went_well is not None:
            reason = record.result.get("reason")
            answer = episode.steps[-1][1] if episode is not None and episode.steps else None
            scores[_SCORE] = {
                "value": "C" if went_well else "I",
                "answer": answer,
                "explanation": reason if isinstance(reason, str) and reason else None,
            }
        score = record.result.get("score")
        if type(score) in {int, float}:
            scores["score"] = {"value": score}
        return scores or None


def _add(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    # With the earliest date that a zip can hold: the same log gives the same bytes.
    member = zipfile.ZipInfo(name)
    member.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(member, json.dumps(value, allow_nan=False))


def _sample_name(item_id: str) -> str:
    """Return the id of an item as part of a path within an archive, out of which it does not lead."""
    return re.sub(r"[^\w./+:@ -]", "_", item_id).replace("..", "__").strip("/") or "_"


def _summary(sample: Mapping[str, Any]) -> dict[str, JSON]:
    """Return what the list of samples shows of one."""
    told = sample["input"]
    if not isinstance(told, str):
        told = told[-1]["content"]
    kept = (
        "id",
        "epoch",
        "target",
        "scores",
        "model_usage",
        "started_at",
        "completed_at",
        "total_time",
    )
    small = {
        key: value[:_SUMMARY_CHARACTERS] if isinstance(value, str) else value
        for key, value in sample["metadata"].items()
        if isinstance(value, str | int | float | bool)
    }
    return {
        **{key: sample[key] for key in (*kept, "uuid")},
        "input": told[:_SUMMARY_CHARACTERS],
        "metadata": small,
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def _inspect_message(message: Message, number: int, model: str) -> dict[str, Any]:
    written: dict[str, Any] = {"id": str(number), **message.to_json()}
    if message.role == "assistant":
        written |= {"source": "generate", "model": model}
        if message.call is not None:
            name, function, arguments = message.call
            written["tool_calls"] = [
                {"id": name, "function": function, "arguments": dict(arguments), "type": "function"}
            ]
    elif message.call is not None:
        written |= {"tool_call_id": message.call[0], "function": message.call[1]}
    return written


def _inspect_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    prompt, cached, completion = (
        whole_number(usage.get(name))
        for name in ("prompt_tokens", "cached_prompt_tokens", "completion_tokens")
    )
    return {
        "input_tokens": max(0, prompt - cached),
        "input_tokens_cache_read": cached,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
        "reasoning_tokens": whole_number(usage.get("reasoning_tokens")),
        "total_cost": in_dollars(whole_number(usage.get("picodollars"))),
    }


def _error(message: str) -> dict[str, JSON]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
