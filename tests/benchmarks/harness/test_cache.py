"""Kept replies: by whom they are shared, and what is never kept."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation
from langchain_tests.integration_tests.cache import AsyncCacheTestSuite, SyncCacheTestSuite

from langgraft._core.errors import InputError
from langgraft.benchmarks.harness.cache import (
    CacheMode,
    ResponseCache,
    current_replicate,
    replicate_scope,
    request_key,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a cache file in a folder that does not exist yet."""
    return tmp_path / "caches" / "replies.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[ResponseCache]:
    """Open an empty cache."""
    with ResponseCache(path) as opened:
        yield opened


def reply(text: str, **metadata: Any) -> ChatGeneration:
    """Make a reply with its token counts."""
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    message = AIMessage(text, response_metadata=metadata, usage_metadata=usage)
    return ChatGeneration(message=message)


def text_of(found: Any) -> str | None:
    """Return the text of the first reply found."""
    return found[0].text if found else None


class TestSyncSuite(SyncCacheTestSuite):
    """LangChain's standard tests for caches."""

    @pytest.fixture
    def cache(self, path: Path) -> Iterator[BaseCache]:
        """Open an empty cache."""
        with ResponseCache(path) as opened:
            yield opened


class TestAsyncSuite(AsyncCacheTestSuite):
    """LangChain's standard tests for caches, asynchronous."""

    @pytest.fixture
    async def cache(self, path: Path) -> Any:
        """Open an empty cache."""
        with ResponseCache(path) as opened:
            yield opened


def test_lookup_when_the_file_is_reopened_then_replies_are_whole(path: Path) -> None:
    """A reply comes back with its tool calls, token counts and metadata."""
    call = {"name": "look", "args": {"at": "dör"}, "id": "c1", "type": "tool_call"}
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    message = AIMessage("", tool_calls=[call], usage_metadata=usage)
    kept = [ChatGeneration(message=message, generation_info={"finish_reason": "tool_calls"})]
    with ResponseCache(path) as cache:
        cache.update("p", "m", kept)
    with ResponseCache(path, "read_only") as cache:
        assert cache.lookup("p", "m") == kept


def test_update_when_the_request_was_answered_then_the_first_answer_stays(
    cache: ResponseCache,
) -> None:
    """Answers never change: whoever is second gets the first."""
    cache.update("p", "m", [reply("first")])
    assert text_of(cache.keep("p", "m", [reply("second")])) == "first"
    assert text_of(cache.lookup("p", "m")) == "first"


@pytest.mark.parametrize(
    "bad",
    [
        reply("cut", finish_reason="length"),
        reply("cut", stop_reason="max_tokens"),
        reply("cut", done_reason="length"),
        reply("cut", incomplete_details={"reason": "max_output_tokens"}),
        reply("", finish_reason="content_filter"),
        reply("", finish_reason="SAFETY"),
        ChatGeneration(message=AIMessage("", additional_kwargs={"refusal": "I will not"})),
        ChatGeneration(message=AIMessage("x"), generation_info={"finish_reason": "error"}),
    ],
)
def test_update_when_a_reply_is_cut_short_or_refused_then_it_is_not_kept(
    cache: ResponseCache, bad: ChatGeneration
) -> None:
    """What a provider did not finish is asked again next time."""
    cache.update("p", "m", [bad])
    assert cache.lookup("p", "m") is None
    assert len(cache) == 0


def test_update_when_there_are_no_replies_then_nothing_is_kept(cache: ResponseCache) -> None:
    """An empty answer is no answer."""
    cache.update("p", "m", [])
    assert cache.lookup("p", "m") is None


def test_lookup_when_another_replicate_asks_then_it_gets_its_own_answer(
    cache: ResponseCache,
) -> None:
    """Repetitions of a run do not share answers; the same repetition does."""
    for name in ("run-0", "run-1"):
        with replicate_scope(name):
            assert cache.lookup("p", "m") is None
            cache.update("p", "m", [reply(name)])
    for name in ("run-1", "run-0"):
        with replicate_scope(name):
            assert text_of(cache.lookup("p", "m")) == name
    assert cache.lookup("p", "m") is None


def test_replicate_scope_when_nested_then_names_join_and_end_with_the_block() -> None:
    """A probe within a run is a replicate of its own."""
    with replicate_scope("run-0"):
        with replicate_scope("probe-3") as name:
            assert name == current_replicate() == "run-0/probe-3"
        assert current_replicate() == "run-0"
    assert current_replicate() == ""


def test_lookup_when_read_only_and_unknown_then_it_is_an_error(path: Path) -> None:
    """A replay must not ask anything new, and keeps nothing."""
    with ResponseCache(path) as cache:
        cache.update("p", "m", [reply("kept")])
    with ResponseCache(path, CacheMode.READ_ONLY) as cache:
        assert text_of(cache.lookup("p", "m")) == "kept"
        with (
            pytest.raises(InputError, match=r"no reply is kept .* 'run-0'"),
            replicate_scope("run-0"),
        ):
            cache.lookup("p", "m")
        cache.update("q", "m", [reply("new")])
        assert len(cache) == 1
        with pytest.raises(InputError, match="cannot be cleared"):
            cache.clear()


def test_cache_when_off_then_nothing_happens_at_all(path: Path) -> None:
    """`off` answers nothing, keeps nothing and makes no file."""
    cache = ResponseCache(path, "off")
    cache.update("p", "m", [reply("new")])
    cache.clear()
    assert cache.lookup("p", "m") is None
    assert len(cache) == 0
    assert not path.exists()


@pytest.mark.parametrize("mode", ["read_write", "read_only"])
def test_cache_when_the_file_is_something_else_then_it_says_so_and_leaves_it(
    tmp_path: Path, mode: str
) -> None:
    """A wrong path destroys nothing."""
    text = tmp_path / "notes.txt"
    text.write_text("these are my notes " * 100)
    database = tmp_path / "other.sqlite"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    for path in (text, database):
        before = path.read_bytes()
        with pytest.raises(InputError, match=path.name):
            ResponseCache(path, mode)
        assert path.read_bytes() == before


def test_cache_when_it_cannot_be_opened_then_the_path_is_named(tmp_path: Path) -> None:
    """A missing file in `read_only`, a folder, and a file as a folder are the user's mistakes."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"missing\.sqlite"):
        ResponseCache(tmp_path / "missing.sqlite", "read_only")
    with pytest.raises(InputError, match="a response cache cannot be used"):
        ResponseCache(tmp_path)
    with pytest.raises(InputError, match="a response cache cannot be used"):
        ResponseCache(tmp_path / "file" / "replies.sqlite")
    with pytest.raises(InputError, match="'sometimes' is none of read_write, read_only, off"):
        ResponseCache(tmp_path / "x.sqlite", "sometimes")


def test_cache_when_its_file_is_cut_then_says_what_to_do(path: Path) -> None:
    """A cache that lost its end is refused wherever it was cut; no reply is taken from half of it."""
    with ResponseCache(path) as cache:
        for number in range(30):
            cache.update(f"{number}", "model", [reply("long " * 100)])
    data = path.read_bytes()
    for size in range(1, len(data), 499):
        path.write_bytes(data[:size])
        with pytest.raises(
            InputError, match=r"not a response cache, or damaged .* delete the file"
        ):
            ResponseCache(path)


def test_lookup_when_a_value_names_another_class_then_it_is_not_built(
    cache: ResponseCache, path: Path
) -> None:
    """A cache file from elsewhere cannot make this process construct arbitrary objects."""
    planted = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "chat_models", "openai", "ChatOpenAI"],
        "kwargs": {"model": "x", "base_url": "http://example.test"},
    }
    value = [{"text": "", "info": None, "message": {"content": [planted]}}]
    with sqlite3.connect(path) as connection:
        row = (request_key("p", "m"), json.dumps(value))
        connection.execute("INSERT INTO replies VALUES (?, ?)", row)
    connection.close()
    found = cache.lookup("p", "m")
    assert found == [ChatGeneration(message=AIMessage([planted]))]


def test_update_when_a_reply_is_no_json_then_it_says_so(cache: ResponseCache) -> None:
    """What cannot be kept faithfully is not kept at all."""
    with pytest.raises(InputError, match="cannot be kept as JSON"):
        cache.update("p", "m", [reply("x", raw=object())])
    assert len(cache) == 0


def test_keep_when_many_threads_answer_then_all_get_the_same_answer(cache: ResponseCache) -> None:
    """Threads may share one cache; each request has one answer."""

    def work(number: int) -> str | None:
        return text_of(cache.keep(f"p{number % 5}", "m", [reply(f"answer {number}")]))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(200)))
    assert len(cache) == 5
    for number, answer in enumerate(answers):
        assert answer == text_of(cache.lookup(f"p{number % 5}", "m"))


WORKER = """
import sys
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration
from langgraft.benchmarks.harness.cache import ResponseCache

path, worker = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with ResponseCache(path) as cache:
    for number in range(40):
        reply = ChatGeneration(message=AIMessage(f"{worker}: {number}"))
        print(cache.keep(f"p{number}", "m", [reply])[0].text)
"""


def test_keep_when_processes_share_a_file_then_all_get_the_same_answers(path: Path) -> None:
    """Workers that open one new file at the same moment lose nothing and agree."""
    command = [sys.executable, "-c", WORKER, str(path)]
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen([*command, name], stdin=pipe, stdout=pipe, text=True) for name in "abc"
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    answers = [worker.communicate()[0].splitlines() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert answers[0] == answers[1] == answers[2]
    with ResponseCache(path, "read_only") as cache:
        assert [text_of(cache.lookup(f"p{number}", "m")) for number in range(40)] == answers[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_cache_when_the_process_forks_then_the_child_opens_its_own_connection(
    cache: ResponseCache,
) -> None:
    """A forked worker neither uses nor closes its parent's connection."""
    cache.update("p", "m", [reply("parent")])
    child = os.fork()
    if child == 0:
        good = text_of(cache.lookup("p", "m")) == "parent"
        cache.update("q", "m", [reply("child")])
        cache.close()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert text_of(cache.lookup("q", "m")) == "child"


def test_lookup_when_plain_generations_were_kept_then_they_come_back(cache: ResponseCache) -> None:
    """Any LangChain model may use the cache, not only ours."""
    cache.update("p", "m", [Generation(text="plain")])
    assert cache.lookup("p", "m") == [Generation(text="plain")]
