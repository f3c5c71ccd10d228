"""Everything that Driftline raises on purpose.

DriftlineError            something the user can read and act on; its text is one plain sentence
├── UsageError            what was asked for cannot be done as it was asked (exit status 2)
│   ├── BadURL            a text is not the address of a web page
│   ├── BadSetting        a setting, option or interval has a value that means nothing
│   └── BadFilter         a filter of a page cannot be understood
├── UnknownPage           a page was named that is not watched
├── UnknownVersion        a version was named that the page does not have
├── StoreError            the store cannot be opened, read or written
│   ├── StoreBusy         another run is using the store
│   ├── StoreLocked       another program is writing to the store for longer than one waits for it
│   ├── StoreUnavailable  the database server does not answer, or its disk is full: it may be back soon
│   ├── UnsupportedStore  the store was made by a version of Driftline that this one cannot read
│   ├── BrokenVersion     a stored version does not match its own digest
│   └── NoTextSearch      the database was built without what searching needs
├── WorkerDied            a worker process crashed, hung or ran out of memory on a page
├── RunStopped            a run was asked to stop before this was done
├── RunStalled            nothing was recorded for long although there was work to do
└── MissingExtra          an optional part of Driftline is not installed

A page that cannot be fetched or read raises nothing: it is a `Failure` in an outcome (see `model`).
"""

from __future__ import annotations

from enum import StrEnum
from shlex import quote


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
    """Something went wrong that the user can read and act on."""


class UsageError(DriftlineError):
    """What was asked for cannot be done as it was asked."""


class BadURL(UsageError):
    """A text is not the address of a web page."""


class BadSetting(UsageError):
    """A setting, option or interval has a value that means nothing."""


class BadFilter(UsageError):
    """A filter of a page cannot be understood."""


class UnknownPage(DriftlineError):
    """A page was named that is not watched."""

    def __init__(self, url: str) -> None:
        super().__init__(f'{url} is not watched: add it with "driftline add {quote(url)}".')


class UnknownVersion(DriftlineError):
    """A version was named that the page does not have."""


class UnknownChange(DriftlineError):
    """A change was named that was never found."""


class StoreError(DriftlineError):
    """The store cannot be opened, read or written."""


class StoreBusy(StoreError):
    """Another run is using the store."""


class StoreLocked(StoreError):
    """Another program is writing to the store for longer than one waits for it: the same may succeed later."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, or has no room left: the same will succeed once it is back."""


class UnsupportedStore(StoreError):
    """The store has the schema of another Driftline, which this one cannot read or bring up to date."""


class BrokenVersion(StoreError):
    """A stored version does not match its own digest."""


class NoTextSearch(StoreError):
    """The database was built without what searching needs."""


class WorkerDied(DriftlineError):
    """A worker process crashed, hung or ran out of memory on a page."""


class RunStopped(DriftlineError):
    """A run was asked to stop before this was done."""


class RunStalled(DriftlineError):
    """Nothing was recorded for long although there was work to do."""


class MissingExtra(DriftlineError):
    """An optional part of Driftline is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the '{extra}' extra: pip install 'driftline[{extra}]'.")


class UnreadableBody(DriftlineError):
    """A body that cannot be decoded or read, or not within the limit; it becomes the failure of its check."""

    def __init__(self, kind: FailureKind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
