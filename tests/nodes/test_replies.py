"""What counts as said, and conversations made of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraft.nodes.replies import in_turns, reply_text


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (" Thought: hm\n", " Thought: hm\n"),
        ("<think>\n```python\nprint(1)\n```\n</think>\n\nNo.", "No."),
        ("Yes. <thinking>or no</thinking> No.<think>but", "Yes. No."),
        ("It ends with </think>, so\n</think>\nAction: a", "Action: a"),
        ("<think>it ends with </think>, so\n</think>\nAction: a", "Action: a"),
        ("<think>never ended", ""),
        ("half \ud83d", "half ?"),
    ],
)
def test_reply_when_read_is_word_for_word_but_for_reasoning(said: str, kept: str) -> None:
    """Blanks stay; reasoning goes, and what no file holds becomes a question mark."""
    assert reply_text(AIMessage(said)) == kept


def test_text_when_it_is_not_a_reply_keeps_what_looks_like_reasoning() -> None:
    """What a tool shows is the world's."""
    assert reply_text(ToolMessage("<think>x", tool_call_id="1")) == "<think>x"


texts = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(["", " ", "\n\t"])


answers = texts.map(lambda text: text if text.strip() else f"{text}.")


@given(st.lists(st.tuples(texts, answers), max_size=6))
def test_turns_when_made_show_replies_as_they_came_and_alternate(
    exchanges: list[tuple[str, str]],
) -> None:
    """Only replies that hold nothing are missing, and what was said to them is not."""
    asked: list[BaseMessage] = [HumanMessage("?")]
    turns = in_turns(
        asked + [each for s, a in exchanges for each in (AIMessage(s), HumanMessage(a))]
    )
    replies = [each.text for each in turns if isinstance(each, AIMessage)]
    assert replies == [said for said, _ in exchanges if said.strip()]
    assert [each.type for each in turns] == ["human", *["ai", "human"] * len(replies)]
    told = "\n\n".join(each.text for each in turns if isinstance(each, HumanMessage))
    assert told == "\n\n".join(["?", *(answer for _, answer in exchanges)])
