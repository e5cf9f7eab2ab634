"""An episode in a text world: `start` begins it, `think` reads an action from a model, `act` takes it.

A running world cannot be serialized. It is held here by its episode, and rebuilt by taking its
actions again where it is missing: in another process, or after a crash.
"""

import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from langgraft._core.arguments import check_whole, checked
from langgraft._core.effects import Call, Program
from langgraft._core.errors import ActionFormatError, InputError, SettingsError
from langgraft._core.forks import renewed
from langgraft._core.texts import Prompt
from langgraft._core.untrusted import unreadable_as
from langgraft.environments.text import (
    Reset,
    TextEnvironment,
    TextTask,
    TextWorldFactory,
    Transition,
)
from langgraft.memory.model import strip_block
from langgraft.memory.recall import Place
from langgraft.nodes.dialogue import ChatModel, Node, Update, chat_model, read_response
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.state import AgentState, StepState, fresh_state


@dataclass(slots=True)
class _Session:
    environment: TextEnvironment
    first: Reset
    taken: list[str]


class EnvironmentSessions:
    """A bounded table of running episodes.

    A graph's state names an episode and the actions taken in it. Where the table has that
    episode at that point, it is used; otherwise (after a crash, on another machine, when an
    old checkpoint is resumed) the world is made anew and the actions are replayed.

    Args:
        factory: Makes environments by task id.
        capacity: How many episodes are kept; the one idle longest goes first.

    Raises:
        SettingsError: `capacity` is below 1.
    """

    @checked
    def __init__(self, factory: TextWorldFactory, *, capacity: int = 256) -> None:
        if capacity < 1:
            msg = f"capacity must be at least 1, got {capacity}"
            raise SettingsError(msg)
        self._factory = factory
        self._capacity = capacity
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._lock = renewed(threading.Lock())

    def start(self, episode_id: str, task_id: str) -> tuple[TextEnvironment, Reset]:
        """Begin an episode from its start."""
        session = self._open(task_id, ())
        self._keep(episode_id, session)
        return session.environment, session.first

    def step(self, episode_id: str, task_id: str, taken: Sequence[str], action: str) -> Transition:
        """Take `action` in an episode in which `taken` were taken before."""
        session = self._claim(episode_id)
        if session is None or session.taken != list(taken):
            if session is not None:
                session.environment.close()
            session = self._open(task_id, taken)
        with _closed_on_error(session.environment):
            transition = session.environment.step(action)
        session.taken.append(action)
        if transition.done:
            session.environment.close()
        else:
            self._keep(episode_id, session)
        return transition

    def end(self, episode_id: str) -> None:
        """Let go of an episode that will not be continued."""
        session = self._claim(episode_id)
        if session is not None:
            session.environment.close()

    def __len__(self) -> int:
        return len(self._sessions)

    def _open(self, task_id: str, taken: Sequence[str]) -> _Session:
        environment = self._factory(task_id)

        with _closed_on_error(environment):
            first = environment.reset()
            for action in taken:
                environment.step(action)
        return _Session(environment, first, list(taken))

    def _claim(self, episode_id: str) -> _Session | None:
        with self._lock:
            return self._sessions.pop(episode_id, None)

    def _keep(self, episode_id: str, session: _Session) -> None:
        with self._lock:
            replaced = self._sessions.pop(episode_id, None)
            self._sessions[episode_id] = session
            evicted = replaced
            if len(self._sessions) > self._capacity:
                _, evicted = self._sessions.popitem(last=False)
        if evicted is not None:
            evicted.environment.close()


@contextmanager
def _closed_on_error(environment: TextEnvironment) -> Iterator[None]:
    try:
        yield
    except BaseException:
        environment.close()
        raise


@checked
def start_node(
    sessions: EnvironmentSessions, *, max_rounds: int | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that begins an episode.

    Args:
        sessions: Where the running world is kept.
        max_rounds: How many replies the agent has; `None` takes the world's own rule.

    Raises:
        SettingsError: `max_rounds` is below 1.
    """
    if max_rounds is not None:
        check_whole("max_rounds", max_rounds)

    def start(state: AgentState) -> Update:
        task_id = _task_id(state)
        episode_id = _episode_id(state)
        environment, first = sessions.start(episode_id, task_id)
        seen = first.observation
        shown = StepState(said="", thought="", action="", observation=seen, valid=True)
        return {
            **fresh_state(added_to=bool(state.get("steps"))),
            "episode_id": episode_id,
            "attempt": episode_id,
            "domain": environment.task.domain,
            "instruction": first.instruction,
            "world_instructions": environment.instructions,
            "steps": Overwrite([shown]) if state.get("steps") else [shown],
            "actions": list(first.actions) if _all_shown(first.actions, seen) else [],
            "shown_now": first.shown_now,
            "valid": True,
            "max_rounds": max_rounds or environment.max_rounds,
        }

    return Node("start", start)


def _episode_id(state: AgentState) -> str:
    given = state.get("episode_id")
    if given is not None and not isinstance(given, str):
        msg = f"the agent's `episode_id` must be a text, got {given!r:.80}"
        raise InputError(msg)
    # A checkpointed thread still holds the id of the episode before this one. Taken again, it
    # would have memory ignore the new episode as already filed.
    return given if given and given != state.get("attempt") else uuid.uuid4().hex


def _task_id(state: Mapping[str, object]) -> str:
    task_id = state.get("task_id")
    if isinstance(task_id, TextTask):
        msg = f"the agent's `task_id` is a task: give its `id`, {{'task_id': {task_id.id!r}}}"
        raise InputError(msg)
    if not isinstance(task_id, str) or not task_id:
        msg = (
            "the agent's input needs a `task_id`, such as {'task_id': 'babyai/find_obj/200'};"
            f" got {dict(state)!r:.200}"
        )
        raise InputError(msg)
    return task_id


OUT_OF_ROUNDS = "out of rounds"
GOAL_REACHED = "goal reached"
ENDED = "ended by the world"


@checked
def act_node(sessions: EnvironmentSessions) -> Runnable[AgentState, Update]:
    """Make the node that takes the chosen action.

    A reply without one costs its round too, and is answered with what was wrong, the form, and what
    the world showed last, with the actions on offer where the world names them. How often that happened
    in a row is said as well: a model that decides by its prompt alone would give the same reply again.
    """
    repair = shipped("act_repair")

    def act(state: AgentState) -> Update:
        if not state["valid"]:
            world = next(step for step in reversed(state["steps"]) if step["valid"])
            seen, actions = world["observation"], state.get("actions") or []
            if actions and not _all_shown(actions, seen):
                seen = f"{seen}\nAvailable actions: {', '.join(actions)}"
            problem, number = state["reason"], 1 + _refused_last(state["steps"])
            if number > 1:
                problem += f" No action could be read in your last {number} replies."
            observation = repair.render(problem=problem, observation=seen).strip()
            return _after(
                state, observation, done=False, success=state["success"], reward=state["score"]
            )
        taken = [step["action"] for step in state["steps"][1:] if step["valid"]]
        result = sessions.step(state["episode_id"], state["task_id"], taken, state["action"])
        after = _after(
            state,
            result.observation,
            done=result.done,
            success=result.success,
            reward=result.reward,
        )
        after["shown_now"] = result.shown_now
        return {**after, "actions": list(result.actions)} if state.get("actions") else after

    def _after(
        state: AgentState, observation: str, *, done: bool, success: bool, reward: float
    ) -> Update:
        exhausted = len(state["steps"]) >= state["max_rounds"]
        if exhausted and not done:
            sessions.end(state["episode_id"])
        step = StepState(
            said=state["said"],
            thought=strip_block(state["thought"]),
            action=state["action"],
            observation=observation,
            valid=state["valid"],
        )
        return {
            "steps": [step],
            "done": done or exhausted,
            "success": success,
            "score": reward,
            "reason": _reason(done=done, success=success, exhausted=exhausted),
        }

    return Node("act", act)


def _refused_last(steps: Sequence[StepState]) -> int:
    """Count the replies since the last one that held an action."""
    return sum(1 for _ in takewhile(lambda step: not step["valid"], reversed(steps)))


def _all_shown(actions: Sequence[str], observation: str) -> bool:
    return all(action in observation for action in actions)


def _reason(*, done: bool, success: bool, exhausted: bool) -> str:
    if success:
        return GOAL_REACHED
    if done:
        return ENDED
    return OUT_OF_ROUNDS if exhausted else ""


# Chat models set labels in bold or brackets, as headings or list points, number them as ReAct's
# examples do, and write the colon of their own script; a title on a line of its own may have none.
_NUMBER = r"(?:[ \t]*[#(\[]?\d+[)\]]?)?"


def _label(word: str) -> str:
    named = rf"(?:{word}{_NUMBER}|\[{word}{_NUMBER}\])"
    marks = r"[ \t>#*_`•+-]*(?:\d+[.)][ \t*_`]*)?"
    title = rf"[ \t]*(?:#{{1,6}}|\*\*)[ \t*_]*{named}[ \t*_]*(?=\r?$)"
    return rf"^(?:{marks}{named}[ \t*_`]*[:\uff1a]|{title})"


_THOUGHT = re.compile(_label("Thought") + r"[ \t*_`]*", re.IGNORECASE | re.MULTILINE)
_ACTION = re.compile(
    # Marks that close the label's go with it, those that open the action's do not.
    _label("Action") + r"(?:[*_]+(?=\s|$))?[ \t]*(?:Action[ \t]*[:\uff1a][ \t*_]*)?(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
# On the line of the thought only as it is asked for: prose speaks of "my next action: …" too.
_INLINE = re.compile(
    rf"(?<=[\s.!?;,])[*_`]*Action{_NUMBER}[*_`]*[:\uff1a][ \t*_]*(.*)$", re.MULTILINE
)
_OTHERS = "Observation|Obs|User|Human|Environment|Env|System|Assistant|Result|Feedback|Response"
_CONTINUED = re.compile(
    rf"(?i:{_label(f'(?:{_OTHERS})')})|\s[*_]*Observation(?: \d+)?[*_]*[:\uff1a]", re.MULTILINE
)
"""Where a model writes the world's part as well, as it would without a stop sequence."""
_TURN_BEGINS = re.compile(
    r"(?:\s*(?:<s>|<bos>|<\|begin_of_text\|>|<\|im_start\|>assistant|<\|assistant\|>"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model))+\s*"
)
_TURN_ENDS = re.compile(
    r"</s>|<eos>|<(?:end|start)_of_turn>|\[/?INST\]"
    r"|<[|\uff5c](?:im_end|im_start|eot|eot_id|eom_id|start_header_id|end|endoftext|end_of_text"
    r"|end\u2581of\u2581sentence|return|user|assistant|system)[|\uff5c]>",
    re.IGNORECASE,
)
"""Marks with which models begin and end a turn, where a server leaves them in the text."""
_FENCE = "```"
_UNFILLED = frozenset({"one action", "action", "your action"})
"""What stands in the place of an action in the form that a prompt shows; small models write it back."""
_POINT = re.compile(r"(?:[-+•]|\d+[.)])(?:[ \t]+|$)")
_SPAN = re.compile(r"(\*{1,3}|`{1,3})([^*`]+)\1(?=$|\s*[.,;:(\u2013\u2014-])[^*`]*$")
"""An action in bold or as code, and what is said of it behind."""
_PAIRS = dict(zip("\"'“\u2018«「[<({", "\"'”\u2019»」]>)}", strict=True))
_MOST_LAYERS = 10
"""Pairs of marks around an action that are taken off."""
_CUT = "It was cut off where the longest possible reply ends: think in fewer words."


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wants to do."""

    thought: str
    action: str


@unreadable_as(lambda text: text)
def own_turn(text: str) -> str:
    """Return the part of a reply that is the model's turn, word for word.

    It ends where the model goes on with what the world or a user would say after its action, or at
    a mark that ends a turn: as if a stop sequence had been set. A mark that begins it is no part.
    """
    begin = found.end() if (found := _TURN_BEGINS.match(text)) else 0
    end = found.start() if (found := _TURN_ENDS.search(text, begin)) else len(text)
    turn = text[begin:end]
    action = _ACTION.search(turn) or _INLINE.search(turn)
    if action is None:
        return turn
    made_up = _CONTINUED.search(turn, action.start(1))
    return turn[: made_up.start()].rstrip() if made_up else turn


def _no_action(_: str) -> Reply:
    msg = "The reply cannot be read."
    raise ActionFormatError(msg)


@unreadable_as(_no_action)
def parse_reply(text: str) -> Reply:
    """Read `Thought: … Action: …`.

    The action is the rest of the one line that starts with `Action:`, or the next line that
    holds something where that rest is empty; where no line starts so, the rest after `Action:` in a
    line. Markdown around labels and action is ignored, and so are quotes, brackets and dots around
    an action and doubled blanks in it, as by AgentGym's client. What a model makes up after its own
    turn is not read (`own_turn`).

    Raises:
        ActionFormatError: There is no action, or more than one.
    """
    turn = own_turn(text)
    found = list(_ACTION.finditer(turn))
    if not found and (inline := _INLINE.search(turn)):
        found = [inline, *_INLINE.finditer(turn, inline.start(1))]
    if not found:
        msg = "The reply holds no line that starts with 'Action:'."
        raise ActionFormatError(msg if turn.strip() else "The reply is empty.")
    if len(found) > 1:
        msg = f"The reply holds {len(found)} actions; take one at a time."
        raise ActionFormatError(msg)
    line = found[0]
    action = _bare(_plain(line.group(1)) or _next_line(turn[line.end() :]))
    if action.casefold() in _UNFILLED:
        msg = f"The reply repeats the form: name an action in the place of <{action}>."
        raise ActionFormatError(msg)
    if not action:
        msg = "The action is empty."
        raise ActionFormatError(msg)
    thought = _THOUGHT.sub("", turn[: line.start()], count=1).strip()
    return Reply(thought, action)


def _next_line(text: str) -> str:
    """Return the first line that holds something, where that is no thought or list of actions."""
    if thought := _THOUGHT.search(text):
        text = text[: thought.start()]
    lines = [line.strip() for line in text.splitlines() if _plain(line)]
    points = sum(_POINT.match(line) is not None for line in lines)
    if points > 1 and _POINT.match(lines[0]):
        msg = f"The reply holds {points} actions; take one at a time."
        raise ActionFormatError(msg)
    return _plain(lines[0]) if lines else ""


def _plain(line: str) -> str:
    """Take Markdown's emphasis, code marks, quotes, points and fences off a line."""
    bare = line.strip()
    if bare.startswith(_FENCE) and bare.count("`") == len(_FENCE):
        return ""
    if span := _SPAN.match(bare):
        bare = span.group(2)
    bare = bare.replace("**", "").replace("`", "").strip("* \t").removeprefix(">").lstrip()
    return _POINT.sub("", bare, count=1) if _POINT.match(bare) else bare


def _bare(action: str) -> str:
    """Take off an action what models set around it, and its doubled blanks."""
    action = " ".join(action.split())
    for _ in range(_MOST_LAYERS):
        action = action.rstrip(".,;。").rstrip()
        first, last, inside = action[:1], action[-1:], action[1:-1]
        if last == '"' and action.count('"') % 2:
            action = action[:-1].rstrip()
        elif last == _PAIRS.get(first) and not {first, last} & set(inside):
            action = inside.strip()
        elif first == '"' and action.count('"') % 2:
            action = action[1:].lstrip()
        else:
            break
    return action


def render_messages(
    system: str, recalled: str, steps: Sequence[StepState], *, last: bool = False, now: str = ""
) -> list[BaseMessage]:
    """Write an episode as a conversation, with the model's turns word for word as it gave them.

    A reply without an action is no turn, and is not shown: models repeat the form of what they read
    as their own. What was wrong with the latest stands behind what the model has to answer, until it
    does.

    Args:
        system: The system prompt.
        recalled: Recalled memory.
        steps: The episode so far.
        last: Put what is recalled before the latest observation, and not before the first
            (continual-memory §2.1): all before it then stays as it was when memory is asked again,
            as caches of prompts want it.
        now: What the world shows behind the latest observation only.
    """
    taken = [step for step in steps if step["valid"]]
    texts = [step["observation"] for step in taken]
    at = -1 if last else 0
    texts[at] = recalled + texts[at]
    refusal = "" if steps[-1]["valid"] else steps[-1]["observation"]
    texts[-1] = "\n\n".join(filter(None, (texts[-1], now, refusal)))
    messages: list[BaseMessage] = [SystemMessage(system), HumanMessage(texts[0])]
    for step, text in zip(taken[1:], texts[1:], strict=True):
        messages += [AIMessage(step["said"]), HumanMessage(text)]
    return messages


@checked
def think_node(
    model: ChatModel, *, prompt: Prompt | None = None, place: Place = "end"
) -> Runnable[AgentState, Update]:
    """Make the node that decides on the next action.

    Args:
        model: Any chat model, or the name of one (`openai:gpt-4.1-mini`).
        prompt: System prompt with the placeholder `$instructions`.
        place: Where what memory recalls later in an episode stands: before the latest observation
            (`end`), or before the first (`start`), where it was the first time.
    """
    template = prompt or shipped("act")
    model = chat_model(model, "`model` of think_node")

    def messages(state: AgentState) -> list[BaseMessage]:
        system = template.render(instructions=state["world_instructions"])
        receipts = state.get("receipts") or [{"step": 0}]
        return render_messages(
            system,
            state["recalled"],
            state["steps"],
            last=place == "end" and receipts[-1]["step"] > 0,
            now=state.get("shown_now", ""),
        )

    def think(state: AgentState) -> Program[Call, Update]:
        return _decide((yield Call(model.invoke, model.ainvoke, messages(state))))

    return Node.running("think", think)


def _decide(message: BaseMessage) -> Update:
    response = read_response(message)
    said = own_turn(response.text)
    update = {"said": said, "thought": said, "action": "", "valid": False}
    try:
        reply = parse_reply(said)
    except ActionFormatError as error:
        return {**update, "reason": f"{error} {_CUT}" if response.cut else str(error)}
    taken = {"thought": reply.thought, "action": reply.action, "valid": True}
    return {**update, **taken, "reason": ""}
