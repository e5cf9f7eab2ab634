"""`diagnose`: turn a failed run into an error record (mle-agent-memory §3.3, Fig. 5).

    graph.add_node("diagnose", diagnose_node(model))
    diagnose(failure, model).record  # the same outside of graphs
    diagnose_by_rules(failure)       # without a model

A model is given the program, its output, the review and what rules read from them. Where it does
not give a usable record after one correction, or there is no model, the rules' record counts and
says `by="rules"`. The rules never make up a fix: they take the sentences of the review that
advise one.
"""

import re
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel, BeforeValidator

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft._core.texts import Prompt
from langgraft._core.untrusted import bounded, unreadable_as
from langgraft.memory.model import ErrorKind, ErrorRecord, strip_block
from langgraft.memory.providers.coding.entries import fix_needs
from langgraft.nodes.dialogue import (
    ChatModel,
    Dialogue,
    Model,
    Update,
    arun_dialogue,
    dialogue_node,
    run_dialogue,
)
from langgraft.nodes.program_text import with_limit
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.replies import encodable
from langgraft.nodes.state import AgentState
from langgraft.nodes.structured import asking, typed
from langgraft.nodes.tracebacks import (
    GENERAL,
    Raised,
    canonical,
    code_names,
    error_kind,
    masked,
    mentioned_error,
    parse_traceback,
    responsible_package,
)

OUTPUT_SHOWN: Final = 6_000
"""Most characters of output that a model is shown, from its end: tracebacks come last."""
CODE_SHOWN: Final = 20_000
"""Most characters of a program that a model is shown."""
LONGEST_SUMMARY: Final = 300
"""Most characters of an error that no exception tells: a sentence or two."""
LONGEST_TALE: Final = 64_000
"""Most characters of output, and of a review, that are read: head and tail."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known of a run that failed."""

    output: str = ""
    """What the program printed, traceback included, whole or cut."""
    code: str = ""
    analysis: str = ""
    """What a review made of the run, if there was one."""
    exception: str = ""
    """The class of the exception, where it is known apart from the output."""
    message: str = ""
    """Its message, likewise."""
    limit: bool = False
    """A limit ended it: an error of the kind `resource`, whatever a model calls it."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What came of diagnosing a failure."""

    record: ErrorRecord | None
    """`None` where nothing at all tells of an error."""
    why: str
    """`ok`, or what was wrong with a model's reply, or why no model was asked."""
    calls: int
    """How often a model was asked."""

    def to_json(self) -> dict[str, JSON]:
        """Return the diagnosis as runs keep it: `error` and `by`, `why` and `calls`."""
        record = self.record
        error, by = (None, "") if record is None else (asdict(record), record.by)
        return {"error": error, "by": by, "why": self.why, "calls": self.calls}


def execution_failure(
    output: str,
    code: str,
    exception: str | None,
    message: str | None,
    *,
    limit: bool,
    analysis: str = "",
) -> Failure:
    """Return what is known of an execution that failed, a limit that ended it included."""
    shown = with_limit(output, exception, message, by_limit=limit)
    by_limit = limit and bool(exception)
    return Failure(shown, code, analysis, exception or "", message or "", by_limit)


def diagnose(failure: Failure, model: Model | None, *, prompt: Prompt | None = None) -> Diagnosis:
    """Diagnose a failure.

    Args:
        failure: What is known of it.
        model: Any chat model; `None` diagnoses by rules.
        prompt: Prompt with the placeholders `$code`, `$output`, `$analysis`, `$rules`.
    """
    return run_dialogue(diagnosing(failure, prompt), model)


async def adiagnose(
    failure: Failure, model: Model | None, *, prompt: Prompt | None = None
) -> Diagnosis:
    """Do what `diagnose` does, without blocking."""
    return await arun_dialogue(diagnosing(failure, prompt), model)


@checked
def diagnose_node(
    model: ChatModel | None, *, prompt: Prompt | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that adds an error record to the state's `errors`.

    It reads `code`, `output` and, where there is one, `analysis` from the state; its update holds
    `errors`, and in `diagnosis` what came of it: who says so, why, and after how many calls. The
    graph's state has to declare these keys. A graph that keeps programs by reference calls
    `diagnose` in a node of its own.

    Args:
        model: Any chat model; `None` diagnoses by rules.
        prompt: Prompt with the placeholders `$code`, `$output`, `$analysis`, `$rules`.
    """

    def begin(state: AgentState) -> Dialogue[Update]:
        held: dict[str, Any] = dict(state)
        output, code, analysis = (
            str(held.get(name) or "") for name in ("output", "code", "analysis")
        )
        found = yield from diagnosing(Failure(output, code, analysis), prompt)
        made = found.to_json()
        error = made.pop("error")
        added = [] if error is None else [error]
        return {"errors": [*state.get("errors", ()), *added], "diagnosis": made}

    return dialogue_node("diagnose", model, begin)


def diagnosing(failure: Failure, prompt: Prompt | None = None) -> Dialogue[Diagnosis]:
    """Diagnose a failure; see `diagnose`."""
    rules = diagnose_by_rules(failure)
    if rules is None:
        return Diagnosis(None, "nothing tells of an error", 0)
    messages = diagnosis_messages(failure, rules, prompt or shipped("diagnose"))
    answer = yield from asking(messages, typed(_Reply, _objection), what="diagnose")
    record = rules if answer.value is None else _record(answer.value, failure)
    if failure.limit:
        record = replace(record, kind="resource")
    return Diagnosis(record, answer.why, answer.calls)


def diagnosis_messages(failure: Failure, rules: ErrorRecord, template: Prompt) -> list[BaseMessage]:
    """Write the question for a diagnosis."""
    output = failure.output or f"{failure.exception}: {failure.message}".strip(": ")
    text = template.render(
        code=_shown(failure.code[:CODE_SHOWN]),
        # Cut first, the end of quoted memory would lack the mark that it begins with.
        output=_shown(strip_block(output)[-OUTPUT_SHOWN:]),
        analysis=_shown(failure.analysis),
        rules=f"package {rules.package}; kind {rules.kind}; {rules.error}",
    )
    return [HumanMessage(encodable(text))]


def _shown(text: str) -> str:
    return strip_block(text).strip() or "(empty)"


# By a model --------------------------------------------------------------------------------

_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class _Reply(BaseModel):
    package: _Text
    error: str
    fix: _Text
    kind: Annotated[
        ErrorKind,
        BeforeValidator(lambda kind: kind.strip().lower() if isinstance(kind, str) else kind),
    ]


def _objection(reply: _Reply) -> str:
    if not reply.error.strip():
        return "`error` is empty; say the class of the exception and what went wrong"
    if (name := _top(reply.package)) and not name.isidentifier():
        return f"`package` is {name!r:.80}, which no program can import; give the import name"
    needs = fix_needs(reply.fix)
    return f"`fix` needs {needs}; give one that does not, or leave it empty" if needs else ""


def _record(reply: _Reply, failure: Failure) -> ErrorRecord:
    """Make the record; a package that the program imports is named as it is imported."""
    package = _top(reply.package)
    imported = {name.casefold(): name for name in code_names(failure.code).packages}
    package = imported.get(package.casefold(), package) or GENERAL
    if package.casefold() == GENERAL:
        package = GENERAL
    fix = strip_block(reply.fix).strip()
    return ErrorRecord(package, strip_block(reply.error).strip(), fix, reply.kind, by="model")


def _top(module: str) -> str:
    return module.strip().partition(".")[0]


# By rules ----------------------------------------------------------------------------------


@unreadable_as(lambda _: None)
def diagnose_by_rules(failure: Failure) -> ErrorRecord | None:
    """Diagnose a failure without a model; always the same for the same failure.

    The exception is that of the output, or the one known apart from it, or the one that the review
    mentions. Without any, the error is what the review, or the end of the output, says.
    """
    output, analysis = _clean(failure.output), _clean(failure.analysis)
    raised = _raised(replace(failure, output=output, analysis=analysis))
    tale = analysis or output[-LONGEST_SUMMARY:]
    error = _first_words(masked(tale)) if raised is None else canonical(raised)
    if not error:
        return None
    return ErrorRecord(
        package=GENERAL if raised is None else responsible_package(raised, failure.code),
        error=encodable(error),
        fix=advised_fix(analysis),
        kind=error_kind(raised, f"{output[-LONGEST_SUMMARY:]}\n{analysis}"),
        by="rules",
    )


def _clean(text: str) -> str:
    return strip_block(encodable(bounded(text, LONGEST_TALE))).strip()


def _raised(failure: Failure) -> Raised | None:
    raised = parse_traceback(failure.output)
    if raised is not None:
        return raised
    mentioned = mentioned_error(failure.analysis)
    if not failure.exception:
        return mentioned
    raised = Raised(failure.exception, failure.message)
    if raised.message:
        return raised
    same = mentioned is not None and mentioned.name == raised.name
    return replace(
        raised, message=mentioned.message if mentioned and same else _first_words(failure.analysis)
    )


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`(])|\n+")
_ADVICE = re.compile(
    r"^(?:to\s+(?:fix|resolve|solve|address)|(?:a|the|one|suggested|proposed|possible)?\s*"
    r"(?:fix|solution|remedy|suggestion|recommendation)\b"
    r"|(?:use|remove|replace|pass|set|change|convert|cast|rename|drop|switch|move|add|call|wrap|try"
    r"|consider|ensure|make\s+sure|avoid|reduce|define|import|check|update|correct|handle)\s+\w)"
    r"|\b(?:can|could|should|must|needs?\s+to)\s+be\s+(?:fixed|replaced|removed|changed|passed|set"
    r"|converted|cast|renamed|moved|resolved|reduced|updated|corrected|handled)\b"
    r"|\bto\s+fix\s+(?:this|it|the)\b|\bfix\s*:|\b(?:suggest|recommend)(?:ed|s)?\b",
    re.IGNORECASE,
)


def advised_fix(analysis: str) -> str:
    """Return the sentences of a review that advise a fix which needs nothing more, or nothing."""
    sentences = (part.strip() for part in _SENTENCE.split(analysis))
    return " ".join(s for s in sentences if _ADVICE.search(s) and not fix_needs(s))


def _first_words(tale: str) -> str:
    """Cut a tale after the last sentence that fits."""
    tale = " ".join(tale.split())
    if len(tale) <= LONGEST_SUMMARY:
        return tale
    cut = tale[:LONGEST_SUMMARY]
    end = max(cut.rfind(". "), cut.rfind("; "))
    return cut[: end + 1] if end > 0 else cut.rstrip() + "…"
