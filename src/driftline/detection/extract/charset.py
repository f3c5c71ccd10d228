"""The charset of a response body, and its text.

Only the labels of the WHATWG encoding standard are accepted: some codecs of Python are not encodings of text, and a
page must not be able to choose one of them.
"""

from __future__ import annotations

import codecs
import re

from driftline.errors import FailureKind, UnreadableBody

_LABELS = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 x-unicode20utf8",
    "utf-16-le": "utf-16le utf-16 ucs-2 iso-10646-ucs-2 unicode",
    "utf-16-be": "utf-16be unicodefffe",
    "cp1252": "windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 iso88591 latin1 latin-1 l1 us-ascii ascii cp819",
    "cp866": "ibm866 cp866 866 csibm866",
    "iso8859-2": "iso-8859-2 iso8859-2 iso88592 latin2 l2",
    "iso8859-3": "iso-8859-3 iso8859-3 iso88593 latin3 l3",
    "iso8859-4": "iso-8859-4 iso8859-4 iso88594 latin4 l4",
    "iso8859-5": "iso-8859-5 iso8859-5 iso88595 cyrillic",
    "iso8859-6": "iso-8859-6 iso8859-6 iso88596 arabic asmo-708",
    "iso8859-7": "iso-8859-7 iso8859-7 iso88597 greek greek8",
    "iso8859-8": "iso-8859-8 iso8859-8 iso88598 hebrew iso-8859-8-i visual logical",
    "iso8859-10": "iso-8859-10 iso8859-10 iso885910 latin6 l6",
    "iso8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso8859-15": "iso-8859-15 iso8859-15 iso885915 l9 csisolatin9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "koi8-r koi8 koi koi8_r cskoi8r",
    "koi8-u": "koi8-u koi8-ru",
    "mac-roman": "macintosh mac x-mac-roman csmacintosh",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp874": "windows-874 dos-874 tis-620 iso-8859-11 iso8859-11 iso885911",
    "cp1250": "windows-1250 cp1250 x-cp1250",
    "cp1251": "windows-1251 cp1251 x-cp1251",
    "cp1253": "windows-1253 cp1253 x-cp1253",
    "cp1254": "windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 iso88599 latin5 l5",
    "cp1255": "windows-1255 cp1255 x-cp1255",
    "cp1256": "windows-1256 cp1256 x-cp1256",
    "cp1257": "windows-1257 cp1257 x-cp1257",
    "cp1258": "windows-1258 cp1258 x-cp1258",
    "gb18030": "gb18030 gbk x-gbk gb2312 gb_2312 gb_2312-80 chinese csgb2312 iso-ir-58",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "euc-jp x-euc-jp cseucpkdfmtjapanese",
    "iso2022-jp": "iso-2022-jp csiso2022jp",
    "cp932": "shift_jis shift-jis sjis x-sjis ms_kanji ms932 windows-31j csshiftjis",
    "cp949": "euc-kr cseuckr korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949 iso-ir-149",
}

_CHARSETS = {label: (labels.split()[0], codec) for codec, labels in _LABELS.items() for label in labels.split()}


def find_charset(label: str) -> tuple[str, str] | None:
    """Return the standard's name for the charset of a label, and its codec; None if there is no such label."""
    return _CHARSETS.get(label.strip().lower())


_CHARSET_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_CHARSET_IN_MARKUP = re.compile(
    rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([^\s\"'/>;]+)", re.IGNORECASE
)
_UTF_8 = ("utf-8", "utf-8")
_MARKUP_SEARCHED = 2_048
_GUESSED_FROM = 65_536
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_ALL_BOMS = tuple(mark for mark, _ in _BOMS)
_PIECE = 16_384  # bytes
_LOOKED_AT = 4_096  # characters
_SOME_CONTROLS, _FEW_CONTROLS = 30, 0.02  # and share of the characters: text has none, other data one in ten
_TEXT_TYPES = ("text/", "application/xhtml")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def decode_text(body: bytes, content_type: str) -> tuple[str, str]:
    """Return the body as text, and its charset: by byte order mark, header or markup, else by a guess.

    Raise UnreadableBody if its content type is one of text and it is not text.
    """
    text, charset = _decoded(body, content_type)
    start = text[:_LOOKED_AT]
    if not start.isascii() and content_type.lower().startswith(_TEXT_TYPES):
        controls = len(_CONTROLS.findall(start))
        if controls > _SOME_CONTROLS and controls > _FEW_CONTROLS * len(start):
            raise UnreadableBody(FailureKind.BODY, "The body is not text, although its content type is.")
    return text, charset


def _decoded(body: bytes, content_type: str) -> tuple[str, str]:
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body.decode(name, "replace"), name.removesuffix("-sig")
    charset = _declared(body, content_type)
    for name, codec in filter(None, (charset, _UTF_8)):
        try:
            return body.decode(codec), name
        except UnicodeDecodeError:
            continue  # the declaration is wrong, or some bytes are
    if charset is None or (charset == _UTF_8 and _is_mostly_wrong(body)):
        from charset_normalizer import from_bytes  # loaded only when needed: few pages declare no charset

        guess = from_bytes(body[:_GUESSED_FROM]).best()
        charset = _UTF_8 if guess is None else (guess.encoding, guess.encoding)
    name, codec = charset
    return body.decode(codec, "replace"), name


def _is_mostly_wrong(body: bytes) -> bool:
    """Return whether most of what is not ASCII is not UTF-8: decoded as that, words would differ only in length."""
    text = body[:_GUESSED_FROM].decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    return 2 * wrong > sum(not letter.isascii() for letter in text)


def is_utf_8(body: bytes, content_type: str) -> bool:
    """Return whether `decode_text` would decode the body as UTF-8.

    If UTF-8 is declared, single wrong bytes are replaced, and only the start of the body is checked. It is decoded in
    pieces that fit into the processor's cache, in half the time that decoding the whole takes.
    """
    declared = _declared(body, content_type)
    if body.startswith(_ALL_BOMS) or declared not in (None, _UTF_8):
        return False
    whole, at, end = memoryview(body), 0, len(body) if declared is None else min(len(body), _PIECE)
    try:
        while at < end:
            _, read = codecs.utf_8_decode(whole[at : at + _PIECE], "strict", at + _PIECE >= len(body))
            at += read
    except UnicodeDecodeError:
        return False
    return True


def _declared(body: bytes, content_type: str) -> tuple[str, str] | None:
    """Return the name and the codec of the charset that the header or the markup names."""
    in_header = _CHARSET_IN_HEADER.search(content_type)
    in_markup = None if in_header else _CHARSET_IN_MARKUP.search(body, 0, _MARKUP_SEARCHED)
    declared = in_header.group(1) if in_header else in_markup.group(1).decode("latin-1") if in_markup else ""
    charset = find_charset(declared)
    if in_markup and charset and charset[0].startswith("utf-16"):
        return _UTF_8  # a declaration that can be read as ASCII is not in UTF-16
    return charset
