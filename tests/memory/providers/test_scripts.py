"""Recall in scripts that are written without spaces, with default settings."""

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.providers import make_provider

QUESTIONS = [
    ("办公室的无线网络坏了", "无线网络又坏了怎么办"),
    ("辦公室的無線網路壞了", "路"),
    ("オフィスのWi-Fiが繋がらない", "今日もオフィスのネットが遅い"),
    ("事務所の猫が好きです", "猫"),
    ("사무실 무선 네트워크가 안 됩니다", "네트워크를 고쳐 주세요"),
    ("เครือข่ายไร้สายในสำนักงานเสีย", "เครือข่ายเสียอีกแล้ว"),
    ("ເຄືອຂ່າຍຂອງຫ້ອງການເສຍ", "ເຄືອຂ່າຍເສຍອີກ"),
    ("បណ្តាញឥតខ្សែនៅការិយាល័យខូច", "បណ្តាញខូចទៀតហើយ"),
    ("ရုံးရဲ့ကြိုးမဲ့ကွန်ရက်ပျက်နေတယ်", "ကွန်ရက်ပျက်ပြန်ပြီ"),
    ("ཡིག་ཚང་གི་དྲ་རྒྱ་ཆག་སོང་", "དྲ་རྒྱ་ཡང་ཆག་སོང་"),
]


@pytest.mark.parametrize("provider", ["trajectory", "simple_rag", "self_examples", "agent_kb"])
@pytest.mark.parametrize(("task", "query"), QUESTIONS)
def test_question_when_it_shares_characters_with_a_task_then_recalls_it(
    provider: str, task: str, query: str
) -> None:
    """What shares no word with it in any script is not recalled."""
    memory = make_provider(provider, InMemoryStore())
    memory.file(make_episode("other", task="the printer is out of paper", lessons=()))
    memory.file(make_episode("same", task=task))
    recalled = memory.provide(query, asking()).items
    assert {item.episode_id for item in recalled} == {"same"}
