"""Blocklists in the formats that are in use."""

from __future__ import annotations

import gzip
from collections.abc import Iterable

import pytest

from driftline.errors import DriftlineError
from driftline.safety.blocklist_formats import BlocklistFormat, ParsedBlocklist, digest_of, key_of, read_list


def read(*lines: str) -> ParsedBlocklist:
    return read_list([f"{line}\n".encode() for line in lines], "the list")


def digests(names: Iterable[str]) -> bytes:
    return b"".join(digest.to_bytes(8, "little") for digest in sorted(map(digest_of, names)))


def test_a_hosts_file_blocks_the_hosts_with_an_unusable_address() -> None:
    found = read(
        "# a hosts file", "127.0.0.1 localhost", "::1 ip6-localhost", "0.0.0.0 0.0.0.0", "",
        "0.0.0.0 bad.example worse.example # both", "127.0.0.1\tEvil.Example.", ":: six.example",
    )  # fmt: skip
    assert found.format is BlocklistFormat.HOSTS
    assert found.hosts == digests(["bad.example", "worse.example", "evil.example", "six.example"])
    assert (found.skipped, found.problems) == (0, [])


def test_a_line_of_a_hosts_file_with_an_address_of_its_own_blocks_nothing() -> None:
    found = read("0.0.0.0 bad.example", "192.168.1.5 nas.example", "0.0.0.0 intranet")
    assert found.hosts == digests(["bad.example"])
    assert found.skipped == 2
    assert [number for number, _ in found.problems] == [2, 3]
    assert "has no dot" in found.problems[1][1]


def test_a_list_of_domains_may_have_stars_remarks_and_names_of_other_scripts() -> None:
    found = read(
        "\ufeffbad.example", "*.worse.example  # all of it", "b\u00fccher.example", "not a host!", "203.0.113.7"
    )
    assert found.format is BlocklistFormat.DOMAINS
    assert found.hosts == digests(["bad.example", "worse.example", "xn--bcher-kva.example", "203.0.113.7"])
    assert [number for number, _ in found.problems] == [4]


def test_adblock_rules_count_where_they_are_of_whole_hosts() -> None:
    found = read(
        "[Adblock Plus 2.0]", "! Title: unsafe", "||bad.example^", "||Worse.Example^$important",
        "||all.example^$doc,all", "@@||good.bad.example^", "||ads.example^$third-party", "example.com##.banner",
        "||x.example/path^", "/banner/",
    )  # fmt: skip
    assert found.format is BlocklistFormat.ADBLOCK
    assert found.hosts == digests(["bad.example", "worse.example", "all.example"])
    assert found.exceptions == digests(["good.bad.example"])
    assert [number for number, _ in found.problems] == [7, 8, 9, 10]


def test_a_csv_file_names_the_first_address_of_each_line() -> None:
    found = read(
        "################", "# id,dateadded,url,url_status,threat,urlhaus_link", "#",
        '"1","2026-01-01 00:00:00","http://bad.example:8080/Load.exe","online","malware","https://list.example/url/1/"',
        '"2","2026-01-01 00:00:00","https://BAD.example/%7Ex?utm_source=a&b=1#frag","online","malware","https://l.example/"',
        '"3","2026-01-01 00:00:00","no address","online"',
    )  # fmt: skip
    assert found.format is BlocklistFormat.CSV
    assert found.hosts == b""
    assert found.addresses == digests(["bad.example:8080/Load.exe", "bad.example/~x?b=1"])
    assert [number for number, _ in found.problems] == [6]


def test_a_list_of_bare_addresses_is_read_like_a_csv_file() -> None:
    found = read("https://bad.example/a,b", "http://bad.example/")
    assert found.addresses == digests(["bad.example/a,b", "bad.example/"])


def test_only_the_first_hundred_bad_lines_are_kept_and_all_are_counted() -> None:
    found = read("bad.example", *["???"] * 250)
    assert (found.skipped, len(found.problems), found.problems[-1][0]) == (250, 100, 101)


@pytest.mark.parametrize(
    "data", [b"", b"# nothing\n", b"Dear user,\nthis is a letter.\n", gzip.compress(b"x", mtime=0)]
)
def test_what_is_no_blocklist_is_refused(data: bytes) -> None:
    with pytest.raises(DriftlineError, match="the list is no blocklist"):
        read_list(data.splitlines(keepends=True), "the list")


def test_scheme_password_and_fragment_do_not_matter() -> None:
    assert key_of("https://me:secret@bad.example/x@y?a=1#part") == key_of("http://bad.example/x@y?a=1")
