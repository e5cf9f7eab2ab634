"""What an agent in ALFWorld is told of replies that are not as they should be."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from typing_extensions import override

from acceptance.figure import Figure, Setting, share
from acceptance.reply_scripts import reply_due
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel, ToolUse
from langgraft.benchmarks.simulated.server import serve
from langgraft.environments.alfworld import GeneratedALFWorld
from langgraft.environments.alfworld.semantics import Semantics
from langgraft.graphs.react import build_react_agent

TASK: Final = "alfworld-generated/pick_and_place/0"
_SHOWN: Final = 100
_NO_ACTION: Final = "Nothing was done. The reply holds no line that starts with 'Action:'."
_NO_REPLY: Final = "Nothing was done. The reply is empty."
_NOTHING: Final = "Nothing happens."


@dataclass(frozen=True, slots=True)
class Case:
    """A reply, and what the agent must be told of it."""

    what: str
    reply: Reply
    told: str
    """How the observation begins."""


def does(action: str) -> Reply:
    """Reply with an action in the form that is asked for."""
    return Reply(f"Thought: I try.\nAction: {action}")


CASES: Final = (
    Case("an empty reply", Reply(""), _NO_REPLY),
    Case("a reply of blanks", Reply(" \n\t\n"), _NO_REPLY),
    Case("words without an action", Reply("I would look for a mug first."), _NO_ACTION),
    Case("a call of a tool in place of words", Reply("", (ToolUse("look"),)), _NO_REPLY),
    Case("an action in JSON", Reply('{"action": "look"}'), _NO_ACTION),
    Case("100,000 characters without an action", Reply("and so on " * 10_000), _NO_ACTION),
    Case("an action line that is empty", Reply("Thought: hm.\nAction:  \n"), "Nothing was done. The action is empty."),
    Case(
        "two actions in one reply",
        Reply("Action: look\nAction: inventory"),
        "Nothing was done. The reply holds 2 actions; take one at a time.",
    ),
    Case("the action on the next line", Reply("Thought:\nHm.\n\nAction:\nlook"), "You are in the"),
    Case("an action in bold and code", Reply("**Action:** `look`"), "You are in the middle of"),
    Case("`help`", does("help"), "Available commands:"),
    Case("an action that is not admissible", does("dance"), _NOTHING),
    Case("a thing that is not there", does("take dragon 1 from cabinet 1"), _NOTHING),
    Case("something set down that is not held", does("put mug 1 in/on desk 1"), _NOTHING),
    Case("two actions in one line", does("look, inventory"), _NOTHING),
    Case("an action in other letters", does("LOOK"), _NOTHING),
    Case("an action with a period", does("look."), "You are in the middle of"),
    Case("an action in quotes", does('"look"'), "You are in the middle of"),
    Case("an action in brackets", does("[look]"), "You are in the middle of"),
    Case("thought and action in one line", Reply("Thought: hm. Action: look"), "You are in the"),
    Case(
        "a made-up observation, and what would follow",
        Reply("Thought: hm.\nAction: look\nObservation: I see it.\nThought: so.\nAction: dance"),
        "You are in the middle of",
    ),
    Case("an action after reasoning", Reply("I might dance.</think>\nAction: look"), "You are in the"),
    Case("a thought as ReAct has them", does("think: where is it?"), _NOTHING),
    Case("an action of 100,000 characters", does("look " * 20_000), _NOTHING),
    Case("NUL in an action", does("look\x00"), _NOTHING),
    Case("binary", does("".join(map(chr, [*range(1, 10), *range(14, 28), *range(127, 132)]))), _NOTHING),
    Case("half of a surrogate pair", does("look \ud83d"), _NOTHING),
    Case("text that runs from right to left", does("\u202elook"), _NOTHING),
    Case("a rule of the game's grammar", does("#look.feedback#"), _NOTHING),
    Case("a Python expression", does("{__import__('os').abort()}"), _NOTHING),
)  # fmt: skip


Script = Callable[[int], Reply]
"""Returns the reply of a round, from 0."""


class Scripted(SimulatedChatModel):
    """Says in each round what a script says; the round it reads from the messages."""

    model_name: str = "scripted"
    script: Script

    @override
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> Reply:
        """Return the reply of this round."""
        return self.script(reply_due((self.script(n).text for n in count()), messages))


def script_of(semantics: Semantics = "compat") -> tuple[Reply, ...]:
    """Give all replies, and win the game after them, in the words of the other dialect."""
    *way, last = GeneratedALFWorld(semantics=semantics)(TASK).game.walkthrough
    *thing, _, place, number = last.replace("in/on", "to").split()[1:]
    other = "put {} in/on {} {}" if last.startswith("move") else "move {} to {} {}"
    return (
        *(case.reply for case in CASES),
        *map(does, way),
        does(other.format(" ".join(thing), place, number)),
    )


def agent_of(model: BaseChatModel, rounds: int, semantics: Semantics = "compat") -> Any:
    """Build the agent that is told of them."""
    worlds = GeneratedALFWorld(semantics=semantics)
    return build_react_agent(model, environment=worlds, max_rounds=rounds)


def measure_replies(setting: Setting) -> list[Figure]:
    """Give all replies to the agent: in process, and over HTTP through ChatOpenAI."""
    setting.say("ALFWorld: replies that are not as they should be, in process and over HTTP")
    script = script_of()
    agent = agent_of(Scripted(script=script.__getitem__), len(script))
    ended = {"in process": agent.invoke({"task_id": TASK})}
    for client in ("init_chat_model", "the harness's model"):
        ended[client] = asyncio.run(_over_http(client, script))
    return [*(_row(number, ended) for number in range(len(CASES))), _whole(ended, len(script))]


async def _over_http(client: str, script: tuple[Reply, ...]) -> Mapping[str, Any]:
    async with serve(Scripted(script=script.__getitem__)) as server:
        agent = agent_of(_client(client, server.base_url), len(script))
        try:
            return dict(await agent.ainvoke({"task_id": TASK}))
        except Exception as error:  # noqa: BLE001  (what no reply may do is to be told)
            return {"reason": f"{type(error).__name__}: {error}"[:_SHOWN], "steps": []}


def _client(name: str, url: str) -> BaseChatModel:
    if name == "init_chat_model":
        return init_chat_model("openai:simulated", base_url=url, api_key="none", max_retries=0)
    return make_model("openai:simulated", base_url=url, api_key="none")


def _row(number: int, ended: Mapping[str, Mapping[str, Any]]) -> Figure:
    case = CASES[number]
    told = {way: [*_told(final), *[""] * len(CASES)][number] for way, final in ended.items()}
    wrong = [way for way, text in told.items() if not text.startswith(case.told)]
    short = " ".join(told["in process"].split())[:_SHOWN]
    return Figure(
        f"ALFWorld's agent and {case.what}",
        ", ".join(ended),
        f"“{short}”" + (f"; otherwise {', '.join(wrong)}" if wrong else ""),
        f"told “{' '.join(case.told.split())}…”",
        not wrong,
    )


def _told(final: Mapping[str, Any]) -> list[str]:
    """Return what the agent was told of each reply."""
    return [step["observation"] for step in final["steps"][1:]]


def _whole(ended: Mapping[str, Mapping[str, Any]], rounds: int) -> Figure:
    won = [way for way, final in ended.items() if final["reason"] == "goal reached"]
    same = len({str(_told(final)) for final in ended.values()}) == 1
    wrong = [f"{way}: {final['reason']}" for way, final in ended.items() if way not in won]
    return Figure(
        "None of these ends an episode or changes the world",
        f"an episode of {len(CASES)} such replies, then the game's walkthrough with its last"
        f" command in the other dialect, {rounds} rounds; {', '.join(ended)}",
        share(len(won), len(ended), wrong) + f" won, told {'the same' if same else 'not the same'}",
        "all won, told the same in all",
        not wrong and same,
    )
