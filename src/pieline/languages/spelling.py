"""Spelling details that no language's matching depends on.

Apart, so that what only compares spellings depends on no language's words.
"""

import re
import unicodedata
from functools import lru_cache

_APOSTROPHES = str.maketrans(dict.fromkeys("’‘‚‛`´′ʼ＇", "'"))
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")


# Votes and scoring compare the same few texts over and over.
@lru_cache(maxsize=1 << 14)
def normalise(text: str) -> str:
    """Lowercase words separated by one space, so that spelling details do not decide a match.

    Unicode forms (NFKC), case (ß is ss), quotation marks, hyphens, punctuation and repeated spaces
    go; apostrophes join ("it's" is "its"), also where a tokeniser split them off ("it 's",
    "do n't", "achilles ' heel"). Idempotent.
    """
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    text = re.sub(r"(?<=\w)\s+n't\b", "nt", text)
    text = re.sub(r"(?<=\w)\s+'(?=(?:s|t|m|d|re|ve|ll)\b)", "", text)
    text = re.sub(r"(?<=\w)'(?=\w)", "", text)
    return " ".join(re.findall(r"[^\W_]+", text))
