"""The settings of Driftline. `Settings` is plain data: it reads nothing. `load_settings` reads the TOML file, then the
environment, then the options; what comes later wins."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from driftline.errors import BadSetting
from driftline.http.credentials import is_proxy
from driftline.model.page import Policy  # noqa: TC001 pydantic reads the annotations when it runs
from driftline.urls import address_without_password
from driftline.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails

#: what the names of environment variables begin with that are settings
ENVIRONMENT_PREFIX = "DRIFTLINE_"
_JSON_VARIABLES = ("hosts", "tags")  # the environment has them as JSON
_OWN_VARIABLES = ("DRIFTLINE_DEBUG", "DRIFTLINE_PYTHON")  # which are no settings
_OPTIONS = {"allow_networks": "allow-network", "min_importance": "min"}  # that are not called like their settings


def default_store() -> str:
    """Return the path of the embedded store in the user's data folder."""
    return str(platformdirs.user_data_path("driftline") / "driftline.db")


def settings_file() -> Path:
    """Return where the user's own settings are read from, if the file exists."""
    return platformdirs.user_config_path("driftline") / "driftline.toml"


RATE_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/|per)\s*(s|m|h|d)(?:ec(?:ond)?|in(?:ute)?|our|ay)?")
_PARAMETER = re.compile(r"-\*|-?[^\s,&=#*-][^\s,&=#*]*\*?")
_TAG = re.compile(r"[^\s,]{1,64}")
_HIGHEST_RATE = 1_000_000.0  # checks a second: more than any machine makes, and a number that can be reckoned with


def parse_rate(text: str) -> float:
    """Return the checks per second that a text such as '10/s', '600/m' or '20000/d' stands for."""
    found = _RATE.fullmatch(text.strip().lower())
    if not found or float(found[1]) <= 0:
        raise BadSetting(f"'{text}' is not a number of checks in a time: write 10/s, 600/m, 500/h or 20000/d.")
    rate = float(found[1]) / RATE_UNITS[found[2]]
    if rate > _HIGHEST_RATE:
        raise BadSetting(f"A budget is {_HIGHEST_RATE:,.0f} checks a second at most.")
    return rate


def _checked_rate(text: str) -> str:
    try:
        parse_rate(text)
    except BadSetting as error:
        raise PydanticCustomError("rate", "{sentence}", {"sentence": str(error).rstrip(".")}) from None
    return text


def _split(given: object) -> object:
    """Return the parts of a list that is one text, as in an environment variable."""
    return [part for part in given.split(",") if part.strip()] if isinstance(given, str) else given


def _checked_parameter(text: str) -> str:
    text = text.strip()
    if not _PARAMETER.fullmatch(text):
        sentence = f"'{text}' names no parameter: write names as ref or utm_*, and -name for one to keep"
        raise PydanticCustomError("parameter", "{sentence}", {"sentence": sentence})
    return text


def parse_network(text: str) -> str:
    """Return the network that a text such as '192.168.0.0/16' or '10.0.0.5' stands for, in its usual form."""
    text = text.strip()
    try:
        whole = ip_network(text, strict=False)
    except ValueError:
        raise BadSetting(f"'{text}' is not a network: write 192.168.0.0/16, 10.0.0.5 or fd00::/8.") from None
    if text.partition("/")[2] and whole.network_address != ip_address(text.partition("/")[0]):
        raise BadSetting(f"'{text}' is an address within a network: write {whole} for all of it.")
    return str(whole)


def _checked_network(text: str) -> str:
    try:
        return parse_network(text)
    except BadSetting as error:
        raise PydanticCustomError("network", "{sentence}", {"sentence": str(error).rstrip(".")}) from None


def _checked_proxy(text: str) -> str:
    if not is_proxy(text):
        sentence = "a proxy is named as http://host:port, or with https, socks4, socks4a, socks5 or socks5h"
        raise PydanticCustomError("proxy", "{sentence}", {"sentence": sentence})
    return text


Rate = Annotated[str, AfterValidator(_checked_rate)]
Parameters = Annotated[tuple[Annotated[str, AfterValidator(_checked_parameter)], ...], BeforeValidator(_split)]
Networks = Annotated[tuple[Annotated[str, AfterValidator(_checked_network)], ...], BeforeValidator(_split)]
Proxy = Annotated[str, AfterValidator(_checked_proxy)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
StallSeconds = Annotated[float, Field(ge=1, le=86_400)]
Delay = Annotated[float, Field(ge=0, le=3_600)]
Connections = Annotated[int, Field(ge=1, le=10_000)]
RobotsChoice = Literal["obey", "ignore"]


def _checked_host(name: str) -> str:
    """Return the name as it is in addresses; a name that no host can have would be a setting without effect."""
    from ada_url import URL  # few name hosts, and all wait for what is loaded

    wild = "*." if name.startswith("*.") else ""
    try:
        host = (
            "" if re.search(r"[*/?#@\\\s]", name[len(wild) :]) else URL(f"http://{name[len(wild) :].rstrip('.')}").host
        )
    except ValueError:
        host = ""
    if not host:
        sentence = "a host is named as example.org, example.org:8080, 192.0.2.1 or *.example.org"
        raise PydanticCustomError("host", "{sentence}", {"sentence": sentence})
    return wild + host.removesuffix(":443")


def _checked_tag(name: str) -> str:
    if not _TAG.fullmatch(name):
        sentence = "a tag has up to 64 characters without spaces or commas"
        raise PydanticCustomError("tag", "{sentence}", {"sentence": sentence})
    return name


def _refuse_truth(value: object) -> object:
    """Refuse true and false for a number or a text: Python would take them as 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("truth", "it is neither true nor false")
    return value


class HostSettings(BaseModel):
    """The settings of one host, or of the hosts of the pages with one tag; what is None is as for all hosts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    delay: Delay | None = None
    connections: Connections | None = None
    robots: RobotsChoice | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth(cls, value: object) -> object:
        return _refuse_truth(value)


class Settings(BaseModel):
    """Everything that can be set, with defaults that suit most people. BadSetting says what is wrong with a value.

    It is plain data: neither the settings file nor the environment is read, see `load_settings`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    store: str = Field(default_factory=default_store, description="a path or a database URL")
    user_agent: str = Field(
        default=f"Driftline/{__version__} (web page change detection)",
        min_length=1,
        pattern=r"^[\x20-\x7e]+$",
        description="the name sent to servers; its first word is looked up in robots.txt",
    )
    ca_file: str | None = Field(default=None, description="trusted certificates, instead of the system's")
    allow_networks: Networks = Field(
        default=(), description="networks that pages may be fetched from although they are not public"
    )
    proxy: Proxy | None = Field(
        default=None, description="fetch through this proxy, which then has to guard private networks itself"
    )
    host_delay: Delay = Field(default=1.0, description="seconds between an answer and the next request at one host")
    host_connections: Connections = Field(default=1, description="requests at one host at once")
    address_connections: Connections = Field(
        default=8, description="requests at one address at once, for hosts that share it"
    )
    robots: RobotsChoice = Field(
        default="obey", description="whether robots.txt is obeyed; ignore is for sites of your own"
    )
    hosts: dict[Annotated[str, AfterValidator(_checked_host)], HostSettings] = Field(
        default={}, description="delay, connections and robots of single hosts, or of *.domain"
    )
    tags: dict[Annotated[str, AfterValidator(_checked_tag)], HostSettings] = Field(
        default={}, description="the same for the hosts of the pages with a tag"
    )
    connect_timeout: Seconds = Field(default=10.0, description="how long connecting to a server may take")
    total_timeout: Seconds = Field(default=60.0, description="how long fetching a page may take, with its redirects")
    stall_timeout: Seconds = Field(
        default=20.0, description="give up when under 10 bytes a second arrive for this long"
    )
    max_body: int = Field(default=20_000_000, gt=0, description="the largest body fetched or decoded, in bytes")
    max_redirects: int = Field(default=10, ge=0, description="how many redirects of a page are followed")
    check_added: bool = Field(default=True, description="whether `add` checks new pages at once")
    capacity: int = Field(default=500, gt=0, description="documents the queue may hold")
    capacity_bytes: int = Field(default=64 * 1024 * 1024, gt=0, description="bytes the queue may hold")
    worker_deadline: Seconds = Field(default=30.0, description="how long reading one page may take")
    worker_memory: int = Field(
        default=1024 * 1024 * 1024, ge=256 * 1024 * 1024, description="bytes of memory per worker"
    )
    confirm: bool = Field(
        default=True, description="fetch a page that seems changed again, to see what differs by itself"
    )
    min_importance: Literal["important", "minor"] = Field(
        default="important", description="which changes are reported: important ones only, or minor ones too"
    )
    fail_after: int = Field(default=3, gt=0, description="failed checks in a row before a page is reported as failing")
    rank_threshold: float = Field(
        default=0.5, ge=0, lt=1, description="rank keeps pages that were available at more than this share of visits"
    )
    policy: Policy = Field(
        default="value",
        description=(
            "what 'run' checks next: value (changes likely, visits many), intelligent (by rank), fixed (by interval), "
            "uniform (the oldest check)"
        ),
    )
    budget: Rate | None = Field(default=None, description="how many checks there may be, such as 10/s or 20000/d")
    host_budget: Rate | None = Field(default=None, description="the same for each host")
    recrawl: str = Field(
        default="1d", pattern=r"^(never|(\d+(\.\d+)?\s*[smhdw]\s*)+)$",
        description="how often 'run' crawls sites that are kept watched, or never",
    )  # fmt: skip
    tracking: Parameters = Field(
        default=(), description="parameters to drop from addresses, besides those known for tracking; -name keeps one"
    )
    browser: str | None = Field(default=None, description="the Chromium that renders pages, instead of the system's")
    browser_sandbox: bool = Field(default=True, description="Chromium's own sandbox, which root has to do without")
    render_slots: int = Field(default=2, ge=1, le=32, description="pages that are rendered at once")
    render_timeout: Seconds = Field(default=30.0, description="how long rendering one page may take")
    render_memory: int = Field(
        default=1024 * 1024 * 1024, ge=256 * 1024 * 1024, description="bytes of memory per rendered page"
    )
    render_bytes: int = Field(default=100_000_000, gt=0, description="bytes that a page and what it loads may have")
    unsafe_votes: int = Field(default=1, ge=1, description="votes after which a page that was reported is blocked")
    stop_grace: Seconds = Field(default=3.5, description="how long a stopped run waits for what is in flight")
    stall_after: StallSeconds = Field(
        default=60.0, description="how long nothing is recorded, with work to do, before a run counts as stalled"
    )

    @field_validator("*", mode="before")
    @classmethod
    def _is_truth_where_it_may_be(cls, value: object, info: ValidationInfo) -> object:
        annotated = cls.model_fields[info.field_name or ""].annotation
        return value if annotated is bool else _refuse_truth(value)

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, values: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        try:
            return handler(values)
        except ValidationError as error:
            first = error.errors()[0]
            path = path_of(first)
            if path[:1] in (["store"], ["proxy"]) and isinstance(first["input"], str):
                first["input"] = address_without_password(first["input"])
            place: Callable[[list[str]], str] = (info.context or {}).get("place", _argument)
            raise BadSetting(explain(first, cls.model_json_schema(), place(path))) from None

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield the settings as they are printed: a store and a proxy without their passwords."""
        for name, value in super().__repr_args__():
            yield name, address_without_password(value) if name in ("store", "proxy") and value else value

    @property
    def shortest_delay(self) -> float:
        """The shortest time in seconds between an answer and the next request, over all hosts."""
        own = [one.delay for one in (*self.hosts.values(), *self.tags.values()) if one.delay is not None]
        return min([self.host_delay, *own])


def load_settings(**options: Any) -> Settings:
    """Return the settings of the settings file and the environment, with these options; BadSetting if one is wrong.

    An option wins over the environment, and that over the file. An option that is None counts as not given.
    """
    return _load(options, "the argument {name}")


def load_command_settings(**options: Any) -> Settings:
    """Return the same for options of the command line, which errors call by their names there."""
    return _load(options, "the option --{option}")


def misspelled_variables() -> dict[str, str | None]:
    """Return the environment variables that look like settings and are none, each with the likely name or None."""
    found: dict[str, str | None] = {}
    for variable in os.environ:
        prefix, name = variable.upper()[: len(ENVIRONMENT_PREFIX)], variable.upper()[len(ENVIRONMENT_PREFIX) :].lower()
        if prefix == ENVIRONMENT_PREFIX and name not in Settings.model_fields and variable not in _OWN_VARIABLES:
            meant = nearest(name, Settings.model_fields)
            found[variable] = None if meant is None else f"{ENVIRONMENT_PREFIX}{meant}".upper()
    return found


def _load(options: dict[str, Any], option: str) -> Settings:
    given = {name: value for name, value in options.items() if value is not None}

    def place(path: list[str]) -> str:
        return _place(path, given, option)

    values = _merged(_merged(_in_file(), _in_environment()), given)
    return Settings.model_validate(values, context={"place": place})


def _in_file() -> dict[str, Any]:
    """Return what the settings file sets."""
    file = settings_file()
    try:
        return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except OSError as error:
        raise BadSetting(f"The settings file {file} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise BadSetting(f"The settings file {file} cannot be read: {error}.") from None


def _in_environment() -> dict[str, Any]:
    """Return what environment variables set, as texts; the sections `hosts` and `tags` are JSON."""
    found: dict[str, Any] = {}
    for name in Settings.model_fields:
        variable = _variable(name)
        if variable is None:
            continue
        found[name] = os.environ[variable]
        if name in _JSON_VARIABLES:
            try:
                found[name] = json.loads(found[name])
            except ValueError:
                example = '{"example": {"delay": 5}}'
                text = f"The setting '{name}' is not valid: write JSON, as {example} ({variable} is not)."
                raise BadSetting(text) from None
    return found


def _merged(lower: dict[str, Any], higher: dict[str, Any]) -> dict[str, Any]:
    """Return the values of both, the higher ones where both have one; sections are merged."""
    both = {
        name: _merged(value, higher[name])
        for name, value in lower.items()
        if isinstance(value, dict) and isinstance(higher.get(name), dict)
    }
    return lower | higher | both


def _argument(path: list[str]) -> str:
    return f"the argument {path[0]}"


def _place(path: list[str], given: dict[str, Any], option: str) -> str:
    """Return where the setting of this name is set: an option, an environment variable or the settings file."""
    name = path[0]
    if name in given:
        return option.format(name=name, option=_OPTIONS.get(name, name.replace("_", "-")))
    variable = _variable(name)
    if variable is not None and all(part in os.environ[variable] for part in path[1:]):
        return variable
    return str(settings_file())


def _variable(field: str) -> str | None:
    """Return the environment variable that sets this, as it is spelled there; None if there is none."""
    wanted = f"{ENVIRONMENT_PREFIX}{field}".upper()
    return wanted if wanted in os.environ else next((name for name in os.environ if name.upper() == wanted), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPolicy:
    """Requests at once, the seconds from an answer to the next request, and whether robots.txt is obeyed."""

    connections: int = 1
    delay: float = 1.0
    robots: bool = True


def host_policy(host: str, settings: Settings, tags: Mapping[str, Sequence[str]]) -> HostPolicy:
    """Return how a host is treated. `tags` are those of the pages of each host.

    Its own settings win over those of a tag, and among tags those that the user wrote first.
    """
    chosen = [
        *_named(host, settings.hosts),
        *[one for tag, one in settings.tags.items() if tag in tags.get(host, ())],
    ]
    delay = next((one.delay for one in chosen if one.delay is not None), settings.host_delay)
    connections = next((one.connections for one in chosen if one.connections is not None), settings.host_connections)
    robots = next((one.robots for one in chosen if one.robots is not None), settings.robots)
    return HostPolicy(connections=connections, delay=delay, robots=robots == "obey")


def _named(host: str, hosts: Mapping[str, HostSettings]) -> Iterator[HostSettings]:
    """Yield what is set for this host with its port, without it, then for its domains, the closest first."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    parts = name.split(".")
    for key in (host, name, *["*." + ".".join(parts[start:]) for start in range(1, len(parts))]):
        if key in hosts:
            yield hosts[key]


_ALIKE = 0.7
_ADVICE = {
    "user_agent": "write at least one character, of letters, digits and signs of ASCII",
    "recrawl": "write never, or a time such as 12h, 1d or 2w",
    "budget": "write a text such as '10/s', '600/m' or '20000/d'",
    "host_budget": "write a text such as '10/s', '600/m' or '20000/d'",
    "proxy": "write a text such as 'http://host:port'",
}
_KINDS = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of a size that is possible",
    "float_parsing": "a number",
    "float_type": "a number",
}
_BOUNDS = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "less than {lt:g}",
    "less_than_equal": "{le:g} or less",
}
_OWN = ("rate", "parameter", "network", "proxy", "host", "tag")  # errors of our own, which say what is allowed


def path_of(error: ErrorDetails) -> list[str]:
    """Return the name of the setting that an error is about, and within a section the names below it."""
    return [part for part in error["loc"] if isinstance(part, str) and part != "[key]"]


def explain(error: ErrorDetails, schema: Mapping[str, Any], place: str) -> str:
    """Return what is wrong with a setting, given the JSON schema of all settings and the `place` where it is set."""
    section, *rest = path_of(error)
    name = ".".join([section, *rest])
    if error["type"] == "extra_forbidden":
        if not rest:
            return f"There is no setting '{name}' ({place} sets it): {_nearest_setting(name, schema['properties'])}."
        quoted = "" if section == "tags" else ', and a name with dots stands in quotes, as [hosts."a.example"]'
        return f"There is no setting '{name}' ({place} sets it): {section} have delay, connections and robots{quoted}."
    if error["type"] in ("dict_type", "model_type"):
        allowed = f"it is a section, as [{section}.name], with settings of its own"
    elif error["type"] in _OWN:
        allowed = error["msg"]
    else:
        allowed = _ADVICE.get(name) or f"write {_allowed(_schema_of([section, *rest], schema))}"
    return f"The setting '{name}' is not valid: {allowed} ({place} has {error['input']!r})."


def explain_option(error: ErrorDetails) -> str:
    """Return what is wrong with the value of an option that the command line checks by itself."""
    kind = error["type"]
    if kind in _BOUNDS:
        return f"{error['input']!r} is not {_BOUNDS[kind].format(**error['ctx'])}"
    return f"{error['input']!r} is not {_KINDS[kind]}" if kind in _KINDS else error["msg"]


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that a misspelled one is likely to mean; None if it is like none of them."""
    return next(iter(get_close_matches(name, list(names), 1, _ALIKE)), None)


def _nearest_setting(name: str, names: Iterable[str]) -> str:
    near = nearest(name, names)
    return f"perhaps '{near}' is meant" if near else "'driftline settings' lists those that there are"


def _schema_of(path: list[str], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema["properties"][path[0]]
    if len(path) > 1 and "additionalProperties" in found:
        section = found["additionalProperties"]["$ref"].rpartition("/")[2]
        found = schema["$defs"][section]["properties"][path[-1]]
    return next((one for one in found.get("anyOf", ()) if one["type"] != "null"), found)


def _allowed(schema: Mapping[str, Any]) -> str:
    """Return the values that a part of a JSON schema allows, in words."""
    if "enum" in schema:
        *others, last = schema["enum"]
        return f"{', '.join(others)} or {last}"
    if schema["type"] in ("integer", "number"):
        return _number(schema)
    return {"boolean": "true or false", "array": "a list of texts"}.get(schema["type"], "a text")


def _number(schema: Mapping[str, Any]) -> str:
    noun = "number"
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if schema["type"] == "integer":
        noun = "whole number"
        low, above = (low if above is None else above + 1), None
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f"a {noun} from {low} to {high}"
    bounds = [f"{low} or more"] if low is not None else [f"more than {above}"] if above is not None else []
    bounds += [f"less than {below}"] if below is not None else []
    return f"a {noun}{' of ' if bounds else ''}{' and '.join(bounds)}"
