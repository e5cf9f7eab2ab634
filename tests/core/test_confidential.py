"""Secrets: what a plan, an experiment and a model's settings refuse, and what no message shows."""

import base64
import logging
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from langgraft._core.arguments import Settings, validation_as
from langgraft._core.confidential import HIDDEN, without_secrets
from langgraft._core.errors import InputError, LanggraftError, PlanError, SettingsError
from langgraft.benchmarks.ablation import Experiment
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.harness.plans import plan_from_data
from langgraft.benchmarks.studies import shipped_plans, studies
from langgraft.cli.ending import Printable, told_of

# Put together here, so that no scanner of repositories takes them for real ones.
RANDOM = "Zq8Rk2Lw9Xv4Tn6Yb1Mc7Hd3Jf5"
LOWER = "q8k2w9v4n6b1c7d3f5z0x8r2t6m1"
OPAQUE = "hunter2-opaque"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{RANDOM}"
PEM = f"-----BEGIN {'RSA PRIVATE'} KEY-----\nMIIEowIBAAKCAQEA\n7x9/abc==\n-----END RSA PRIVATE KEY-----"

FORMS = {
    "openai": "sk-" + "abcdefghijklmnopqrst" * 2,
    "openai-project": f"sk-proj-{RANDOM}",
    "anthropic": f"sk-ant-api03-{RANDOM}",
    "openrouter": f"sk-or-v1-{LOWER}",
    "langfuse": f"pk-lf-{LOWER}",
    "google": f"AIza{'Sy'}{RANDOM}",
    "google-oauth": f"ya29.{RANDOM}",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "aws-session": "ASIA" + "IOSFODNN7EXAMPLE",
    "github": f"ghp_{RANDOM}",
    "github-oauth": f"gho_{RANDOM}",
    "github-fine": f"github_pat_11ABC_{RANDOM}",
    "gitlab": f"glpat-{RANDOM}",
    "slack": f"xoxb-123456789012-{RANDOM}",
    "slack-app": f"xapp-1-{RANDOM}",
    "slack-hook": f"https://hooks.slack.com/services/T0001/B0001/{'abcdefgh'}",
    "huggingface": f"hf_{RANDOM}",
    "groq": f"gsk_{RANDOM}",
    "xai": f"xai-{RANDOM}",
    "stripe": f"sk_live_{RANDOM}",
    "stripe-restricted": f"rk_live_{RANDOM}",
    "npm": f"npm_{RANDOM}",
    "pypi": f"pypi-AgEI{RANDOM}",
    "sendgrid": f"SG.{RANDOM[:22]}.{RANDOM}",
    "langsmith": f"lsv2_pt_{LOWER}",
    "perplexity": f"pplx-{LOWER}",
    "nvidia": f"nvapi-{RANDOM}",
    "replicate": f"r8_{RANDOM}",
    "databricks": "dapi" + "0123456789abcdef" * 2,
    "vault": f"hvs.{RANDOM}",
    "telegram": f"123456789:AA{RANDOM}abcdefg",
    "jwt": JWT,
    "pem": PEM,
    "pem-openssh": PEM.replace("RSA PRIVATE", "OPENSSH PRIVATE"),
    "bearer": f"Bearer {OPAQUE}",
    "bearer-lower": f"authorization: bearer {OPAQUE}",
    "basic": "Basic dXNlcjpwYXNzd29yZA==",
    "url": f"https://ada:{OPAQUE}@example.org/v1",
    "url-token": f"https://{OPAQUE}-and-more@example.org/v1",
    "database": f"postgresql://ada:{OPAQUE}@db/app",
    "query-key": f"https://example.org/v1?key={OPAQUE}",
    "query-token": f"https://example.org/v1?a=1&token={OPAQUE}",
    "query-sig": f"https://example.org/blob?sv=2024&sig={OPAQUE}",
    "query-api-key": f"https://example.org/v1?api-key={OPAQUE}",
    "azure-sas": f"SharedAccessSignature sr=x&sig={OPAQUE}&se=1",
    "azure-storage": f"AccountName=me;AccountKey={OPAQUE};EndpointSuffix=core",
    "azure-bus": f"Endpoint=sb://x/;SharedAccessKeyName=root;SharedAccessKey={OPAQUE}",
    "sql-server": f"Server=db;User Id=sa;Password={OPAQUE};",
    "odbc": f"Driver=x;UID=sa;PWD={OPAQUE}",
    "libpq": f"host=db user=ada password={OPAQUE}",
    "header-text": f"x-api-key: {OPAQUE}",
    "json-text": f'{{"client_secret": "{OPAQUE}"}}',
    "python-text": f"{{'password': '{OPAQUE}'}}",
    "assignment": f"OPENAI_API_KEY={OPAQUE}",
    "random": RANDOM,
    "random-urlsafe": "mN8-xQ2_vB7-kL4tR9_wZ3pY6-hJ1cF5",
    "random-lower": LOWER,
    "random-base64": base64.b64encode(bytes(range(7, 250, 7))).decode(),
    "random-upper": "JBSWY3DPEHPK3PXP5G7Q2Z4M6N8T",
}
"""What is secret by its form, under any name."""
NAMES = [
    *("api_key", "apiKey", "API-KEY", "apikey", "openai_api_key", "x-api-key", "key", "access_key"),
    *(
        "secretAccessKey",
        "private_key",
        "privateKey",
        "client-secret",
        "secret",
        "password",
        "passwd",
    ),
    *(
        "db_password",
        "passphrase",
        "pwd",
        "auth",
        "Authorization",
        "basic_auth",
        "bearer",
        "cookie",
    ),
    *("Set-Cookie", "token", "access_token", "refreshToken", "hf_token", "id-token", "jwt", "sig"),
    *("signature", "credential", "credentials", "headers", "x_headers", "extra_headers", "dsn"),
    *("connection_string", "connectionString", "subscription-key", "session_token", "sas"),
]
"""Names under which any value is secret."""
HARMLESS = [
    *("openai:gpt-4.1-mini-2025-04-14", "Qwen/Qwen2.5-72B-Instruct-AWQ-Int4", "gpt-oss-120b"),
    *("accounts/fireworks/models/llama-v3p1-405b-instruct", "BabyAI-PutNextS7N4Carrying-v0"),
    *("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    *("unsloth/Qwen3-30B-A3B-Instruct-2507-GGUF/Qwen3-30B-A3B-Q4_K_M.gguf", "o3", "simulated"),
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    "hf-internal-testing/tiny-random-GPTNeoXForCausalLM",
    "/home/ada/Projects/MemoryStudy2025/runs/2025-11-28T06-13-10/plan.yaml",
    "pick_and_place_simple-Mug-None-CoffeeMachine-8/trial_T20190908_214926_337906/game.tw-pddl",
    *("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "82a9c888"),
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    *("123e4567-e89b-12d3-a456-426614174000", "https://api.example.org:8443/v1?limit=3"),
    *("ssh://git@example.org/me/repo", "postgresql://HOST/DATABASE", "ada@example.org"),
    *("Bearer authentication", "Basic instructions", "bearer token", "Basic strategies only"),
    *("sk-learn-style-estimators-only", "skip_unused_parameters", "package.module:MyProvider"),
    *("Which key opens the door?", "key: value", "sorted(tasks, key=len)", "tokens: 4096"),
    *("the password: ask the owner", "Unexpected token: comma", "author: Ada Lovelace"),
    *("-----BEGIN CERTIFICATE-----", "SimulatedDataScientistModelV2WithMemory", "api_key=None"),
    *("internationalization-of-multilingual-knowledge", "tokenizer=cl100k_base", "a" * 60),
    *("https://my-endpoint-2.eastus2.inference.ai.azure.com/v1", "2025-11-28T06:13:10.123456Z"),
    *("3.14159265358979323846264338327950288", "chatcmpl-9xKs2abQvB7kL4tR9wZ3pY6h", "None"),
]
HARMLESS_NAMES = [
    *("max_tokens", "max_completion_tokens", "stop_token_ids", "eos_token", "keyword", "keys"),
    *("prompt_cache_key", "sort_key", "primary_key", "tokenizer", "author", "secretary", "monkey"),
    *(
        "api_key_env",
        "cost_per_token",
        "reasoning_effort",
        "by_last_token",
        "password_file",
        "patience",
    ),
]
PLAN = {"study": "continual", "model": "openai:m", "sequences": ["A>B"]} | {
    "conditions": [{"name": "agg", "provider": "insight"}]
}


def parts(form: str) -> list[str]:
    """Return what of a form no message may hold."""
    return [part for part in (OPAQUE, RANDOM, LOWER, "MIIEowIBAAKCAQEA", form) if part in form]


def plan(**fields: Any) -> Any:
    """Check a plan."""
    return plan_from_data({**PLAN, **fields}, studies(), Path("plan.yaml"))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_form_when_it_is_secret_is_refused_everywhere_and_shown_nowhere(form: str) -> None:
    """In a plan at any depth, in an experiment, in settings of a model, and in messages."""
    places: dict[str, dict[str, Any]] = {
        "model_settings.extra_body.note": {"model_settings": {"extra_body": {"note": form}}},
        "model_settings.a.0.b.1": {"model_settings": {"a": [{"b": ["x", form]}]}},
        "title": {"title": form},
        "conditions.0.settings.x": {
            "conditions": [{"name": "a", "provider": "insight", "settings": {"x": form}}]
        },
    }
    for place, fields in places.items():
        with pytest.raises(PlanError) as refused:
            plan(**fields)
        said = str(refused.value)
        assert f"{place} may be a secret" in said
        assert "OPENAI_API_KEY" in said
        assert not [part for part in parts(form) if part in said]
    with pytest.raises(InputError, match=r"model_settings\.note may be a secret"):
        make_model("openai:m", api_key="none", settings={"note": form})
    with pytest.raises(InputError, match="title may be a secret"):
        Experiment(lambda memory: memory, [{"id": "a", "input": "b"}], title=form)
    assert not [part for part in parts(form) if part in shown_by(form)]


def shown_by(form: str) -> str:
    """Return what our errors, pydantic's, our logs and commands say of a value that they do not take."""

    class Mine(Settings):
        size: int

    class Held(BaseModel):
        model_config = ConfigDict(hide_input_in_errors=True)
        mine: Mine

    said = [str(LanggraftError(f"the server said: {form}")), str(SettingsError(f"got {form!r}"))]
    for given in (form, {"size": form}, {"size": 1, "other": [form]}):
        for kind in (Mine, Held):
            with (
                pytest.raises((LanggraftError, ValidationError)) as raised,
                validation_as(SettingsError),
            ):
                kind(**{"mine": given} if kind is Held else {"size": given})
            said += [str(raised.value), told_of(raised.value, debug=True)]
    record = logging.makeLogRecord({"msg": "failed: %s", "args": (form,)})
    return "\n".join([*said, Printable().format(record)])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", ["abc", 12345, ["abc"], {"x": "abc"}])
def test_name_when_it_is_secret_is_refused_at_any_depth(name: str, value: object) -> None:
    """Whatever its value; the message names the place and quotes no value."""
    for settings, place in (
        ({name: value}, name),
        ({"extra_query": {name: value}}, f"extra_query.{name}"),
        ({"extra_body": {"route": [{"a": 1}, {name: value}]}}, f"extra_body.route.1.{name}"),
        ({"list": [{"name": name, "value": value}]}, "list.0.value"),
    ):
        with pytest.raises(PlanError) as refused:
            plan(model_settings=settings)
        assert f"model_settings.{place} may be a secret" in str(refused.value)
        assert "abc" not in str(refused.value)
        assert "12345" not in str(refused.value)


def test_name_when_it_is_itself_a_secret_is_not_quoted() -> None:
    """A key that was written where its name belongs."""
    with pytest.raises(PlanError, match=rf"model_settings\.{HIDDEN} may be") as refused:
        plan(model_settings={FORMS["github"]: 1})
    assert RANDOM not in str(refused.value)


@pytest.mark.parametrize("value", HARMLESS)
def test_value_when_it_is_harmless_is_taken_and_shown(value: str) -> None:
    """Names of models, paths, digests, URLs, prose and programs."""
    assert without_secrets(value) == value
    plan(title=value, model_settings={"note": [value]})


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_name_when_it_only_sounds_secret_is_taken(name: str) -> None:
    """Tokens of text, names of keys to sort by, and where a secret is found."""
    plan(model_settings={name: "abc", "extra_body": {name: 1}})


def test_identifier_when_it_is_random_is_taken_and_a_key_is_not() -> None:
    """Ids of tasks come from anywhere; a key of a known form is no id."""
    tests = [{"id": "V1StGXR8Z5jdHi6BmyT9aQ2w", "kind": ""}]
    with pytest.raises(PlanError) as refused:
        plan(tests=tests)
    assert "secret" not in str(refused.value)
    with pytest.raises(PlanError, match=r"tests\.0\.id may be a secret"):
        plan(tests=[{"id": FORMS["github"]}])


def test_plans_when_they_ship_hold_no_secret() -> None:
    """Nothing in them is mistaken for one."""
    for path in shipped_plans().values():
        plan_from_data(yaml.safe_load(path.read_text()), studies(), path)


def test_validation_when_a_field_is_named_like_a_secret_does_not_quote_it() -> None:
    """A plain word under such a name is hidden too, and of a long value no half is shown."""
    with pytest.raises(SettingsError) as raised:
        Settings(api_key="plain", note=f"{'x ' * 30}{FORMS['github']}")
    assert "plain" not in str(raised.value)
    assert "Zq8R" not in str(raised.value)
    assert "input_value" not in str(raised.value.__cause__)


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "eyJ-",
            "eyJa.",
            "a=",
            'token="',
            "-----BEGIN PRIVATE KEY-----",
            "sk-",
            "://a:",
            "key=a&",
        ),
        *(
            "Bearer ",
            "a.",
            "aA0",
            "SG.a.",
            "password: ",
            "'token': '",
            "\\",
            "ghp_",
            "0",
            "=",
            "Aa",
        ),
    ],
)
def test_text_when_it_grows_is_searched_in_proportion(piece: str) -> None:
    """Whatever it repeats."""

    def cost(length: int) -> float:
        text = (piece * length)[:length]
        began = time.process_time()
        without_secrets(text)
        return time.process_time() - began

    assert cost(400_000) < 40 * max(cost(40_000), cost(40_000), 0.005)
