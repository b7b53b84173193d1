"""Words of other languages that say how something is put, as the English ones the cues know.

Only what joins and colours a statement is put into English (`weil`, `il faut`, `nunca`); what it
is about stays as it is, for nobody reads the result.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

_ENGLISH_MARKERS = """
the and is are it that this of to in for with not was be we you has have so on when by from at which
"""
_GERMAN_MARKERS = """
der die das und ist nicht ich wir ein eine einer den dem des mit auf für auch wenn von zu es im sich
sind dann nur wird jetzt
"""
_FRENCH_MARKERS = """
le la les des est pas une un je il que et dans pour avec sur ce ça on du au qui en se tu nous sont
donc
"""
_SPANISH_MARKERS = """
el la los las es que de en por con para un una se lo y del al como está esta son ya sí más pero
"""
_MARKERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "en": frozenset(_ENGLISH_MARKERS.split()),
        "de": frozenset(_GERMAN_MARKERS.split()),
        "fr": frozenset(_FRENCH_MARKERS.split()),
        "es": frozenset(_SPANISH_MARKERS.split()),
    }
)
_GERMAN = """
weil=because|denn=because|deshalb=so|daher=so|darum=so|deswegen=so|also=so|damit=so that
sonst=otherwise|andernfalls=otherwise|immer=always|nie=never|niemals=never|nur=only|nicht=not
kein=no|keine=no|keinen=no|ohne=without|statt=instead of|anstatt=instead of|sondern=but|aber=but
muss=must|müssen=must|musst=must|soll=should|sollte=should|sollten=should|braucht=needs
darf nicht=must not|ab jetzt=from now on|künftig=from now on|in zukunft=from now on
von nun an=from now on|jede=every|jeder=every|jedes=every|jeden=every|alle=all|allen=all|wenn=when
sobald=as soon as|solange=as long as|bevor=before|vor=before|nach=after|danach=after|nachdem=after
zuerst=first|zuerst nur=first only|dann=then|mit=with|von=from|die ursache=the cause
der grund=the reason|das problem=the problem|der fehler=the error|liegt an=is caused by
lag an=was caused by|wir nehmen=we use|wir verwenden=we use|wir nutzen=we use|nehmen wir=let's use
nimm=use|verwende=use|nutze=use|benutze=use|macht=makes|bleibt=stays|überlebt=survives
behält=keeps|verhindert=prevents|schneller=faster|kleiner=smaller|langsamer=slower
ich schaue=let me look|ich sehe=let me see|ich prüfe=let me check|ich werde=i will|bitte=please
erledigt=done|fertig=done|genau=exactly|ja=yes|gut=good|super=great|perfekt=perfect|danke=thanks
minuten=minutes|sekunden=seconds|stunden=hours|ist=is|sind=are|war=was|wurde=was|werden=are
wird=is|warum=why|wie=how|die regel=the rule|vermeide=avoid|vielleicht=maybe|vermutlich=probably
auf=to
"""
_FRENCH = """
parce que=because|car=because|puisque=because|donc=so|pour que=so that|afin que=so that
afin de=so that|sinon=otherwise|toujours=always|jamais=never|seulement=only|uniquement=only
pas=not|sans=without|au lieu de=instead of|plutôt que=rather than|mais=but|il faut=you must
on doit=we must|doit=must|doivent=must|devrait=should|désormais=from now on
dorénavant=from now on|à partir de maintenant=from now on|chaque=every|tous=all|toutes=all
tout=all|quand=when|lorsque=when|dès que=as soon as|avant=before|après=after|d'abord=first
ensuite=then|puis=then|avec=with|on part sur=let's go with|on prend=let's use
on choisit=we choose|on garde=let's keep|on passe à=it drops to|tombe à=drops to|la cause=the cause
le problème=the problem|l'erreur=the error|vient de=comes from|je vais=i will
je regarde=let me look|montre-moi=show me|merci=thanks|parfait=perfect|super=great|d'accord=agreed
ça marche=it works|renvoie=returns|garde=keeps|reste=stays|empêche=prevents|plus rapide=faster
plus petit=smaller|est=is|sont=are|était=was|qui=which|la règle=the rule|évite=avoid
utilise=use|utiliser=use|une seule=only one|un seul=only one|peut-être=maybe|pourquoi=why
comment=how|secondes=seconds|heures=hours
"""
_SPANISH = """
porque=because|ya que=because|puesto que=because|así que=so|por eso=so|por lo tanto=so
para que=so that|si no=otherwise|de lo contrario=otherwise|siempre=always|nunca=never|jamás=never
solo=only|sólo=only|solamente=only|no=not|sin=without|en vez de=instead of
en lugar de=instead of|pero=but|sino=but|hay que=you must|debe=must|deben=must|tiene que=must
tienen que=must|debería=should|a partir de ahora=from now on|de ahora en adelante=from now on
cada=every|todo=all|toda=all|todos=all|todas=all|cuando=when|en cuanto=as soon as
antes de=before|antes=before|después=after|primero=first|luego=then|con=with|usamos=we use
usa=use|usar=use|utiliza=use|vamos con=let's go with|nos quedamos con=let's keep
el problema=the problem|la causa=the cause|el error=the error|el fallo=the failure
se debe a=is caused by|viene de=comes from|voy a=i will|déjame=let me|gracias=thanks
perfecto=perfect|genial=great|de acuerdo=agreed|vale=ok|devuelve=returns|mantiene=keeps
evita=avoid|más rápido=faster|es=is|está=is|son=are|era=was|la regla=the rule
quizás=maybe|tal vez=maybe|por qué=why|cómo=how|segundos=seconds|minutos=minutes|horas=hours
"""


def _table(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for line in text.split("\n") for pair in line.split("|") if pair)
    return {word: english for word, _, english in pairs}


_TABLES = {"de": _table(_GERMAN), "fr": _table(_FRENCH), "es": _table(_SPANISH)}
_PATTERNS = {
    name: re.compile(
        r"(?i)(?<!\w)(?:"
        + "|".join(sorted(map(re.escape, table), key=len, reverse=True))
        + r")(?!\w)"
    )
    for name, table in _TABLES.items()
}
_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str:
    """The language whose small words a text has most of; English if none stands out."""
    words = [word.lower() for word in _WORD.findall(text[:4_000])]
    counts = {name: sum(word in some for word in words) for name, some in _MARKERS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] >= 2 and counts[best] > counts["en"] else "en"


@lru_cache(maxsize=4_000)
def in_english(sentence: str, language: str) -> str:
    """A sentence with the words that join and colour it in English."""
    table = _TABLES.get(language)
    if table is None:
        return sentence
    return _PATTERNS[language].sub(lambda found: table[found[0].lower()], sentence)
