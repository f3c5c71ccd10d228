"""Tracking parameters, which advertising and newsletters add to URLs to know where a visitor came from.

They do not change the page, and make a hundred URLs of one. A name is listed only if it is used for nothing else:
`ref`, `source` or `cid` select the page on some sites. `canonical.reduced` takes them out of a URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: '*' matches any ending
BUILT_IN = (
    # web statistics: Google Analytics, Matomo and Piwik, Adobe, AT Internet, Webtrends, Openstat
    "utm_*", "_ga", "_gl", "mtm_*", "matomo_*",
    "pk_campaign", "pk_cid", "pk_content", "pk_keyword", "pk_kwd", "pk_medium", "pk_source",
    "ef_id", "s_kwcid", "xtor", "wt.mc_id", "_openstat",
    # a click on an advertisement: Google, Microsoft, Meta, X, TikTok, LinkedIn, Pinterest, Snapchat, Reddit, Yandex,
    # Outbrain, Taboola
    "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_campaignid", "gad_source", "srsltid", "hsa_*",
    "msclkid", "fbclid", "fb_action_ids", "fb_action_types", "twclid", "ttclid", "li_fat_id", "epik", "sccid",
    "rdt_cid", "yclid", "ymclid", "ysclid", "dicbo", "tblci",
    # shops that pay for visitors
    "cjevent", "irclickid", "raneaid", "ranmid", "ransiteid",
    # links that were shared
    "igsh", "igshid", "_branch_match_id", "_branch_referrer", "guccounter", "guce_referrer", "guce_referrer_sig",
    # newsletters: Mailchimp, HubSpot, Marketo, Vero, Klaviyo, Drip, Omeda, ActiveCampaign, MailerLite, Eloqua
    "mc_cid", "mc_eid", "_hsenc", "_hsmi", "__hsfp", "__hssc", "__hstc", "hsctatracking", "mkt_tok", "vero_conv",
    "vero_id", "_kx", "__s", "oly_anon_id", "oly_enc_id", "vgo_ee", "ml_subscriber", "ml_subscriber_hash",
    "elqtrack", "elqtrackid",
)  # fmt: skip


class Tracking:
    """The parameters that are dropped from URLs: the built-in ones, with the user's changes.

    A change is a name to drop, or one to keep with '-' before it; the last that matches a name decides, so that
    ('-*', 'utm_*') drops what begins with 'utm_' and nothing else.
    """

    def __init__(self, changes: Iterable[str] = ()) -> None:
        self._names: dict[str, bool] = {}
        beginnings: dict[str, bool] = {}
        for rule in (*BUILT_IN, *changes):
            name, drop = rule.lower().removeprefix("-"), not rule.startswith("-")
            if name.endswith("*"):
                beginning = name.removesuffix("*")
                for earlier in (self._names, beginnings):
                    for one in [one for one in earlier if one.startswith(beginning)]:
                        del earlier[one]
                beginnings[beginning] = drop
            else:
                self._names[name] = drop
        self._beginnings = tuple(reversed(beginnings.items()))

    def __repr__(self) -> str:
        return f"<Tracking names={len(self._names)} prefixes={len(self._beginnings)}>"

    def drops(self, name: str) -> bool:
        """Return whether a parameter of this name, in lower case, is dropped."""
        drop = self._names.get(name)
        if drop is not None:
            return drop
        for beginning, drop in self._beginnings:
            if name.startswith(beginning):
                return drop
        return False


KNOWN = Tracking()
