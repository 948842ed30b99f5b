"""Normalize the spelling of texts in any language, without word lists."""

import re
import unicodedata
from functools import lru_cache

_APOSTROPHES = str.maketrans(dict.fromkeys("’‘‚‛❛❜`´′‵ʹʻʼʽˈˊˋʾʿꞌ՚׳᾽᾿`´῾΄＇｀", "'"))
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")


# Cache because votes and scoring compare the same few texts repeatedly.
@lru_cache(maxsize=1 << 14)
def normalize(text: str) -> str:
    """Return the casefolded words of a text without punctuation, separated by single spaces.

    The function normalizes Unicode (NFKC) and case (ß becomes ss), replaces punctuation by spaces,
    and removes apostrophes ("it's" becomes "its"), even after a space that a tokenizer has inserted
    ("it 's", "do n't", "achilles ' heel"). Normalizing the result again does not change it.
    """
    # Replace apostrophes first, because NFKC turns some of them into a space and an accent.
    text = _INVISIBLE.sub("", text).translate(_APOSTROPHES)
    text = unicodedata.normalize("NFKC", text).casefold()
    text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    text = re.sub(r"(?<=\w)\s+n't\b", "nt", text)
    text = re.sub(r"(?<=\w)\s+'(?=(?:s|t|m|d|re|ve|ll)\b)", "", text)
    text = re.sub(r"(?<=\w)'(?=\w)", "", text)
    return " ".join(re.findall(r"[^\W_]+", text))
