"""The exceptions that Driftline raises on purpose, all from one root.

DriftlineError            something the user can read and act on; its text is one plain sentence
├── UsageError            a request cannot be carried out as it was made (exit status 2)
│   ├── BadURL            a text is not the address of a web page
│   ├── BadSetting        a setting, option or interval has an invalid value
│   └── BadFilter         a filter of a page is invalid
├── UnknownPage           a page is not on the watch list
├── UnknownVersion        a page has no version of this number
├── UnknownChange         there is no change of this number
├── StoreError            the store cannot be opened, read or written
│   ├── StoreBusy         another run is using the store
│   ├── StoreLocked       another program has been writing to the store for too long
│   ├── StoreUnavailable  the database server does not answer, or its disk is full: it may be back soon
│   ├── UnsupportedStore  the store was made by a version of Driftline that this one cannot read
│   ├── DamagedStore      the file of the store is damaged, or no database
│   ├── BrokenVersion     a stored version does not match its own digest
│   └── NoTextSearch      the database was built without what searching needs
├── WorkerDied            a worker process crashed, hung or ran out of memory on a page
├── RunStopped            a run was stopped before this was done
├── RunStalled            nothing was recorded for long although there was work to do
├── MissingExtra          an optional part of Driftline is not installed
├── UnreadableBody        a body cannot be decoded, or not within the size limit
│   └── NothingSelected   it has nothing of what its filters select
├── MissingSecret         an environment variable with a credential of a page is not usable (http/credentials)
├── RegexTimeout          a regular expression of a filter takes too long (detection/extract/line_filters)
├── NoBrowser             there is no Chromium to render pages with (fetch/browser/chromium)
├── BrowserFailed         Chromium was found and could not be started (fetch/browser/chromium)
├── BrowserGone           Chromium has ended, or was ended because it did not answer (fetch/browser/chromium)
├── EndlessNavigation     scripts of a page navigate again and again (fetch/browser/capture)
├── StepFailed            a step of a rendered page could not be carried out (fetch/browser/steps)
├── ProxyRefused          a proxy was reached and does not connect to the host (fetch/browser/upstream_proxy)
└── LabError              a measurement went wrong (lab/bench/local_watch_lists)
    └── NoPostgres        no PostgreSQL server can be run here (lab/servers/postgres_server)

A page that cannot be fetched or read raises nothing: it is a `Failure` in an outcome (see `model`). An exception whose
name begins with an underscore never leaves its module, and is not listed.
"""

from __future__ import annotations

from enum import StrEnum
from shlex import quote

from driftline.urls import without_password


class FailureKind(StrEnum):
    """Why a check failed."""

    DNS = "dns"
    NOT_ALLOWED = "not-allowed"
    ACCESS = "access"
    REFUSED = "refused"
    TIMED_OUT = "timed-out"
    TLS = "tls"
    CERTIFICATE = "certificate"
    CONNECTION = "connection"
    TOO_LARGE = "too-large"
    REDIRECTS = "redirects"
    STATUS = "status"
    PROTOCOL = "protocol"
    BODY = "body"
    SELECTION = "selection"
    UNSAFE = "unsafe"
    HOSTILE = "hostile"
    BROWSER = "browser"
    ROBOTS = "robots"
    BROKEN = "broken"
    INTERNAL = "internal"


class DriftlineError(Exception):
    """Something went wrong that the user can read and act on. Its sentence shows no password of a URL."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(without_password(sentence))


class UsageError(DriftlineError):
    """A request cannot be carried out as it was made."""


class BadURL(UsageError):
    """A text is not the address of a web page."""


class BadSetting(UsageError):
    """A setting, option or interval has an invalid value."""


class BadFilter(UsageError):
    """A filter of a page is invalid."""


class UnknownPage(DriftlineError):
    """A page is not on the watch list."""

    def __init__(self, url: str) -> None:
        super().__init__(f'{url} is not watched: add it with "driftline add {quote(url)}".')


class UnknownVersion(DriftlineError):
    """A page has no version of this number."""


class UnknownChange(DriftlineError):
    """There is no change of this number."""


class StoreError(DriftlineError):
    """The store cannot be opened, read or written."""


class StoreBusy(StoreError):
    """Another run is using the store."""


class StoreLocked(StoreError):
    """Another program has been writing to the store for too long: the same may succeed later."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, or has no room left: the same will succeed once it is back."""


class UnsupportedStore(StoreError):
    """The store has the schema of another Driftline, which this one cannot read or bring up to date."""


class DamagedStore(StoreError):
    """The file of the store is damaged, or no database."""


class BrokenVersion(StoreError):
    """A stored version does not match its own digest."""


class NoTextSearch(StoreError):
    """The database was built without what searching needs."""


class WorkerDied(DriftlineError):
    """A worker process crashed, hung or ran out of memory on a page, or the run was stopped before it started."""


class RunStopped(DriftlineError):
    """A run was stopped before this was done."""


class RunStalled(DriftlineError):
    """Nothing was recorded for long although there was work to do."""


class MissingExtra(DriftlineError):
    """An optional part of Driftline is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the '{extra}' extra: pip install 'driftline[{extra}]'.")


class UnreadableBody(DriftlineError):
    """A body cannot be decoded, or not within the size limit; it becomes the failure of its check."""

    def __init__(self, kind: FailureKind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class NothingSelected(UnreadableBody):
    """A document has nothing of what its filters select."""
