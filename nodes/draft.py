"""`draft`: a tentative answer, before memory is asked, for memory that looks for contradictions."""

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable

from langgraft._core.arguments import checked
from langgraft._core.prompts import Prompt
from langgraft.memory.recall import strip_block
from langgraft.nodes.chat_models import ChatModel
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.state import AgentState, Update
from langgraft.nodes.structured import Conversation, conversation_node

NOTHING_KNOWN = "(nothing)"


@checked
def draft_node(
    model: ChatModel | None, *, prompt: Prompt | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that asks for a short answer or plan to the instruction.

    The reply is kept whole as the state's `draft`. Without a model the draft is empty, and then
    memory has nothing to ask about it.

    Args:
        model: Any chat model, or the name of one (`openai:gpt-4.1-mini`).
        prompt: Prompt with the placeholders `$task` and `$situation`.
    """
    template = prompt or shipped("draft")

    def begin(state: AgentState) -> Conversation[Update]:
        draft = yield from drafting(state["instruction"], _situation(state), template)
        return {"draft": draft}

    return conversation_node("draft", model, begin)


def drafting(task: str, situation: str = "", template: Prompt | None = None) -> Conversation[str]:
    """Ask for a draft in a conversation; see `draft_node`."""
    prompt = template or shipped("draft")
    reply = yield [HumanMessage(prompt.render(task=task, situation=situation or NOTHING_KNOWN))]
    return strip_block(reply or "").strip()


def _situation(state: AgentState) -> str:
    """Say how the world is played and what it showed last, where there is a world."""
    steps = state.get("steps", ())
    seen = strip_block(steps[-1]["observation"]) if steps else ""
    return "\n\n".join(filter(None, (state.get("world_instructions", ""), seen)))
