"""Key phrases by RAKE's idea: what stands between stop words and punctuation is a candidate.

Rose et al., "Automatic Keyword Extraction from Individual Documents", 2010. Its score (degree over frequency) favours
long phrases that occur once; here a phrase counts how often it occurs times how many words it has. The libraries there
are were passed over: yake is GPL, the others load spaCy or NLTK for what is forty lines.
"""

import string
from collections import Counter
from collections.abc import Iterable

_LONGEST_PHRASE = 4
_LONGEST_WORD = 40
_SHORTEST_WORD = 3
_FEWEST_AS_PHRASE = 2
_FEWEST_AS_WORD = 4
_PUNCTUATION = string.punctuation + "“”„«»…—•"

_STOP_WORDS = """
    a about above across after again against all almost along already also although always am among an and
    another any anyone anything are around as at away back be became because become becomes been before behind
    being below between both but by came can can't cannot come could did do does doesn't doing don't done down
    due during e.g each either else enough etc even ever every everything example few first following for found
    from further gave get gets give given go goes going gone got had has have having he hence her here hers
    herself him himself his how however i i.e if in indeed instead into is isn't it it's its itself just keep
    kept last later least less let like likely made mainly make makes many may maybe me means meanwhile might
    more most mostly much must my myself near need needs neither never next no nobody none nor not nothing
    now of off often ok on once one only onto or other others otherwise our ours out over own per perhaps please
    put quite rather really s said same say says second see seem seems seen set several shall she should show
    shown shows since so some someone something sometimes soon still such t take taken takes than that that's
    the their theirs them themselves then there therefore these they thing things this those though three
    through thus to together too toward towards two under unless until up upon us use used useful user uses
    using usually various very via want wants was way we well were what whatever when where whether which while
    who whole whom whose why will with within without won't would yes yet you you're your yours yourself
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def phrases_in(paragraph: str) -> list[str]:
    """The candidates of a paragraph, lower case, in its order."""
    phrases: list[str] = []
    words: list[str] = []
    for word in paragraph.lower().split():
        if word not in STOP_WORDS and word.isalpha() and len(word) >= _SHORTEST_WORD:
            words.append(word)
            continue
        # Punctuation before a word ends the phrase before it, punctuation behind it the phrase it stands in.
        core = _core_of(word)
        if core and core[0] == word[0]:
            words.append(core)
            core = ""
        _add_phrase(phrases, words)
        words = [core] if core and core[-1] == word[-1] else []
    _add_phrase(phrases, words)
    return phrases


def _core_of(word: str) -> str:
    """The word without punctuation around it; empty if it is not a word: a number, a path, an address, a stop word."""
    core = word.strip(_PUNCTUATION)
    is_word = core not in STOP_WORDS and core.replace("-", "").replace("'", "").isalpha()
    return core if is_word and len(core) >= _SHORTEST_WORD else ""


def _add_phrase(phrases: list[str], words: list[str]) -> None:
    if words and len(words) <= _LONGEST_PHRASE and (len(words) > 1 or len(words[0]) <= _LONGEST_WORD):
        phrases.append(" ".join(words))


def best_phrases(candidates: Iterable[str], limit: int) -> list[str]:
    """The phrases a document is about, best first; of equals, the one that came first."""
    scores = {}
    for phrase, n_times in Counter(candidates).items():
        n_words = phrase.count(" ") + 1
        if n_times >= (_FEWEST_AS_WORD if n_words == 1 else _FEWEST_AS_PHRASE):
            scores[phrase] = n_times * n_words
    # sorted() keeps the order of equals, and a Counter that of first occurrence.
    return sorted(scores, key=lambda phrase: -scores[phrase])[:limit]
