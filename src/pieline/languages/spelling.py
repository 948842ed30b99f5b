"""Normalize spelling independently of the language.

This module is separate so that spelling comparisons do not depend on word lists.
"""

import re
import unicodedata
from functools import lru_cache

_APOSTROPHES = str.maketrans(dict.fromkeys("’‘‚‛`´′ʼ＇", "'"))
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")


# Cache because votes and scoring compare the same few texts repeatedly.
@lru_cache(maxsize=1 << 14)
def normalize(text: str) -> str:
    """Return lowercase words separated by single spaces, without spelling details. Idempotent.

    Normalizes Unicode (NFKC) and case (ß becomes ss); replaces quotation marks, hyphens,
    punctuation and repeated spaces with a single space; removes apostrophes ("it's" becomes "its"),
    also where a tokenizer split them off ("it 's", "do n't", "achilles ' heel").
    """
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    text = re.sub(r"(?<=\w)\s+n't\b", "nt", text)
    text = re.sub(r"(?<=\w)\s+'(?=(?:s|t|m|d|re|ve|ll)\b)", "", text)
    text = re.sub(r"(?<=\w)'(?=\w)", "", text)
    return " ".join(re.findall(r"[^\W_]+", text))
