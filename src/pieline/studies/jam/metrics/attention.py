"""Measure the attention of a causal model from a PIE to its context (ID10M-JAM, appendix H).

For originals with a variant that misled some run and a variant that every run judged correctly,
both variants are passed through the model. The attention from the PIE's tokens to each preceding
word is measured for every layer and head.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from pieline.core.conditions import Evidence
from pieline.core.uncertainty import ratio_interval
from pieline.languages.registry import get_language
from pieline.languages.spelling import normalize
from pieline.models.entries import CheckpointEntry
from pieline.models.loading import load_with_tokenizer
from pieline.studies.jam.bio import OUTSIDE
from pieline.studies.jam.metrics.attention_records import (
    AttendedVariant,
    AttentionMetrics,
    AttentionPair,
    MeanShare,
)
from pieline.studies.jam.metrics.drift import JudgedOriginal
from pieline.studies.jam.metrics.identification import tags_of_idioms
from pieline.studies.jam.metrics.scores import JamMetrics
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.variants.projection import added_context

PAIRS = 10
"""Maximum number of analyzed pairs (appendix H)."""
DECIMALS = 5
"""Number of decimals in output files; rounding removes floating-point noise."""


@dataclass(frozen=True)
class CausalModel:
    """A causal language model and its tokenizer.

    The model uses eager attention, because other implementations do not return attention weights.
    """

    model: Any
    tokenizer: Any


def load_causal_model(entry: CheckpointEntry, *, weights: str | Path | None = None) -> CausalModel:
    """Load a model for `attention_to_words`, from the folder `weights` if it is given.

    Raises:
        UserError: The checkpoint is incomplete; the hint states how to fix it.
    """
    from transformers import AutoModelForCausalLM

    model, tokenizer = load_with_tokenizer(
        AutoModelForCausalLM,
        entry,
        weights=weights,
        dtype=getattr(torch, entry.dtype),
        attn_implementation="eager",
    )
    return CausalModel(model, tokenizer)


def attention_to_words(
    causal: CausalModel, tokens: Sequence[str], queries: Collection[int]
) -> npt.NDArray[np.float64]:
    """Return the attention from the words `queries` to every word of a sentence.

    Attention is averaged over all subtokens of the attending words, and summed over the subtokens
    of an attended word. Attention to special tokens is excluded, so rows may not sum to 1.

    Args:
        causal: Model and tokenizer.
        tokens: Tokens of the sentence, with trailing spaces.
        queries: Indices of the attending words.

    Returns:
        Array of shape (layers, heads, words).

    Raises:
        ValueError: No subtoken belongs to the attending words.
    """
    encoding = causal.tokenizer("".join(tokens), return_offsets_mapping=True, return_tensors="pt")
    words = _words_of_subtokens(encoding.pop("offset_mapping")[0].tolist(), tokens)
    rows = [place for place, word in enumerate(words) if word in queries]
    if not rows:
        raise ValueError("no sub-token belongs to the attending words")
    inputs = {name: value.to(causal.model.device) for name, value in encoding.items()}
    with torch.inference_mode():
        output = causal.model(**inputs, output_attentions=True)
    layers = torch.stack([layer[0] for layer in output.attentions]).double().cpu().numpy()
    to_subtokens = layers[:, :, rows, :].mean(axis=2)
    number_of_layers, heads, _ = to_subtokens.shape
    to_words = np.zeros((number_of_layers, heads, len(tokens)))
    for place, word in enumerate(words):
        if word is not None:
            to_words[:, :, word] += to_subtokens[:, :, place]
    return to_words


def _words_of_subtokens(
    offsets: Sequence[tuple[int, int]], tokens: Sequence[str]
) -> list[int | None]:
    """Return the index of each subtoken's word; None for special tokens.

    `offsets` are the first character and the end of each subtoken in the sentence.
    """
    word_ends = np.cumsum([len(token) for token in tokens])
    words: list[int | None] = []
    for start, end in offsets:
        if end > start:
            # A subtoken may begin with the space before its word, so its last character counts.
            words.append(int(np.searchsorted(word_ends, end - 1, side="right")))
        else:
            words.append(None)
    return words


def cue_shares(
    attention: npt.NDArray[np.float64],
    *,
    cues: Collection[int],
    pie: Collection[int],
) -> npt.NDArray[np.float64]:
    """Return the share of the PIE's attention to its context that falls on cue words.

    The context consists of all words before the end of the PIE, except the PIE itself and the first
    word, which attracts attention in causal models regardless of its meaning. The share is 0 if
    there is no attention to the context.

    Args:
        attention: Attention from the PIE, shape (layers, heads, words).
        cues: Indices of the cue words.
        pie: Indices of the PIE's words.

    Returns:
        Array of shape (layers, heads).
    """
    context = [place for place in range(1, max(pie)) if place not in pie]
    cues_in_context = [place for place in context if place in cues]
    total = attention[:, :, context].sum(axis=2)
    on_cues = attention[:, :, cues_in_context].sum(axis=2)
    shares: npt.NDArray[np.float64] = np.zeros_like(total)
    np.divide(on_cues, total, out=shares, where=total > 0)
    return shares


def pie_places(sentence: JamSentence) -> list[int]:
    """Return the PIE's token indices, located by text if all tags are O; may be empty."""
    tags = list(sentence.tags)
    if all(tag == OUTSIDE for tag in tags):
        tags = tags_of_idioms(sentence.tokens, sentence.pies)
    return [place for place, tag in enumerate(tags) if tag != OUTSIDE]


def cue_places(original: JamSentence, variant: JamSentence) -> list[int]:
    """Return the token indices of content words in the added context; may be empty."""
    length = len(added_context(original.sentence, variant.sentence))
    language = get_language(variant.language)
    function_words = language.function_words | language.quantifiers
    places, position = [], 0
    for place, token in enumerate(variant.tokens):
        # Skip single letters such as the "s" of a genitive.
        words = {word for word in normalize(token).split() if len(word) > 1}
        if position < length and words - function_words:
            places.append(place)
        position += len(token)
    return places


def attended_variant(
    causal: CausalModel, original: JamSentence, variant: JamSentence
) -> AttendedVariant | None:
    """Return the attention from a variant's PIE.

    Returns None if the PIE is not found, or if no word but the first is a cue word.
    """
    pie, cues = pie_places(variant), cue_places(original, variant)
    if not pie or not set(cues) - {0}:
        return None
    attention = attention_to_words(causal, variant.tokens, pie)
    shares = cue_shares(attention, cues=set(cues), pie=set(pie))
    visible = max(pie) + 1
    return AttendedVariant(
        id=variant.id,
        words=[token.strip() for token in variant.tokens[:visible]],
        pie_words=pie,
        cue_words=[place for place in cues if place < visible],
        by_layer=np.round(attention[:, :, :visible].mean(axis=1), DECIMALS).tolist(),
        cue_share=np.round(shares, DECIMALS).tolist(),
        share=round(float(shares.mean()), DECIMALS),
    )


class CandidatePair(NamedTuple):
    """Ids of an original, of its variant MIS (misleading) and of its variant COR (resolved)."""

    original: str
    misleading: str
    resolved: str


def select_pairs(runs: Sequence[Sequence[JudgedOriginal]]) -> list[CandidatePair]:
    """Select originals with a variant that misled a run (MIS) and one that all runs resolved (COR).

    A variant misleads a run that is right about the original but wrong about the variant; a run
    resolves a variant if it is right about the variant. Runs that are wrong about all originals are
    ignored, because nothing can mislead them and they resolve almost nothing. MIS is the variant of
    an original that misled the most runs; pairs are sorted by this number in descending order, then
    by original id.
    """
    cases: dict[str, list[JudgedOriginal]] = defaultdict(list)
    for run in runs:
        if any(case.correct for case in run):
            for case in run:
                cases[case.id].append(case)
    pairs = []
    most_misled = {}
    for name, judged in cases.items():
        variants = sorted(judged[0].variants)
        misled = {one: sum(case.flipped[one] for case in judged) for one in variants}
        resolved = [one for one in variants if all(case.variants[one] for case in judged)]
        if resolved and any(misled.values()):
            worst = max(variants, key=lambda one: misled[one])
            pairs.append(CandidatePair(name, worst, resolved[0]))
            most_misled[name] = misled[worst]
    return sorted(pairs, key=lambda pair: (-most_misled[pair.original], pair.original))


def analyze(
    causal: CausalModel,
    sentences: Mapping[str, JamSentence],
    candidates: Sequence[CandidatePair],
    *,
    limit: int = PAIRS,
) -> list[AttentionPair]:
    """Return the attention for the first `limit` usable pairs.

    Pairs are skipped if `attended_variant` returns None for one of the two variants.

    Args:
        causal: Model to analyze.
        sentences: Originals and variants by id.
        candidates: Pairs in order of preference.
        limit: Maximum number of pairs in the result.
    """
    pairs: list[AttentionPair] = []
    for candidate in candidates:
        if len(pairs) == limit:
            break
        original = sentences[candidate.original]
        misleading = attended_variant(causal, original, sentences[candidate.misleading])
        resolved = attended_variant(causal, original, sentences[candidate.resolved])
        if misleading and resolved:
            pairs.append(
                AttentionPair(
                    original_id=original.id,
                    pie=original.pies[0],
                    is_figurative=original.is_figurative,
                    misleading=misleading,
                    resolved=resolved,
                )
            )
    return pairs


def mean_share(values: Sequence[float], *, resamples: int) -> MeanShare:
    """Return the mean of `values`, one per analyzed pair, with its 95% bootstrap interval."""
    if not values:
        return MeanShare(mean=None, interval=None)
    interval = ratio_interval(values, [1.0] * len(values), resamples=resamples, seed=0)
    return MeanShare(mean=float(np.mean(values)), interval=interval)


def attention_metrics(
    runs: Sequence[JamMetrics],
    sentences: Sequence[JamSentence],
    causal: CausalModel,
    evidence: Evidence,
    *,
    model: str,
    resamples: int,
) -> AttentionMetrics:
    """Run the attention analysis for one language.

    `runs` determine which variants mislead.
    """
    candidates = select_pairs([run.judged for run in runs])
    by_id = {item.id: item for item in sentences}
    analyzed = analyze(causal, by_id, candidates)
    shares = [(pair.misleading.share, pair.resolved.share) for pair in analyzed]
    return AttentionMetrics(
        language=sentences[0].language,
        model=model,
        dataset_is_released=all(run.dataset_is_released for run in runs),
        data_note=next((run.data_note for run in runs), ""),
        judged_by=[f"{run.model}/{run.setting}/seed-{run.seed}" for run in runs],
        pairs=analyzed,
        misleading=mean_share([one for one, _ in shares], resamples=resamples),
        resolved=mean_share([other for _, other in shares], resamples=resamples),
        difference=mean_share([one - other for one, other in shares], resamples=resamples),
        conditions=evidence.conditions,
        computed_from=dict(evidence.computed_from),
    )
