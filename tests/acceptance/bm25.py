"""BM25: bm25s' scores, and a ranking that depends on the documents alone."""

import asyncio
import json
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import bm25s
from langgraph.store.memory import InMemoryStore

from acceptance.command import run, worker_environment
from acceptance.figure import Figure, Setting, share
from langgraft._core.canonical import digest
from langgraft.environments.babyai import LEVELS, BabyAIEnvironment
from langgraft.memory.rankers import BM25, RankerIndex, tokenize
from langgraft.memory.rankers.base import Document, put_all
from langgraft.memory.rankers.lexical import inverse_document_frequency
from langgraft.memory.stores.ranked import RankedStore

TOLERANCE = 1e-5
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
BOTH = (False, True)
"""An index that documents are put into one by one, and one that takes them at once."""


def measure(setting: Setting) -> list[Figure]:
    """Compare scores with bm25s, and rankings with one another."""
    count = setting.size(3000, 300)
    texts, source = real_texts(setting.checkout, count)
    corpus, queries = texts[: -count // 10], texts[-count // 10 :]
    setting.say(f"BM25 against bm25s on {source}")
    how = f"{len(queries)} queries over {len(corpus)} texts of {source}"
    return [
        _equal(
            corpus,
            [" ".join(tokenize(q)[:30]) for q in queries],
            "float32",
            f"{how}, 30 words each",
        ),
        _equal(corpus, queries, "float64", f"{how}, whole texts, bm25s in float64"),
        _positive(corpus, source),
        _monotone(setting.size(20_000, 2_000)),
        _exact_first(corpus, setting.size(2_000, 200), source),
        _any_order(corpus, queries[: setting.size(50, 20)], source),
        _threads(setting),
        asyncio.run(_async(corpus, queries[: setting.size(50, 20)], source)),
    ]


def real_texts(checkout: Path, count: int) -> tuple[list[str], str]:
    """Return real texts, and whose: MATH problems where they are, else BabyAI's observations."""
    data = Path(os.environ.get("LANGGRAFT_DATA", checkout.parent / "shared" / "data"))
    path = data / "math" / "train.jsonl"
    if path.is_file():
        with path.open(encoding="utf-8") as lines:
            problems = [
                json.loads(line)["problem"] for line, _ in zip(lines, range(count), strict=False)
            ]
        return problems, "MATH problems"
    seen = [
        BabyAIEnvironment(LEVELS[number % len(LEVELS)], number).reset().observation
        for number in range(count)
    ]
    return seen, "BabyAI observations (LANGGRAFT_DATA with math/train.jsonl is absent)"


def _index(texts: Sequence[str], *, at_once: bool = False) -> RankerIndex:
    index = BM25().index()
    documents = [Document(place, text, (place,)) for place, text in enumerate(texts)]
    if at_once:
        put_all(index, documents)
        return index
    for each in documents:
        index.put(each.id, each.text, each.order)
    return index


def _equal(corpus: Sequence[str], queries: Sequence[str], dtype: str, how: str) -> Figure:
    oracle = bm25s.BM25(k1=1.5, b=0.75, method="lucene", dtype=dtype)
    oracle.index([tokenize(text) for text in corpus], show_progress=False)
    indexes = [_index(corpus, at_once=at_once) for at_once in BOTH]
    largest = 0.0
    for query in queries:
        known = [token for token in tokenize(query) if token in oracle.vocab_dict]
        theirs = oracle.get_scores(known) if known else [0.0] * len(corpus)
        for index in indexes:
            ours = {hit.id: hit.score for hit in index.search(query, limit=len(corpus))}
            gaps = (abs(ours.get(place, 0.0) - float(score)) for place, score in enumerate(theirs))
            largest = max(largest, *gaps)
    return Figure(
        "BM25 scores are those of bm25s, `lucene`",
        how,
        f"largest difference {largest:.1e}",
        f"≤ {TOLERANCE:g}",
        largest <= TOLERANCE,
    )


def _positive(corpus: Sequence[str], source: str) -> Figure:
    documents: dict[str, int] = {"the": len(corpus)}  # as if every text held it
    for text in corpus:
        for term in set(tokenize(text)):
            documents[term] = documents.get(term, 0) + (term != "the")
    idf = {
        term: inverse_document_frequency(count, corpus=len(corpus))
        for term, count in documents.items()
    }
    term = min(idf, key=lambda each: idf[each])
    return Figure(
        "Every matching term is worth something",
        f"{len(idf):,} terms of {len(corpus)} {source}, one of them held to be in every text",
        f"smallest idf {idf[term]:.1e} ({term!r}, in {documents[term]} texts)",
        "> 0",
        idf[term] > 0,
    )


def _monotone(trials: int) -> Figure:
    chance = random.Random(5)
    words = [f"w{number}" for number in range(12)]
    lower = 0
    for trial in range(trials):
        corpus = [chance.choices(words, k=chance.randint(1, 9)) for _ in range(6)]
        query = chance.sample(words, k=chance.randint(1, 4))
        corpus[0].append("filler")
        before = _score(corpus, query, at_once=bool(trial % 2))
        corpus[0][-1] = chance.choice(query)
        lower += _score(corpus, query, at_once=bool(trial % 2)) < before
    return Figure(
        "One more query term at equal length never lowers a score",
        f"{trials:,} random corpora",
        f"lowered in {lower}",
        "0",
        lower == 0,
    )


def _score(corpus: Sequence[Sequence[str]], query: Sequence[str], *, at_once: bool) -> float:
    hits = _index([" ".join(words) for words in corpus], at_once=at_once)
    found = {hit.id: hit.score for hit in hits.search(" ".join(query), limit=len(corpus))}
    return found.get(0, 0.0)


def _exact_first(corpus: Sequence[str], count: int, source: str) -> Figure:
    """Cut texts to sets of eight different words, and look each up."""
    cut = (sorted(set(tokenize(text)), key=tokenize(text).index)[:8] for text in corpus)
    texts = [" ".join(words) for words in {frozenset(w): w for w in cut if len(w) == 8}.values()]
    indexes = [_index(texts, at_once=at_once) for at_once in BOTH]
    asked = list(enumerate(texts))[:count]
    missed = [
        text
        for index in indexes
        for place, text in asked
        if index.search(text, limit=1)[0].id != place
    ]
    total = len(asked) * len(indexes)
    return Figure(
        "Among texts of equal length without repeats, the exact match ranks first",
        f"{len(texts)} texts of 8 words from {source}, both indexes",
        share(total - len(missed), total),
        "all",
        total > 0 and not missed,
    )


def _any_order(corpus: Sequence[str], queries: Sequence[str], source: str) -> Figure:
    """Write the same documents in other orders, with overwriting and removing on the way."""
    chance = random.Random(7)
    expected = _rankings(_index(corpus), queries)
    orders, same = 6, 0
    for _ in range(orders):
        index = BM25().index()
        places = chance.sample(range(len(corpus)), k=len(corpus))
        for place in places:
            index.put(place, corpus[chance.choice(places)], (place,))
            index.put(-1 - place, corpus[place], (-1 - place,))
        for place in chance.sample(places, k=len(places)):
            index.put(place, corpus[place], (place,))
            index.remove(-1 - place)
        same += _rankings(index, queries) == expected
    return Figure(
        "The ranking does not depend on how the documents came to be there",
        f"{orders} random histories of {len(corpus)} {source}, {len(queries)} queries",
        share(same, orders) + " the same to the last bit",
        "all",
        same == orders,
    )


def _rankings(index: RankerIndex, queries: Sequence[str]) -> str:
    return digest(
        [
            [[str(hit.id), hit.score.hex()] for hit in index.search(query, limit=20)]
            for query in queries
        ]
    )


def drawn_rankings(documents: int) -> str:
    """Return a digest of rankings over drawn texts, to compare between processes."""
    chance = random.Random(0)
    texts = [
        " ".join(f"w{int(chance.paretovariate(0.6)) % 500}" for _ in range(30))
        for _ in range(documents)
    ]
    return digest([_rankings(_index(texts, at_once=at_once), texts[:50]) for at_once in BOTH])


def _threads(setting: Setting) -> Figure:
    documents = setting.size(10_000, 1_000)
    program = f"from acceptance.bm25 import drawn_rankings;print(drawn_rankings({documents}))"
    printed = []
    for threads in ("1", "2"):
        environment = {**worker_environment(), **dict.fromkeys(THREADS, threads)}
        done = run([sys.executable, "-c", program], environment=environment)
        printed.append(done.stdout.strip() or done.stderr.strip()[-200:])
    return Figure(
        "The ranking is the same with 1 and 2 threads",
        f"{documents:,} drawn texts, 50 queries, two processes",
        f"digests {' and '.join(text[:12] for text in printed)}",
        "equal",
        printed[0] == printed[1] == drawn_rankings(documents),
    )


async def _async(corpus: Sequence[str], queries: Sequence[str], source: str) -> Figure:
    store, namespace = RankedStore(InMemoryStore(), BM25(), field="text"), ("texts",)
    for place, text in enumerate(corpus):
        store.put(namespace, f"{place:06}", {"text": text})
    same = 0
    for query in queries:
        now = store.search(namespace, query=query, limit=20)
        later = await store.asearch(namespace, query=query, limit=20)
        same += [(hit.key, hit.score) for hit in now] == [(hit.key, hit.score) for hit in later]
    return Figure(
        "Sync and async rank the same",
        f"`RankedStore` over {len(corpus)} {source}",
        share(same, len(queries)) + " queries",
        "all",
        same == len(queries),
    )
