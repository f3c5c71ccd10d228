"""Patterns of responses that are not the page: words of block pages, errors, consent pages and parked domains.

Words alone prove nothing, since a page may be about such things: `detect` decides where they count. Marks in the markup
are those of a block page itself, not of the script that a protected site has on all its pages.
"""

from __future__ import annotations

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


BLOCKED = _any(
    r"checking (?:if the site connection is secure|your browser)",
    r"verify(?:ing)? (?:that )?(?:you are|you're) (?:a )?human",
    r"(?:are you|i'?m|you are|you're) not a (?:ro)?bot\b|are you a (?:ro)?bot\b",
    r"enable javascript and cookies to continue",
    r"attention required! \| cloudflare",
    r"performing security verification",
    r"ddos protection by",
    r"unusual traffic from your",
    r"pardon our interruption",
    r"request unsuccessful\. incapsula",
    r"complete the (?:security check|captcha)",
    r"solve (?:this|the) captcha",
    r"enter the characters (?:that )?you see",
    r"access (?:to this page )?(?:has been )?denied(?! (?:is|was|are|were|has|had|means?|and|or)\b)",
    r"you have been blocked",
    r"blocked by (?:the )?(?:network )?security",
    r"your access to this (?:site|service) has been limited",
    r"the requested url was rejected\. please consult",
    r"you don'?t have permission to access",
    r"bot (?:detection|verification)",
    r"^robot or human\?",
    r"press (?:&|and) hold",
    r"vercel security checkpoint|sucuri website firewall",
    r"вы не робот|confirmez que vous (?:êtes humain|n'êtes pas un robot)",
    r"bestätigen sie, dass sie (?:ein mensch|kein roboter)",
)

#: what only block pages contain, and whose they are
_BLOCK_PAGES = (
    (b"_cf_chl_opt", "Cloudflare"),
    (b"captcha-delivery.com", "DataDome"),
    (b"px-captcha", "HUMAN"),
    (b"sec-if-cpt-container", "Akamai"),
    (b"/_sec/cp_challenge/", "Akamai"),
    (b"_Incapsula_Resource?SWUDNSAI", "Imperva"),
    (b"Incapsula incident ID", "Imperva"),
    (b"window.gokuProps", "AWS"),
    (b"sucuri_cloudproxy_js", "Sucuri"),
    (b"anubis_challenge", "Anubis"),
    (b"ddos-guard/js-challenge", "DDoS-Guard"),
)
_LARGEST_BLOCK_PAGE = 200_000  # bytes

ERROR = _any(
    r"\b(?:error|http)[ :-]*(?:40\d|410|429|50[0-4])\b",
    r"\b(?:40\d|410|429|50[0-4])[ :|.-]*(?:error|not found|forbidden|bad|gateway|service|page|internal|gone|too)"
    r"(?: (?:server error|gateway|request|time-?out|not found|(?:temporarily )?unavailable))?",
    r"(?:page|document|url|resource) (?:was |could |can )?not (?:be )?found",
    r"^\W*not found|page doesn'?t exist|page can(?:no|')t be found",
    r"page (?:you (?:requested|are looking for) )?(?:no longer exists|does not exist)",
    r"we (?:can'?t|couldn'?t|could not) find (?:the|that|this) page|looks like this page (?:is missing|has moved)",
    r"seite (?:wurde |konnte )?nicht gefunden|page (?:introuvable|non trouvée)|página no encontrada",
    r"página não encontrada|pagina non trovata|pagina niet gevonden|страница не найдена|сторінку не знайдено",
    r"nie znaleziono strony|strona nie istnieje|sidan (?:kunde inte hittas|hittades inte)",
    r"sayfa bulunamadı|ページが見つかりません|找不到(?:该|此)?(?:页面|網頁|頁面)|페이지를 찾을 수 없습니다",
    r"we'?ll be back (?:soon|shortly)",
    r"internal server error|bad gateway|gateway time-?out|service (?:is )?(?:temporarily )?unavailable",
    r"(?:under|down for|scheduled) maintenance|error establishing a database connection",
    r"an error occurred while processing",
    r"(?:this )?account (?:has been )?suspended|bandwidth limit exceeded",
    r"there isn'?t a github pages site here|fastly error: unknown domain|^\W*no such app\b|<code>nosuchbucket",
    r"^\W*(?:oops|sorry)?\W*something went wrong",
    r"your session (?:has )?(?:expired|timed out)",
    r"you are (?:now )?in (?:the )?(?:line|queue)\b|\bvirtual (?:waiting room|queue)\b",
    r"(?:not|isn'?t|un)(?: (?:currently|yet))? ?(?:available|accessible) (?:in|from) your (?:current )?"
    r"(?:region|country|location)",
    r"(?:not|isn'?t|un) ?(?:available|accessible) (?:in|to|for|from) (?:\w+ ){0,4}"
    r"(?:european (?:union|countries|economic area|visitors)|eu\b|eea\b)",
    r"unavailable (?:for|due to) legal reasons|(?:your|this) (?:country|region|location) (?:is|are) not supported",
    r"in (?:ihrem land|ihrer region|deinem land|deiner region) (?:\w+ ){0,2}nicht verfügbar",
    r"nicht verfügbar in (?:ihrem land|ihrer region|deinem land|deiner region)",
    r"(?:n'est pas|pas encore|indisponible)(?: (?:disponible|accessible))? dans votre (?:pays|région)",
    r"no (?:está|se encuentra) disponible en (?:tu|su) (?:país|región|ubicación)",
    r"não está disponível n[ao] (?:seu país|sua região|sua localização)",
    r"non (?:è )?disponibile (?:nel tuo paese|nella tua (?:regione|zona|area))",
    r"niet beschikbaar in (?:uw|jouw|je) (?:land|regio)|inte tillgänglig i (?:ditt land|din region)",
    r"nie jest dostępn\w+ w (?:twoim|państwa) (?:kraju|regionie)|недоступн\w* в вашей стране",
    r"^\W*welcome to nginx!|^\W*apache2 \w+ default page",
)
#: a title that is nothing but an error status; as a line of text it may be any number
NUMBERED = re.compile(r"\W*(?:40\d|410|50[0-4])\W*")
#: texts that no page has on purpose, whatever else it has
CRASH = _any(
    r"nothing was found at this location",
    r"\b(?:fatal|parse) error: .{0,2000}(?:stack trace|on line \d)|^traceback \(most recent call last\)",
)
TOO_MANY = _any(
    r"too many requests|you(?:'ve| have| are) (?:been |being )?rate[ -]limited|rate limit (?:was |has been )?exceeded",
    r"zu viele anfragen|trop de requêtes|demasiadas (?:solicitudes|peticiones)",
)
#: in titles, in lower case: they are searched for in every page, so that they must be fast
ERROR_TITLES = (
    "404", "410", "not found", "nicht gefunden", "introuvable", "no encontrada", "não encontrada", "non trovata",
    "niet gevonden", "не найдена", "見つかりません", "找不到", "unavailable", "server error", "bad gateway",
)  # fmt: skip

NEEDS_SCRIPT = _any(
    r"(?:enable|activate|turn on|requires?|needs?) java-?script",
    r"java-?script (?:is )?(?:required|disabled|not enabled)",
)

SCRIPT = re.compile(rb"<script\b", re.IGNORECASE)
#: where a script inserts the page
MOUNT = re.compile(
    rb"<(\w[\w-]{0,40})\b[^>]{0,500}\bid\s*=\s*[\"']?(?:app|root|__next|__nuxt|react-root|main-app)[\"']?[^>]{0,500}>\s*</\1>",
    re.IGNORECASE,
)
WAITING = _any(r"\W*(?:loading|please wait|one moment|just a moment|wird geladen|chargement)\b.{0,30}")

PASSWORD = re.compile(rb"<input\b[^>]{0,500}\btype\s*=\s*[\"']?password\b", re.IGNORECASE)
FIELD = re.compile(
    rb"<input\b[^>]{0,500}\b(?:type\s*=\s*[\"']?(?:email|text|tel)|name\s*=\s*[\"']?(?:e-?mail|user|login))\b",
    re.IGNORECASE,
)
LOGIN_PATH = re.compile(
    r"[/.=_-](?:log|sign)[_-]?(?:in|on)\b|/(?:sso|oauth2?|auth|session/new|accounts?/login|anmelden|connexion)\b",
    re.IGNORECASE,
)
LOGIN = _any(
    r"^\W*(?:please )?(?:sign|log)[ -]?(?:in|on)\b(?:$|\W*[-–|·:]| to\b| with\b)",
    r"[-–|·:]\s*(?:sign|log)[ -]?(?:in|on)\W*$",
    r"^\W*(?:login|anmelden|anmeldung|connexion|se connecter|iniciar sesión|accedi|inloggen|войти|вход|logga in"
    r"|zaloguj się|entrar|ログイン|登录|登入)\b\W*(?:$|[-–|·:])",
)

CONSENT = _any(
    r"before you continue to|we value your privacy|your privacy (?:choices|matters)",
    r"manage (?:your )?(?:cookie|consent)",
    r"(?:is )?part of the \w+ family of brands|(?:use|uses) cookies (?:and|to)\b|consent to (?:the use of )?cookies",
    r"bevor (?:sie|du) (?:fortfahren|fortfährst|zu)|mit werbung weiterlesen",
    r"(?:ihre|deine) (?:privatsphäre|einwilligung)",
    r"avant d'accéder à|nous respectons votre vie privée|votre vie privée",
    r"antes de (?:ir a|continuar)|valoramos (?:tu|su) privacidad|prima di (?:accedere|continuare)",
    r"la tua privacy|voordat (?:je|u) (?:verdergaat|naar)|(?:wij|we) (?:gebruiken|vragen) (?:cookies|toestemming)",
)
#: in texts, in lower case: they are searched for in every longer page, so that they must be fast
CONSENT_WORDS = ("cookie", "privacy", "privatsphäre", "einwilligung", "vie privée", "privacidad", "toestemming")
#: lines about consent, of which a consent page mostly consists and a page with a banner does not
ABOUT_CONSENT = _any(
    r"cookie|privacy|consent|personal|your data|partners|accept|reject|agree|advertis|measure|preferences",
    r"datenschutz|privatsphäre|einwillig|werbung|daten|akzeptier|zustimm|ablehnen|einstellungen",
    r"confidentialité|vie privée|accepter|refuser|données|publicité|privacidad|acept|rechaz|datos|publicidad",
    r"accett|rifiut|dati|pubblicit|toestemming|gegevens|accepteren|advertenti",
)
AGREE = _any(
    r"\b(?:accept|agree|allow|consent|reject)\b(?: to)?(?: all| and| &|\W*$|\W*\n)|i agree",
    r"alle (?:akzeptieren|annehmen|ablehnen)|akzeptieren und weiter|zustimmen|einverstanden",
    r"(?:tout|j')\s?accepter?|accepter et|continuer sans accepter|tout refuser",
    r"acept(?:ar|o) todo|aceptar y|rechazar todo|accett(?:a|o) tutt[oi]|rifiuta tutto|alles accepteren|akkoord",
)

PARKED = _any(
    r"(?:this|the) (?:web ?site|domain(?: name)?)(?: \S{1,80})? (?:is|may be|might be) (?:for sale|available to buy)",
    r"buy this domain|(?:domain|website) (?:is|has been) parked|parked (?:free|domain|page)|domain parking",
    r"this domain (?:name )?(?:has (?:recently )?(?:expired|been registered)|(?:is|was) registered (?:at|with|by))",
    r"inquire about this domain|interested in this domain|get this domain|make an offer on this domain",
    r"domain (?:steht zum verkauf|zu verkaufen)|(?:ce|nom de) domaine (?:est )?à vendre",
    r"este dominio está (?:a la|en) venta|questo dominio è in vendita",
    r"dit domein is te koop|домен продается|домен продаётся|此域名(?:可以)?出售",
)


def block_page_of(body: bytes) -> str:
    """Return whose block page this body is; empty if it has no mark of one."""
    if len(body) > _LARGEST_BLOCK_PAGE:
        return ""
    return next((name for mark, name in _BLOCK_PAGES if mark in body), "")
