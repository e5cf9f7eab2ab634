"""Kept replies: by whom they are shared, and what is never kept."""

import inspect
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, Generation
from langchain_tests.integration_tests.cache import AsyncCacheTestSuite, SyncCacheTestSuite

from langgraft._core.errors import InputError
from langgraft.benchmarks.harness.cache import (
    MOST_CHARACTERS,
    CacheMode,
    Request,
    ResponseCache,
    key_text,
)
from langgraft.benchmarks.harness.exchange import OPERATIONAL, request_texts
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.harness.usage import current_replicate, replicate_scope


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
    assert text_of(cache.keep(Request.now("p", "m"), [reply("second")])) == "first"
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
        row = (Request.now("p", "m").key, json.dumps(value))
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
        return text_of(cache.keep(Request.now(f"p{number % 5}", "m"), [reply(f"answer {number}")]))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(200)))
    assert len(cache) == 5
    for number, answer in enumerate(answers):
        assert answer == text_of(cache.lookup(f"p{number % 5}", "m"))


WORKER = """
import sys
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration
from langgraft.benchmarks.harness.cache import Request, ResponseCache

path, worker = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with ResponseCache(path) as cache:
    for number in range(40):
        reply = ChatGeneration(message=AIMessage(f"{worker}: {number}"))
        print(cache.keep(Request.now(f"p{number}", "m"), [reply])[0].text)
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


def test_cache_when_another_process_is_making_its_tables_waits_for_them(path: Path) -> None:
    """Whoever comes while a new file has its log and no tables yet does not make them, too."""
    path.parent.mkdir()
    with FileLock(f"{path}.lock"):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        comes = threading.Thread(target=ResponseCache, args=(path,))
        comes.start()
        comes.join(0.2)
        with closing(sqlite3.connect(path)) as connection:
            assert not connection.execute("SELECT * FROM sqlite_master").fetchall()
    comes.join()
    with ResponseCache(path, "read_only") as cache:
        assert len(cache) == 0


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


# What decides an answer --------------------------------------------------------------------

IDENTITY = frozenset(
    """
    model_name model temperature seed n top_p stop stop_sequences max_tokens max_completion_tokens
    max_output_tokens presence_penalty frequency_penalty logit_bias logprobs top_logprobs model_kwargs
    reasoning_effort reasoning verbosity text instructions input messages prompt image audio modalities
    tools tool_choice functions function_call parallel_tool_calls max_tool_calls response_format
    prediction web_search_options moderation truncation context_management conversation
    previous_response_id use_previous_response_id use_responses_api include include_response_headers
    output_version background background_options access_programs disabled_params service_tier store
    extra_body extra_query default_query openai_api_base base_url azure_endpoint deployment_name
    azure_deployment openai_api_version api_version model_version
    """.split()  # noqa: SIM905  (a list of words is read at a glance)
)


def parameters() -> set[str]:
    """Name all that a client of OpenAI's family is made with, and all that a call takes."""
    from langchain_openai import AzureChatOpenAI, ChatOpenAI  # noqa: PLC0415  (a second)
    from openai.resources.chat.completions import Completions  # noqa: PLC0415
    from openai.resources.responses import Responses  # noqa: PLC0415

    names = {
        name
        for kind in (ChatOpenAI, AzureChatOpenAI)
        for field, info in kind.model_fields.items()
        for name in (field, info.alias)
        if name
    }
    for create in (Completions.create, Responses.create):
        names |= inspect.signature(create).parameters.keys() - {"self"}
    return names


def test_parameters_of_chat_models_when_listed_are_identity_or_operational() -> None:
    """Whoever updates the client says of each new parameter whether it decides an answer."""
    assert not parameters() - IDENTITY - OPERATIONAL
    assert not OPERATIONAL - parameters()
    assert not IDENTITY & OPERATIONAL


def test_key_when_a_setting_is_operational_is_the_same_and_else_another() -> None:
    """A setting that nobody knows might decide the answer."""
    asked = [HumanMessage("hi")]
    plain = request_texts({"model": "m"}, asked, {})
    assert request_texts({"model": "m"}, asked, dict.fromkeys(OPERATIONAL, "x")) == plain
    for name in (*sorted(IDENTITY), "one_of_next_year"):
        assert request_texts({"model": "m"}, asked, {name: "x"}) != plain, name


def test_key_when_a_setting_holds_a_secret_does_not_tell_it() -> None:
    """Keys within settings are no part of the question; the schema of a tool is one, whole."""
    schema = {"type": "object", "properties": {"authorization": {"type": "string"}}}
    held = {
        "extra_body": {"route": "a", "api_key": "sk-hidden"},
        "tools": [
            {
                "type": "mcp",
                "headers": {"Authorization": "sk-hidden"},
                "authorization": "sk-hidden",
            },
            {"type": "function", "function": {"name": "headers", "parameters": schema}},
        ],
    }
    _, text = request_texts({}, [], held)
    assert "sk-hidden" not in text
    assert json.dumps(schema, separators=(",", ":"), sort_keys=True) in text
    with pytest.raises(InputError, match=r"model_settings\.extra_body\.api_key may be a secret"):
        make_model("openai:m", settings={"extra_body": held["extra_body"]})
    model = make_model("openai:m", api_key="sk-hidden", settings={"extra_body": {"route": "a"}})
    assert "sk-hidden" not in str(model.identity)
    assert model.identity["settings"] == {"extra_body": {"route": "a"}}


# Replays -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicate", "model", "prompt", "told"),
    [
        ("run-1", '{"identity":{"model":"m"}}', '["one","two"]', "the replicate (kept 'run-0', a"),
        (
            "run-0",
            '{"identity":{"model":"n"}}',
            '["one","two"]',
            "identity.model (kept 'm', asked 'n')",
        ),
        ("run-0", "another text", '["one","two"]', "identity.model (kept 'm', asked None)"),
        (
            "run-0",
            '{"identity":{"model":"m"}}',
            '["one","tow"]',
            "message 2 (of 2, there 2) of the pro",
        ),
        ("run-0", '{"identity":{"model":"m"}}', "plain", "the prompt (kept '["),
    ],
)
def test_lookup_when_a_replay_misses_then_says_what_differs(
    path: Path, replicate: str, model: str, prompt: str, told: str
) -> None:
    """The kept request that is most like the one that is asked tells why there is no reply."""
    with ResponseCache(path) as cache, replicate_scope("run-0"):
        cache.update('["one","two"]', '{"identity":{"model":"m"}}', [reply("kept")])
        cache.update('["far"]', "far", [reply("kept")])
    with (
        ResponseCache(path, "read_only") as cache,
        replicate_scope(replicate),
        pytest.raises(InputError) as caught,
    ):
        cache.lookup(prompt, model)
    assert told in str(caught.value)


def test_lookup_when_the_file_is_of_before_requests_were_kept_then_answers_and_says_so(
    path: Path,
) -> None:
    """What was paid for stays good, read alone or written to."""
    with ResponseCache(path) as cache:
        cache.update("p", "m", [reply("kept")])
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE requests")
    connection.close()
    with ResponseCache(path, "read_only") as cache:
        assert text_of(cache.lookup("p", "m")) == "kept"
        with pytest.raises(InputError, match="nothing is known of the requests"):
            cache.lookup("q", "m")
        assert cache.stats()["replies"] == 1
    with ResponseCache(path) as cache:
        cache.update("q", "m", [reply("new")])
        assert cache.stats() == {
            "replies": 2,
            "with_request": 1,
            "replicates": 1,
            "bytes": cache.stats()["bytes"],
            "models": {"unknown": 1},
        }
        assert cache.export(io.BytesIO()) == (1, 1)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="only where users have numbers")
def test_lookup_when_the_folder_cannot_be_written_to_then_answers(cache: ResponseCache) -> None:
    """Replies of others may lie where nobody but they may write."""
    cache.update("p", "m", [reply("kept")])
    cache.close()
    with tempfile.TemporaryDirectory() as name:
        folder, me = Path(name), os.geteuid()
        shutil.copy(cache.path, folder / "kept.sqlite")
        folder.chmod(0o555)
        if me == 0:
            os.seteuid(65534)
        try:
            with ResponseCache(folder / "kept.sqlite", "read_only") as kept:
                assert text_of(kept.lookup("p", "m")) == "kept"
        finally:
            os.seteuid(me)
            folder.chmod(0o755)


# A bound -----------------------------------------------------------------------------------


def test_keep_when_the_file_is_full_then_keeps_what_there_is_and_says_so_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing goes that a run may have been answered from; what is new is used, and not kept."""
    with ResponseCache(path, most_bytes=200_000) as cache:
        for number in range(300):
            assert text_of(cache.keep(Request.now(f"p{number}", "m"), [reply(f"{number} " * 400)]))
        kept = [number for number in range(300) if cache.lookup(f"p{number}", "m")]
    assert kept == [*range(len(kept))]
    assert 20 < len(kept) < 250
    assert path.stat().st_size <= 200_000 + 8192
    assert [message.partition(": ")[2][:4] for message in caplog.messages] == ["full"]


def test_trim_when_nobody_has_it_open_then_the_oldest_go_and_the_file_shrinks(path: Path) -> None:
    """Who is answered from a file keeps it from being trimmed."""
    with ResponseCache(path) as cache:
        for number in range(300):
            cache.update(f"p{number}", "m", [reply(f"{number} " * 400)])
        with ResponseCache(path, most_bytes=100_000) as other:
            with pytest.raises(InputError, match="is in use"):
                other.trim()
            assert len(other) == 300
            cache.close()
            gone = other.trim()
        assert [bool(cache.lookup(f"p{number}", "m")) for number in range(300)] == [
            *([False] * gone),
            *([True] * (300 - gone)),
        ]
        assert 200 < gone < 300
        assert cache.stats()["with_request"] == len(cache)
    assert path.stat().st_size <= 100_000


# Exports -----------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
CALLS = st.builds(
    lambda name, args, ident: {"name": name, "args": args, "id": ident, "type": "tool_call"},
    TEXTS,
    st.dictionaries(TEXTS, VALUES, max_size=3),
    TEXTS,
)
MESSAGES = st.builds(
    lambda text, calls, metadata: AIMessage(
        f"x{text}", tool_calls=calls, response_metadata={"data": metadata}
    ),
    st.text(max_size=30),
    st.lists(CALLS, max_size=2),
    VALUES,
)
REPLIES = st.builds(
    lambda message, info: ChatGeneration(message=message, generation_info=info),
    MESSAGES,
    st.none() | st.fixed_dictionaries({"info": VALUES}),
) | st.builds(lambda text: Generation(text=f"x{text}"), TEXTS)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.text(max_size=20), TEXTS, REPLIES), max_size=5))
def test_export_when_imported_elsewhere_is_the_same_to_the_byte(
    tmp_path_factory: pytest.TempPathFactory, kept: list[tuple[str, str, str, Generation]]
) -> None:
    """What was answered is answered there, whatever models and prompts hold."""
    folder = tmp_path_factory.mktemp("round")
    with ResponseCache(folder / "one.sqlite") as one, ResponseCache(folder / "two.sqlite") as two:
        for replicate, prompt, model, answer in kept:
            with replicate_scope(replicate):
                one.update(key_text(prompt), model, [answer])
        there = exported(one)
        assert two.bring_in(io.BytesIO(there), "there") == (len(one), 0)
        assert two.bring_in(io.BytesIO(there), "there") == (0, len(one))
        assert exported(two) == there
        for replicate, prompt, model, _ in kept:
            with replicate_scope(replicate):
                found = (each.lookup(key_text(prompt), model) for each in (one, two))
                assert len({repr(each) for each in found}) == 1


def exported(cache: ResponseCache) -> bytes:
    """Return the lines of a cache."""
    out = io.BytesIO()
    assert cache.export(out) == (len(cache), 0)
    return out.getvalue()


def test_export_when_a_secret_was_said_then_leaves_it_out(cache: ResponseCache) -> None:
    """A key that an agent has printed stays here."""
    cache.update("p", "m", [reply("your key is sk-\u00e9-hidden")])
    cache.update('my key is "sk-\u00e9-hidden"', "m", [reply("do not tell")])
    cache.update("q", "m", [reply("fine")])
    out = io.BytesIO()
    assert cache.export(out, ["sk-\u00e9-hidden"]) == (1, 2)
    assert b"hidden" not in out.getvalue()


def changed(**fields: Any) -> Callable[[list[Any]], None]:
    """Return a change of the fields of the second reply."""
    return lambda lines: lines[2].update(fields)


def answered(**fields: Any) -> Callable[[list[Any]], None]:
    """Return a change of the second reply's message."""
    return lambda lines: lines[2]["replies"][0]["message"].update(fields)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda lines: lines[0].update(format="something"),
            "line 1: no export of a response cache",
        ),
        (lambda lines: lines[0].update(version=2), "line 1: version 2; this langgraft reads 1"),
        (lambda lines: lines.insert(2, ["x"]), "line 3: not what an export holds"),
        (changed(prompt="another"), "line 3: its key is not that of its request"),
        (changed(replicate="another"), "line 3: its key is not that of its request"),
        (changed(key="0" * 64), "line 3: its key is not that of its request"),
        (changed(prompt=5), "line 3: replicate, model and prompt are texts"),
        (changed(more=5), "line 3: its fields are key, model"),
        (changed(replies=[]), "line 3: a reply that is truncated"),
        (changed(replies=[5]), "line 3: not what an export holds"),
        (changed(replies=[{"text": "x"}]), "line 3: not what an export holds"),
        (answered(content=""), "line 3: a reply that is truncated"),
        (answered(response_metadata={"finish_reason": "length"}), "line 3: a reply that is trunc"),
        (answered(additional_kwargs={"refusal": "no"}), "line 3: a reply that is truncated"),
        (answered(type="human"), "line 3: .*type"),
        (answered(content={"a": 1}), "line 3: .*content"),
        (answered(content="x" * (MOST_CHARACTERS + 1)), "line 3: is larger than 16,777,216 bytes"),
        (lambda lines: lines.pop(1), "line 3: it says 2 replies, and there are 1"),
        (lambda lines: lines.pop(), "it breaks off"),
        (lambda lines: lines.append(lines[1]), "line 5: the export ends before it"),
    ],
)
def test_import_when_a_line_is_no_good_then_says_which_and_changes_nothing(
    cache: ResponseCache, tmp_path: Path, change: Callable[[list[Any]], None], told: str
) -> None:
    """An export may be anybody's: no reply gets under a key that is not its own."""
    cache.update("p", "m", [reply("one")])
    cache.update("q", "m", [reply("two")])
    lines = [json.loads(line) for line in exported(cache).splitlines()]
    change(lines)
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with ResponseCache(tmp_path / "other.sqlite") as other:
        with pytest.raises(InputError, match=f"export.jsonl: {told}.*nothing is imported"):
            other.bring_in(io.BytesIO(data), "export.jsonl")
        assert len(other) == 0


@pytest.mark.parametrize("line", [b"not JSON", b"[" * 200 + b"]" * 200, b"\xff\xfe"])
def test_import_when_a_line_cannot_be_read_then_says_which(
    cache: ResponseCache, line: bytes
) -> None:
    """Neither depth nor bytes that are no text get further."""
    cache.update("p", "m", [reply("one")])
    head, *rest = exported(cache).splitlines()
    with pytest.raises(InputError, match="x: line 2: "):
        cache.bring_in(io.BytesIO(b"\n".join([head, line, *rest])), "x")


def test_import_when_it_would_be_too_large_then_refused_and_what_is_kept_stays(
    cache: ResponseCache, tmp_path: Path
) -> None:
    """The bound holds for imports; a request that is answered keeps its answer."""
    for number in range(100):
        cache.update(f"p{number}", "m", [reply(f"{number} " * 400)])
    lines = exported(cache)
    with ResponseCache(tmp_path / "small.sqlite", most_bytes=100_000) as small:
        small.update("p7", "m", [reply("its own")])
        with pytest.raises(InputError, match="more than 100,000 bytes; nothing is imported"):
            small.bring_in(io.BytesIO(lines), "x")
        assert len(small) == 1
        small.most_bytes = 10_000_000
        assert small.bring_in(io.BytesIO(lines), "x") == (99, 1)
        assert text_of(small.lookup("p7", "m")) == "its own"
