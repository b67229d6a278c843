"""The kind of a task in German, Spanish or French, by lists of their words.

A task is in one of them where more of its words are that language's than English ones. What the
lists do not know is a command that is not certain.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.tasks.routing.kinds import IntentReason, TaskIntent
from orchestrator.tasks.routing.sentences import QUOTED, Sentence
from orchestrator.tasks.routing.words import READING_VERBS, WRITING_VERBS
from sandbox.bundle.apispec import Access


def _split(text: str) -> frozenset[str]:
    return frozenset(_fold(text).split())


def _fold(text: str) -> str:
    """Without accents: they are often left out."""
    parts = unicodedata.normalize("NFD", text.replace("ß", "ss"))
    return "".join(each for each in parts if unicodedata.category(each) != "Mn")


@dataclass(frozen=True)
class Lexicon:
    """The words of a language that tell what is asked. All are without accents.

    `frequent` tell the language. `reading` and `writing` are imperatives and infinitives, which may
    stand first, and last where `verb_last`; `data` are question words for data. A task with one of
    `advice`, `negations`, `conditions` or `subjects` in front, or with a word of `doubts`, is no
    certain command.
    """

    language: str
    frequent: frozenset[str]
    polite: tuple[str, ...]
    reading: frozenset[str]
    writing: frozenset[str]
    making: frozenset[str]
    tools: frozenset[str]
    data: frozenset[str]
    advice: tuple[str, ...]
    negations: frozenset[str]
    conditions: frozenset[str]
    subjects: frozenset[str]
    requests: tuple[str, ...]
    doubts: frozenset[str]
    verb_last: bool = False

    @property
    def known(self) -> frozenset[str]:
        """All single words that tell the language."""
        return self.frequent | self.reading | self.writing | self.making | self.data


GERMAN = Lexicon(
    "de",
    _split(
        "der die das den dem des ein eine einen einem einer und oder ist sind mir mich uns wir ich "
        "für mit von vom zu zum zur im am auf aus bei nach über alle allen aller bitte nicht kein "
        "keine wie was welche welcher welches wo wann wer wieviel viel viele gibt hat haben kann "
        "kannst könntest würde wenn sie er es ihr du zeige zeig gib finde suche such hole hol "
        "lies nenne berechne rechne prüfe lösche erstelle baue mach mache freie freien heute "
        "morgen gestern wetter kostet in aktuelle aktuellen sofort alles war waren wurde habe "
        "doch mal"
    ),
    ("bitte", "hallo", "hi", "guten tag", "guten morgen", "guten abend",
     "jetzt", "mal", "dann", "danke", "also", "und"),
    _split(
        "zeige zeig zeigen liste auflisten listen gib ausgeben anzeigen finde finden suche such "
        "suchen hole hol holen abrufen abfragen nenne nennen lies lesen berechne berechnen rechne "
        "umrechnen wandle umwandeln prüfe prüfen überprüfe überprüfen vergleiche vergleichen zähle "
        "zählen ermittle ermitteln übersetze übersetzen sag sage schau nachsehen nachschlagen "
        "durchsuche durchsuchen rufe ruf lade heraussuchen herausfinden"
    ),
    _split(
        "lösche löschen entferne entfernen erstelle erstellen anlegen lege ändere ändern setze "
        "setzen buche buchen reserviere reservieren sende senden schicke schicken storniere "
        "stornieren aktualisiere aktualisieren starte starten stoppe stoppen bezahle bezahlen füge "
        "hinzufügen schreibe schreiben verschiebe verschieben"
    ),
    _split("baue bau erstelle mach mache schreibe schreib entwickle schmiede programmiere bauen"),
    _split("werkzeug tool tools server konnektor mcp integration mcp-server"),
    _split("welche welcher welches welchen was wo wann wer wieviel wieviele wem wessen"),
    (
        "wie kann", "wie soll", "wie sollte", "wie mache", "wie macht", "wie lösche", "wie geht",
        "wie funktioniert", "wie würde", "wie könnte", "wie man", "warum", "wieso", "weshalb",
        "was wäre", "was würde", "was passiert", "was soll", "was sollte", "was meinst",
        "was denkst", "was hältst", "was empfiehlst", "was ist ein", "was ist eine",
        "was bedeutet", "soll ich",
        "sollte ich", "sollten wir", "sollen wir", "darf ich", "dürfen wir",
        "muss ich", "müssen wir", "kann ich", "könnte man", "könnte ich", "wer weiss",
        "was für", "ist es gut", "können wir", "kann man", "ist es sinnvoll",
        "ist es möglich", "erkläre",
        "erklär", "hilf mir zu verstehen", "welche sollte", "welchen sollte", "welche würdest",
    ),
    _split("nicht kein keine keinen keiner nie niemals ohne nein nichts"),
    _split("wenn falls angenommen stell gesetzt hätte wäre würde vielleicht"),
    _split(
        "ich wir du er sie es man das dies dieser diese jemand der die mein meine unser unsere "
        "gestern"
    ),
    ("kannst du", "könntest du", "können sie", "könnten sie", "kannst du mir", "könntest du mir",
     "würdest du", "würden sie", "ich möchte", "ich will", "ich hätte gern", "ich brauche",
     "wir brauchen", "ich würde gern"),
    _split("später irgendwann falls wenn witz scherz dir dich du sobald"),
    verb_last=True,
)  # fmt: skip
SPANISH = Lexicon(
    "es",
    _split(
        "el la los las un una unos unas y o de del al en con por para que qué cuál cuáles cuánto "
        "cuántos cuántas cuánta cuándo dónde quién cómo es son está están hay mi mis me nos se su "
        "todos todas todo favor muestra muéstrame lista enumera dame busca encuentra obtén dime "
        "calcula convierte borra elimina crea haz libres tiempo hoy mañana ayer puedes podrías "
        "ya este esta ese esa eso barco"
    ),
    ("por favor", "hola", "buenos dias", "buenas tardes",
     "ahora", "gracias", "oye", "luego", "entonces"),
    _split(
        "muestra muestre muéstrame mostrar mostrarme lista listar listame enumera enumerar dame "
        "dar busca buscar búscame encuentra encontrar obtén obtener consulta consultar dime decir "
        "decirme calcula calcular convierte convertir comprueba comprobar verifica verificar "
        "compara comparar cuenta contar traduce traducir lee leer trae ver enséñame"
    ),
    _split(
        "borra borrar elimina eliminar crea crear cambia cambiar actualiza actualizar envía enviar "
        "manda mandar reserva reservar cancela cancelar añade añadir agrega agregar pon paga pagar "
        "inicia iniciar detén escribe escribir quita"
    ),
    _split("crea créame haz hazme construye constrúyeme escribe desarrolla forja programa fabrica"),
    _split("herramienta herramientas servidor conector integración mcp tool"),
    _split("qué cuál cuáles cuánto cuántos cuántas cuánta cuándo dónde quién quiénes"),
    (
        "cómo", "por qué", "porqué", "qué pasa si", "qué pasaría", "qué debería", "qué debo",
        "quién sabe", "qué opinas", "qué piensas", "qué crees", "qué me recomiendas",
        "qué recomiendas",
        "qué es un", "qué es una", "qué significa", "debería", "debo", "deberíamos", "debemos",
        "puedo", "podemos", "se puede", "es posible", "es buena idea", "vale la pena", "explica",
        "explícame", "cuál debería", "cuál me recomiendas", "tengo que", "qué harías",
    ),
    _split("no nunca jamás sin nada ningún ninguno ninguna"),
    _split("si supongamos imagina imaginemos suponiendo quizás tal ojalá"),
    _split(
        "yo nosotros tú él ella ellos ellas usted eso esto ese esa este esta alguien el la los las "
        "mi mis ayer ya se he ha hemos"
    ),
    ("puedes", "podrías", "puede", "podría", "me puedes", "me podrías", "quiero", "quisiera",
     "necesito", "me gustaría", "queremos", "necesitamos"),
    _split("después luego broma si te ti tú quién cuando"),
)  # fmt: skip
FRENCH = Lexicon(
    "fr",
    _split(
        "le la les un une des du de au aux et ou à dans en sur avec pour par que qui quel quelle "
        "quels quelles combien quand où comment est sont mes mon ma me moi nous vous je il elle on "
        "ce cette ces tous toutes tout plaît affiche affichez montre montrez donne donnez trouve "
        "cherche récupère calcule convertis supprime crée fais ne pas plus libres météo "
        "aujourd'hui demain hier liste si peux pourrais c'est l'a s'il"
    ),
    ("bonjour", "salut", "svp", "s'il vous plait", "s'il te plait",
     "maintenant", "merci", "ensuite", "alors"),
    _split(
        "affiche affichez afficher montre montrez montrer "
        "liste listez lister donne donnez donner trouve trouvez trouver "
        ""
        "cherche cherchez chercher recherche recherchez rechercher récupère récupérer obtiens "
        "obtenir dis dites calcule calculez calculer convertis convertissez convertir "
        "vérifie vérifiez vérifier compare comparer compte compter traduis traduire lis lire "
        "consulte consulter énumère énumérer"
    ),
    _split(
        "supprime supprimez supprimer efface effacer crée créez créer modifie modifier change "
        "changer mets envoie envoyer réserve réserver annule annuler ajoute ajouter paie payer "
        "démarre démarrer arrête arrêter écris écrire retire"
    ),
    _split("crée créez créer fais faites construis écris développe "
           "forge programme fabrique"),
    _split("outil outils serveur connecteur intégration mcp"),
    _split("quel quelle quels quelles qui quand où combien qu'est-ce lesquels lesquelles"),
    (
        "comment", "pourquoi", "que se passe", "que se passerait", "que dois", "que devrais",
        "quel temps de", "qui vivra", "que penses", "que pensez", "que me conseilles",
        "qu'en penses", "qu'est-ce qu'un",
        "qu'est-ce qu'une", "qu'est-ce que c'est", "que signifie", "faut-il", "dois-je",
        "devrais-je", "devrait-on", "puis-je", "peut-on", "est-il possible", "est-ce une bonne",
        "explique", "explique-moi", "expliquez", "quel devrais", "lequel", "laquelle", "vaut-il",
        "est-ce que je", "est-ce qu'on",
    ),
    _split("ne n'est pas jamais sans rien aucun aucune non n'efface n'affiche"),
    _split("si supposons imaginons imagine peut-être"),
    _split(
        "je tu il elle on nous vous ils elles ce c'est cela ça quelqu'un le la les mon ma mes hier "
        "j'ai j'aime j'aimerais"
    ),
    ("peux-tu", "pourrais-tu", "pouvez-vous", "pourriez-vous", "tu peux", "vous pouvez", "je veux",
     "je voudrais", "j'aimerais", "j'ai besoin de", "il me faut", "nous voulons"),
    _split("plus-tard blague te toi"),
)  # fmt: skip
_FIGURATIVE = _split(
    "respekt respeto respect liebe amor amour mut gefühl corazón coeur vie vida leben"
)
"""Objects that no interface has."""
LEXICONS = (GERMAN, SPANISH, FRENCH)
ENGLISH = (
    _split(
        "the a an of and or to in on at for with from is are was were be been it this that these "
        "those "
        "i you we they my your our me us all please not no do does did has have can could would "
        "should "
        "show list get find give tell what which who when where how why many much make delete "
        "check "
        "there any by as if then them its who's what's don't let's every each free today "
        "tomorrow he "
        "she him her so about make made be said asked told"
    )
    | READING_VERBS
    | WRITING_VERBS
)


def detect_lexicon(sentences: Sequence[Sentence], *, opened: bool = False) -> Lexicon | None:
    """The language of a task; None for English, and where no list knows more of its words.
    `opened`: it has an inverted question or exclamation mark.
    """
    words = [_fold(word) for said in sentences for word in said.words]
    if opened:
        return SPANISH
    english = sum(word in ENGLISH for word in words)
    words = [part for word in words for part in word.split("-")]
    counted = [(sum(word in each.known for word in words), each) for each in LEXICONS]
    most, found = max(counted, key=lambda pair: pair[0])
    accents = any(not word.isascii() for said in sentences for word in said.words)
    leads = bool(words) and words[0] in found.reading | found.writing | found.making | found.data
    leads = leads and words[0] not in ENGLISH
    tied = most > 0 and most == english and (accents or leads)
    return found if most > english or tied else None


_LEADING = frozenset().union(*(x.data | x.reading | x.writing | x.making for x in LEXICONS))


def begins_request(word: str) -> bool:
    """Whether a question or an order of one of the languages begins with a word: `Combien`."""
    folded = _fold(word.lower())
    return folded in _LEADING and folded not in ENGLISH


def classify_european(said: Sentence, known: Lexicon) -> TaskIntent:
    """The kind of a sentence in a language."""
    words = [part for word in said.words for part in _fold(word).split("-") if part]
    said = _strip_politeness(replace(said, words=tuple(words)), known)
    return replace(_classify(said, known), language=known.language)


def _strip_politeness(said: Sentence, known: Lexicon) -> Sentence:
    """The sentence without polite words before and behind it."""
    for _ in range(6):
        shorter = said.drop_phrase(known.polite)
        if shorter is None:
            break
        said = shorter
    for phrase in known.polite:
        size = len(phrase.split())
        if len(said.words) > size and said.words[-size:] == tuple(phrase.split()):
            rest = said.words[:-size]
            return replace(said, words=rest[:-1] if rest[-1] == "," else rest)
    return said


def _classify(said: Sentence, known: Lexicon) -> TaskIntent:
    first = said.get_word(0)
    if all(word in (QUOTED, ",") for word in said.words):
        return TaskIntent("remark", "quotation" if said.words else "nothing said")
    if first in known.conditions:
        return TaskIntent("advice" if said.is_question else "remark", "hypothesis")
    if first in known.negations:
        return TaskIntent("remark", "negation")
    if _begins(said, known.advice):
        return TaskIntent("advice", "how or why")
    asked = said.drop_phrase([_fold(phrase).replace("-", " ") for phrase in known.requests])
    told = _strip_politeness(asked if asked is not None else said, known)
    while told.get_word(0) in ("mir", "me", "moi", "nous", "uns", "nos"):
        told = told.drop(1)
    verb, last = told.get_word(0), told.words[-1] if told.words else ""
    if verb in known.making and known.tools & {*told.words[1:5]}:
        negated = known.negations & {*told.words}
        return TaskIntent("creation", "making", not negated, "write")
    if first in known.data or (first, said.get_word(1)) == ("wie", "viel"):
        return _doubt(TaskIntent("command", "question", True, "read"), said, known)
    if first == "wie" and said.get_word(1) in ("viele", "ist", "hoch", "spat", "weit", "lange"):
        return _doubt(TaskIntent("command", "question", True, "read"), said, known)
    imperative = verb in known.reading | known.writing
    if imperative and (known.negations & {*told.words[1:3]} or last in known.negations):
        return TaskIntent("remark", "negation")
    if asked is None and not imperative and first in known.subjects and not said.is_question:
        if not (known.verb_last and last in known.reading):
            return TaskIntent("remark", "statement")
    if imperative or (known.verb_last and last in known.reading | known.writing):
        access: Access = "write" if known.writing & {*told.words} else "read"
        form: IntentReason = "imperative" if imperative else "infinitive"
        return _doubt(TaskIntent("command", form, True, access), told, known)
    if asked is not None:
        return TaskIntent("command", "wish", False, None)
    return TaskIntent("command", "terse", False, None)


def _begins(said: Sentence, phrases: Sequence[str]) -> bool:
    text = said.text
    return any(text.startswith(f" {_fold(phrase).replace('-', ' ')} ") for phrase in phrases)


def _doubt(found: TaskIntent, said: Sentence, known: Lexicon) -> TaskIntent:
    words = {*said.words[1:]}
    if found.reason == "question" and said.is_exclaimed:
        return replace(found, reason="exclamation", certain=False)
    if found.reason == "question" and not said.is_question and len(said.words) < 4:
        return replace(found, reason="deictic", certain=False)
    if words & _FIGURATIVE:
        return replace(found, reason="figurative", certain=False)
    if words & known.negations:
        return replace(found, reason="negated part", certain=False)
    if words & (known.conditions | known.doubts):
        return replace(found, reason="condition", certain=False)
    return found if len(said.words) > 1 else replace(found, reason="deictic", certain=False)
