"""The charsets of the web: the labels of the encoding standard, and the Python codec that reads each.

A label that is not here is no charset, whatever Python makes of it: its codecs include some that are no encodings of
text at all, and a page must not choose those.
"""

from __future__ import annotations

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
    """The standard's own name for the charset of that label, and its codec; None if there is no such label."""
    return _CHARSETS.get(label.strip().lower())
