"""The settings of Driftline: built-in default, then the TOML file, then the environment, then the option."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Annotated, Any, Literal

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from driftline.errors import BadSetting
from driftline.http.credentials import is_proxy
from driftline.model import Policy  # noqa: TC001 pydantic reads the annotations when it runs
from driftline.setting_errors import explain, nearest, path_of
from driftline.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


_PREFIX = "DRIFTLINE_"
_OWN_VARIABLES = ("DRIFTLINE_DEBUG", "DRIFTLINE_PYTHON")  # which are no settings
_OPTIONS = {"allow_networks": "allow-network"}  # that are not called like their settings


def default_store() -> str:
    """The embedded store in the user's data folder."""
    return str(platformdirs.user_data_path("driftline") / "driftline.db")


def settings_file() -> Path:
    """Where the user's own settings are read from, if the file is there."""
    return platformdirs.user_config_path("driftline") / "driftline.toml"


RATE_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/|per)\s*(s|m|h|d)(?:ec(?:ond)?|in(?:ute)?|our|ay)?")
_PARAMETER = re.compile(r"-\*|-?[^\s,&=#*-][^\s,&=#*]*\*?")
_TAG = re.compile(r"[^\s,]{1,64}")
_HIGHEST_RATE = 1_000_000.0  # checks a second: more than any machine makes, and a number that can be reckoned with


def parse_rate(text: str) -> float:
    """The checks a second that a text such as '10/s', '600/m' or '20000/d' stands for."""
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
    """The parts of a list in one text, as in a variable of the environment."""
    return [part for part in given.split(",") if part.strip()] if isinstance(given, str) else given


def _checked_parameter(text: str) -> str:
    text = text.strip()
    if not _PARAMETER.fullmatch(text):
        sentence = f"'{text}' names no parameter: write names as ref or utm_*, and -name for one to keep"
        raise PydanticCustomError("parameter", "{sentence}", {"sentence": sentence})
    return text


def parse_network(text: str) -> str:
    """The network that a text such as '192.168.0.0/16' or '10.0.0.5' stands for, as it is usually written."""
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
Parameters = Annotated[
    tuple[Annotated[str, AfterValidator(_checked_parameter)], ...], NoDecode, BeforeValidator(_split)
]
Networks = Annotated[tuple[Annotated[str, AfterValidator(_checked_network)], ...], NoDecode, BeforeValidator(_split)]
Proxy = Annotated[str, AfterValidator(_checked_proxy)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
StallSeconds = Annotated[float, Field(ge=1, le=86_400)]
Delay = Annotated[float, Field(ge=0, le=3_600)]
Connections = Annotated[int, Field(ge=1, le=10_000)]
Robots = Literal["obey", "ignore"]


def _checked_host(name: str) -> str:
    """The name as it is in addresses; one that no host can have would be a setting without effect."""
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
    """Refuse true and false where a number or a text is to be set: Python counts them as 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("truth", "it is neither true nor false")
    return value


class HostSettings(BaseModel):
    """What can be set for one host, or for the hosts of the pages with one tag; what is not set is as for all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    delay: Delay | None = None
    connections: Connections | None = None
    robots: Robots | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth(cls, value: object) -> object:
        return _refuse_truth(value)


class Settings(BaseSettings):
    """Everything that can be set, with the value that suits most people."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="forbid", frozen=True)

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
    robots: Robots = Field(default="obey", description="whether robots.txt is obeyed; ignore is for sites of your own")
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
    capacity: int = Field(default=500, gt=0, description="documents the queue may hold")
    capacity_bytes: int = Field(default=64 * 1024 * 1024, gt=0, description="bytes the queue may hold")
    worker_deadline: Seconds = Field(default=30.0, description="how long reading one page may take")
    worker_memory: int = Field(
        default=1024 * 1024 * 1024, ge=256 * 1024 * 1024, description="bytes of memory per worker"
    )
    confirm: bool = Field(
        default=True, description="fetch a page that seems changed again, to see what differs by itself"
    )
    fail_after: int = Field(
        default=3, gt=0, description="checks in a row that have to fail before it is told that a page fails"
    )
    rank_threshold: float = Field(
        default=0.5, ge=0, lt=1, description="rank keeps pages that were available at more than this share of visits"
    )
    policy: Policy = Field(default="value", description="what 'run' checks next: by value, rank, interval or age")
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

    @property
    def shortest_delay(self) -> float:
        """The seconds that there are at least between an answer and the next request, at whichever host."""
        own = [one.delay for one in (*self.hosts.values(), *self.tags.values()) if one.delay is not None]
        return min([self.host_delay, *own])

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=settings_file())


def load_settings(**options: Any) -> Settings:
    """Settings from every source, the given options first; BadSetting names the first one that is wrong."""
    return _load(options, "the argument {name}")


def load_command_settings(**options: Any) -> Settings:
    """Like `load_settings`, for options of the command line, which an error calls by their names there."""
    return _load(options, "the option --{option}")


def misspelled_variables() -> dict[str, str | None]:
    """The variables of the environment that look like settings and are none, each with what is likely meant, if any."""
    known = {f"{_PREFIX}{name}".upper() for name in Settings.model_fields}
    unknown = [name for name in os.environ if name.upper().startswith(_PREFIX) and name.upper() not in known]
    near = {name: nearest(name.upper().removeprefix(_PREFIX).lower(), Settings.model_fields) for name in unknown}
    return {
        name: None if field is None else f"{_PREFIX}{field}".upper()
        for name, field in near.items() if name not in _OWN_VARIABLES
    }  # fmt: skip


def _load(options: dict[str, Any], option: str) -> Settings:
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        place = _place(path_of(first), given, option)
        raise BadSetting(explain(first, Settings.model_json_schema(), place)) from None
    except SettingsError:
        raise BadSetting(_unreadable_variable()) from None
    except OSError as error:
        raise BadSetting(f"The settings file {settings_file()} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise BadSetting(f"The settings file {settings_file()} cannot be read: {error}.") from None


def _place(path: list[str], given: dict[str, Any], option: str) -> str:
    """Where the setting of this name stands: an option, a variable of the environment or the settings file."""
    name = path[0]
    if name in given:
        return option.format(name=name, option=_OPTIONS.get(name, name.replace("_", "-")))
    variable = _variable(name)
    if variable is not None and all(part in os.environ[variable] for part in path[1:]):
        return variable
    return str(settings_file())


def _variable(field: str) -> str | None:
    """The variable of the environment that sets this, as it is spelled there."""
    return next((name for name in os.environ if name.upper() == f"{_PREFIX}{field}".upper()), None)


def _unreadable_variable() -> str:
    """What is wrong with the first variable that is no JSON, where it has to be."""
    for section in ("hosts", "tags"):
        variable = _variable(section)
        try:
            json.loads(os.environ[variable] if variable else "{}")
        except ValueError:
            example = '{"example": {"delay": 5}}'
            return f"The setting '{section}' is not valid: write JSON, as {example} ({variable} is not)."
    return "A setting in the environment cannot be read."


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPolicy:
    """Requests at once, the seconds from an answer to the next request, and whether robots.txt is obeyed."""

    connections: int = 1
    delay: float = 1.0
    robots: bool = True


def host_policy(host: str, settings: Settings, tags: Mapping[str, Sequence[str]]) -> HostPolicy:
    """How a host is treated, whose pages have these tags by host.

    Its own settings go before those of a tag, and of several tags those that the user wrote first.
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
    """What is set for this host, with its port, without, then for the domains that it is in, the closest first."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    parts = name.split(".")
    for key in (host, name, *["*." + ".".join(parts[start:]) for start in range(1, len(parts))]):
        if key in hosts:
            yield hosts[key]
