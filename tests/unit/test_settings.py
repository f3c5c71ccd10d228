from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command import HURRIED
from driftline.errors import BadSetting
from driftline.settings import (
    HostPolicy,
    Settings,
    host_policy,
    load_command_settings,
    load_settings,
    misspelled_variables,
)
from support.making import settings


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody's settings: a home of its own, and nothing in the environment."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DRIFTLINE_ALLOW_NETWORKS")
    return tmp_path


def in_file(home: Path, text: str) -> None:
    (home / "driftline").mkdir()
    (home / "driftline" / "driftline.toml").write_text(text)


def test_no_network_is_allowed_unless_set() -> None:
    assert load_settings().allow_networks == ()


@pytest.mark.parametrize(
    ("text", "networks"),
    [
        ("192.168.0.0/16", ("192.168.0.0/16",)),
        (" 10.0.0.5 , fd00::/8,", ("10.0.0.5/32", "fd00::/8")),
        ("10.0.0.0/255.0.0.0", ("10.0.0.0/8",)),
        ("::1", ("::1/128",)),
        ("FD00:0::/8", ("fd00::/8",)),
        ("", ()),
    ],
)
def test_networks_come_from_the_environment_with_commas_between(
    text: str, networks: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_ALLOW_NETWORKS", text)
    assert load_settings().allow_networks == networks


@pytest.mark.parametrize("text", ['allow_networks = ["10.0.0.0/8", "::1"]', 'allow_networks = "10.0.0.0/8, ::1"'])
def test_networks_come_from_the_file(text: str, own_home: Path) -> None:
    in_file(own_home, text)
    assert load_settings().allow_networks == ("10.0.0.0/8", "::1/128")


def test_what_is_given_stands_in_the_place_of_what_the_environment_and_the_file_say(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file(own_home, 'allow_networks = ["10.0.0.0/8"]')
    monkeypatch.setenv("DRIFTLINE_ALLOW_NETWORKS", "127.0.0.0/8")
    assert load_settings().allow_networks == ("127.0.0.0/8",)
    assert load_settings(allow_networks=["192.168.0.0/16"]).allow_networks == ("192.168.0.0/16",)


@pytest.mark.parametrize(
    "text", ["localhost", "10.0.0.0/33", "10.0.0.300", "10.0.0.0/-1", "10.0.0.0/8/8", "::/129", "*", "http://10.0.0.5/"]
)
def test_what_is_no_network_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadSetting) as error:
        load_settings(allow_networks=["10.0.0.0/8", text])
    assert "'allow_networks' is not valid" in str(error.value)
    assert f"'{text}' is not a network: write 192.168.0.0/16, 10.0.0.5 or fd00::/8" in str(error.value)


@pytest.mark.parametrize(("text", "meant"), [("10.0.0.5/8", "10.0.0.0/8"), ("fd00::1/8", "fd00::/8")])
def test_an_address_with_the_length_of_a_network_is_asked_for_again(text: str, meant: str) -> None:
    """Whoever writes so may mean the one address, and would open all of the network."""
    with pytest.raises(BadSetting, match=f"'{text}' is an address within a network: write {meant} for all of it"):
        load_settings(allow_networks=[text])


@pytest.mark.parametrize("proxy", ["http://proxy.example:3128", "socks5h://me:pw@10.0.0.1:1080", "https://p.example/"])
def test_a_proxy_is_taken_as_it_is(proxy: str) -> None:
    assert load_settings(proxy=proxy).proxy == proxy


@pytest.mark.parametrize("proxy", ["proxy.example:3128", "ftp://proxy.example", "", "http://", "http://a/path"])
def test_what_is_no_proxy_is_refused_with_an_example(proxy: str) -> None:
    with pytest.raises(BadSetting, match="'proxy' is not valid: a proxy is named as http://host:port"):
        load_settings(proxy=proxy)


def test_no_proxy_is_used_that_only_the_environment_of_other_programs_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert load_settings().proxy is None


def test_a_host_is_asked_for_one_page_a_second_and_its_robots_txt_obeyed_unless_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in HURRIED:
        monkeypatch.delenv(name)
    found = load_settings()
    assert (found.host_delay, found.host_connections, found.robots) == (1.0, 1, "obey")
    assert found.shortest_delay == 1.0


def test_hosts_and_tags_have_tables_of_their_own_in_the_file(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_HOST_DELAY", "3")
    in_file(own_home, '[hosts."Intranet.example"]\ndelay = 0.5\n[tags.own]\nrobots = "ignore"\n')
    found = load_settings()
    assert found.hosts["intranet.example"].delay == 0.5
    assert found.tags["own"].robots == "ignore"
    assert found.shortest_delay == 0.5


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Example.ORG.", "example.org"), ("*.Example.org", "*.example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("127.0.0.1:8080", "127.0.0.1:8080"), ("example.org:443", "example.org"), ("[::1]:80", "[::1]"),
    ],
)  # fmt: skip
def test_a_host_is_known_by_its_name_in_addresses_however_it_is_written(written: str, name: str) -> None:
    assert [*load_settings(hosts={written: {"delay": 0}}).hosts] == [name]


@pytest.mark.parametrize("name", ["http://example.org", "*", "127.0.1.*", "*example.org", "a b", "me@example.org", ""])
def test_a_host_that_no_address_can_have_is_refused(name: str) -> None:
    with pytest.raises(BadSetting, match="a host is named as"):
        load_settings(hosts={name: {"delay": 0}})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[hosts.a]\ndelay = -1",
            "The setting 'hosts.a.delay' is not valid: write a number from 0 to 3600 (FILE has -1).",
        ),
        ('[tags.a]\ndelay = "x"', "'tags.a.delay' is not valid: write a number from 0 to 3600 (FILE has 'x')."),
        ('[tags.a]\nrobots = "never"', "'tags.a.robots' is not valid: write obey or ignore (FILE has 'never')."),
        ("[tags.a]\nspeed = 1", "no setting 'tags.a.speed' (FILE sets it): tags have delay, connections and robots."),
        (
            "[hosts.a]\nspeed = 1",
            "no setting 'hosts.a.speed' (FILE sets it): hosts have delay, connections and robots, and",
        ),
        ("[hosts.a.example]\ndelay = 1", 'a name with dots stands in quotes, as [hosts."a.example"].'),
        ("[hosts]\na = 3", "The setting 'hosts.a' is not valid: it is a section, as [hosts.name], with settings"),
        ("tags = 3", "The setting 'tags' is not valid: it is a section, as [tags.name], with settings"),
        ('[tags."two words"]\ndelay = 1', "The setting 'tags.two words' is not valid: a tag has up to 64 characters"),
        ("speed = 1", "There is no setting 'speed' (FILE sets it): 'driftline settings' lists those that there are."),
        ("capcity = 1", "There is no setting 'capcity' (FILE sets it): perhaps 'capacity' is meant."),
        ('capacity = "lots"', "'capacity' is not valid: write a whole number of 1 or more (FILE has 'lots')."),
        ('confirm = "perhaps"', "'confirm' is not valid: write true or false (FILE has 'perhaps')."),
        ("budget = 5", "'budget' is not valid: write a text such as '10/s', '600/m' or '20000/d' (FILE has 5)."),
        ("store = 5", "The setting 'store' is not valid: write a text (FILE has 5)."),
        ("allow_networks = 5", "'allow_networks' is not valid: write a list of texts (FILE has 5)."),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_what_is_allowed_and_where_it_stands(
    text: str, sentence: str, own_home: Path
) -> None:
    in_file(own_home, text)
    with pytest.raises(BadSetting) as error:
        load_settings()
    assert sentence.replace("FILE", str(own_home / "driftline" / "driftline.toml")) in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("capacity", "lots", "a whole number of 1 or more"),
        ("capacity", "1.5", "a whole number of 1 or more"),
        ("max_redirects", "-1", "a whole number of 0 or more"),
        ("render_slots", "33", "a whole number from 1 to 32"),
        ("total_timeout", "0", "a number of more than 0"),
        ("total_timeout", "inf", "a number of more than 0"),
        ("host_delay", "nan", "a number from 0 to 3600"),
        ("rank_threshold", "1", "a number of 0 or more and less than 1"),
        ("confirm", "perhaps", "true or false"),
        ("robots", "never", "obey or ignore"),
        ("policy", "x", "value, intelligent, fixed or uniform"),
        ("recrawl", "soon", "never, or a time such as 12h, 1d or 2w"),
        ("user_agent", "", "at least one character, of letters, digits and signs of ASCII"),
    ],
)
def test_what_is_wrong_in_the_environment_is_said_with_what_is_allowed_and_the_name_of_the_variable(
    name: str, value: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"DRIFTLINE_{name.upper()}"
    monkeypatch.setenv(variable, value)
    with pytest.raises(BadSetting) as error:
        load_settings()
    assert str(error.value) == f"The setting '{name}' is not valid: write {allowed} ({variable} has '{value}')."


def test_what_is_given_is_blamed_before_the_environment_and_the_environment_before_the_file(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file(own_home, "capacity = 0\n")
    monkeypatch.setenv("DRIFTLINE_CAPACITY", "-1")
    with pytest.raises(BadSetting, match=r"\(the argument capacity has -2\)"):
        load_settings(capacity=-2)
    with pytest.raises(BadSetting, match=r"\(the option --capacity has -2\)"):
        load_command_settings(capacity=-2)
    with pytest.raises(BadSetting, match=r"\(the option --allow-network has 'x'\)"):
        load_command_settings(capacity=1, allow_networks=["x"])
    with pytest.raises(BadSetting, match=r"\(DRIFTLINE_CAPACITY has '-1'\)"):
        load_settings()


def test_of_a_section_that_stands_in_two_places_the_one_is_blamed_that_has_the_value(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file(own_home, "[tags.a]\ndelay = -1\n")
    monkeypatch.setenv("DRIFTLINE_TAGS", '{"b": {"robots": "obey"}}')
    with pytest.raises(BadSetting, match=r"'tags.a.delay' is not valid: .* \(.*driftline.toml has -1\)"):
        load_settings()


def test_a_variable_that_is_nearly_called_like_a_setting_is_told_with_what_is_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (
        "DRIFTLINE_HOST_DELY",
        "DRIFTLINE_TIMEOUT",
        "DRIFTLINE_TEST_TOKEN",
        "DRIFTLINE_DEBUG",
        "driftline_store",
    ):
        monkeypatch.setenv(name, "1")
    assert misspelled_variables() == {
        "DRIFTLINE_HOST_DELY": "DRIFTLINE_HOST_DELAY",
        "DRIFTLINE_TIMEOUT": "DRIFTLINE_TOTAL_TIMEOUT",
        "DRIFTLINE_TEST_TOKEN": None,
    }


def test_what_cannot_be_read_in_the_environment_is_not_blamed_on_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_TAGS", "{own")
    with pytest.raises(BadSetting, match=r"'tags' is not valid: write JSON, as .* \(DRIFTLINE_TAGS is not\)\."):
        load_settings()


@pytest.mark.parametrize("name", ["stall_after", "total_timeout", "capacity", "user_agent"])
def test_true_is_no_number_and_no_text(own_home: Path, name: str) -> None:
    in_file(own_home, f"{name} = true\n")
    with pytest.raises(BadSetting, match=f"'{name}' is not valid: write .* has True"):
        load_settings()


def test_true_is_no_number_of_a_host(own_home: Path) -> None:
    in_file(own_home, '[hosts."a.example"]\ndelay = true\n')
    with pytest.raises(BadSetting, match=r"'hosts.a.example.delay' is not valid"):
        load_settings()


@pytest.mark.parametrize("value", ["0.5", "1e-9", "100000"])
def test_a_run_stalls_after_a_second_at_least_and_a_day_at_most(own_home: Path, value: str) -> None:
    in_file(own_home, f"stall_after = {value}\n")
    with pytest.raises(BadSetting, match="from 1 to 86400"):
        load_settings()


def test_settings_are_plain_data_that_reads_neither_the_file_nor_the_environment(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file(own_home, "capacity = 7\n")
    monkeypatch.setenv("DRIFTLINE_HOST_DELAY", "9")
    assert (Settings().capacity, Settings().host_delay) == (500, 1.0)
    assert (load_settings().capacity, load_settings().host_delay) == (7, 9.0)


def test_a_section_is_read_from_the_file_the_environment_and_the_options_together(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file(own_home, "[tags.a]\ndelay = 1\nconnections = 2\n[tags.b]\ndelay = 3\n")
    monkeypatch.setenv("DRIFTLINE_TAGS", '{"a": {"delay": 5}}')
    tags = load_settings(tags={"c": {"delay": 6}}).tags
    assert {name: (one.delay, one.connections) for name, one in tags.items()} == {
        "a": (5.0, 2), "b": (3.0, None), "c": (6.0, None),
    }  # fmt: skip


def test_what_is_wrong_in_settings_is_one_sentence() -> None:
    with pytest.raises(BadSetting) as error:
        Settings(host_dely=1)  # type: ignore[call-arg]
    assert str(error.value) == (
        "There is no setting 'host_dely' (the argument host_dely sets it): perhaps 'host_delay' is meant."
    )
    with pytest.raises(BadSetting, match=r"'host_delay' is not valid: write a number from 0 to 3600 \(the argument"):
        Settings(host_delay=-1)


ALL = {"host_delay": 2.0, "host_connections": 1, "robots": "obey"}
HOSTS = {
    "intranet.example": {"delay": 0},
    "*.example": {"delay": 9, "connections": 4},
    "port.example:8080": {"connections": 2},
    "[::1]": {"robots": "ignore"},
}
TAGS = {"own": {"robots": "ignore", "delay": 0.5}, "few": {"delay": 7, "connections": 3}}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("elsewhere.org", {}),
        ("intranet.example", {"delay": 0.0, "connections": 4}),
        ("intranet.example:81", {"delay": 0.0, "connections": 4}),
        ("a.b.example", {"delay": 9.0, "connections": 4}),
        ("port.example:8080", {"delay": 9.0, "connections": 2}),
        ("[::1]", {"robots": False}),
        ("[::1]:8080", {"robots": False}),
        ("tagged.org", {"robots": False, "delay": 0.5}),
        ("twice.org", {"robots": False, "delay": 0.5, "connections": 3}),
    ],
)
def test_what_is_said_of_a_host_goes_before_what_is_said_of_more(host: str, expected: dict[str, Any]) -> None:
    given = settings(**ALL, hosts=HOSTS, tags=TAGS)
    found = host_policy(host, given, {"tagged.org": ["other", "own"], "twice.org": ["few", "own"]})
    assert found == HostPolicy(**{"delay": 2.0, "connections": 1, "robots": True} | expected)
