"""Measure the attention of a causal model from a PIE to its context (ID10M-JAM, appendix H).

Some originals have a variant that misled a run and a variant that every run judged correctly. The
causal model reads both variants. For every layer and head, this module measures the attention from
the PIE's tokens to each preceding word.
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
    """Load a causal model for `attention_to_words`.

    Args:
        entry: Entry of the model in models.yaml.
        weights: Folder with the weights; None to load the checkpoint that the entry names.

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

    Attention is averaged over the subtokens of the attending words, and summed over the subtokens
    of each attended word. Attention to special tokens is excluded, so the attention to all words
    may sum to less than 1.

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
    word_by_subtoken = _words_of_subtokens(encoding.pop("offset_mapping")[0].tolist(), tokens)
    query_subtokens = [
        subtoken for subtoken, word in enumerate(word_by_subtoken) if word in queries
    ]
    if not query_subtokens:
        raise ValueError("no sub-token belongs to the attending words")
    inputs = {name: tensor.to(causal.model.device) for name, tensor in encoding.items()}
    with torch.inference_mode():
        output = causal.model(**inputs, output_attentions=True)
    # Shape (layers, heads, attending subtokens, attended subtokens); the batch has one sentence.
    attention = torch.stack([layer[0] for layer in output.attentions]).double().cpu().numpy()
    to_subtokens = attention[:, :, query_subtokens, :].mean(axis=2)
    layers, heads, _ = to_subtokens.shape
    to_words = np.zeros((layers, heads, len(tokens)))
    for subtoken, word in enumerate(word_by_subtoken):
        if word is not None:
            to_words[:, :, word] += to_subtokens[:, :, subtoken]
    return to_words


def _words_of_subtokens(
    offsets: Sequence[tuple[int, int]], tokens: Sequence[str]
) -> list[int | None]:
    """Return the index of the word that contains each subtoken; None for special tokens.

    `offsets` are the start and end of each subtoken in the sentence, in characters. The end is
    exclusive; special tokens are empty.
    """
    word_ends = np.cumsum([len(token) for token in tokens])
    word_indices: list[int | None] = []
    for start, end in offsets:
        if end > start:
            # A subtoken may begin with the space before its word, so its last character counts.
            word_indices.append(int(np.searchsorted(word_ends, end - 1, side="right")))
        else:
            word_indices.append(None)
    return word_indices


def cue_shares(
    attention: npt.NDArray[np.float64],
    *,
    cues: Collection[int],
    pie: Collection[int],
) -> npt.NDArray[np.float64]:
    """Return the share of the attention from the PIE to its context that falls on cue words.

    The context consists of the words before the end of the PIE, without the PIE and without the
    first word, which attracts attention in causal models regardless of its meaning. The share is 0
    if there is no attention to the context.

    Args:
        attention: Attention from the PIE, shape (layers, heads, words).
        cues: Indices of the cue words.
        pie: Indices of the PIE's words.

    Returns:
        Array of shape (layers, heads).
    """
    context = [word for word in range(1, max(pie)) if word not in pie]
    cues_in_context = [word for word in context if word in cues]
    to_context = attention[:, :, context].sum(axis=2)
    to_cues = attention[:, :, cues_in_context].sum(axis=2)
    shares: npt.NDArray[np.float64] = np.zeros_like(to_context)
    np.divide(to_cues, to_context, out=shares, where=to_context > 0)
    return shares


def pie_indices(sentence: JamSentence) -> list[int]:
    """Return the indices of the PIE's tokens; empty if the PIE is not found.

    If no token is tagged as part of an idiom, the PIE is searched in the text.
    """
    tags = list(sentence.tags)
    if all(tag == OUTSIDE for tag in tags):
        tags = tags_of_idioms(sentence.tokens, sentence.pies)
    return [index for index, tag in enumerate(tags) if tag != OUTSIDE]


def cue_indices(original: JamSentence, variant: JamSentence) -> list[int]:
    """Return the indices of the cue words, the content words of a variant's added context."""
    # Positions are in characters; each token includes the space after it.
    context_end = len(added_context(original.sentence, variant.sentence))
    language = get_language(variant.language)
    function_words = language.function_words | language.quantifiers
    indices = []
    token_start = 0
    for index, token in enumerate(variant.tokens):
        if token_start >= context_end:
            break
        # Skip single letters such as the "s" of a genitive.
        words = {word for word in normalize(token).split() if len(word) > 1}
        content_words = words - function_words
        if content_words:
            indices.append(index)
        token_start += len(token)
    return indices


def attended_variant(
    causal: CausalModel, original: JamSentence, variant: JamSentence
) -> AttendedVariant | None:
    """Return the attention from a variant's PIE to the words before the end of the PIE.

    Returns None if the PIE is not found, or if there is no cue word after the first word.
    """
    pie, cues = pie_indices(variant), cue_indices(original, variant)
    cues_after_first_word = [word for word in cues if word > 0]
    if not pie or not cues_after_first_word:
        return None
    attention = attention_to_words(causal, variant.tokens, pie)
    shares = cue_shares(attention, cues=set(cues), pie=set(pie))
    pie_end = max(pie) + 1
    return AttendedVariant(
        id=variant.id,
        words=[token.strip() for token in variant.tokens[:pie_end]],
        pie_words=pie,
        cue_words=[word for word in cues if word < pie_end],
        by_layer=np.round(attention[:, :, :pie_end].mean(axis=1), DECIMALS).tolist(),
        cue_share=np.round(shares, DECIMALS).tolist(),
        share=round(float(shares.mean()), DECIMALS),
    )


class CandidatePair(NamedTuple):
    """Ids of an original, its misleading variant (MIS) and its resolved variant (COR)."""

    original: str
    misleading: str
    resolved: str


def select_pairs(runs: Sequence[Sequence[JudgedOriginal]]) -> list[CandidatePair]:
    """Select originals that have a misleading variant (MIS) and a resolved variant (COR).

    A variant misleads a run if the run is right about the original, but wrong about the variant.
    The variant of an original that misleads the most runs is MIS. A variant is resolved if all runs
    are right about the variant; the first of these variants is COR. Runs that are wrong about all
    originals are ignored: no variant can mislead such a run, and a run that resolves almost no
    variant would leave hardly any COR.

    The pairs are sorted by the number of runs that MIS misleads (descending), then by original id.

    Args:
        runs: Judged originals of each run.
    """
    judged_by_original: dict[str, list[JudgedOriginal]] = defaultdict(list)
    for run in runs:
        if any(judged.correct for judged in run):
            for judged in run:
                judged_by_original[judged.id].append(judged)
    pairs = []
    runs_misled_by_mis = {}
    for original_id, judgments in judged_by_original.items():
        variants = sorted(judgments[0].variants)
        runs_misled = {
            variant: sum(judged.flipped[variant] for judged in judgments) for variant in variants
        }
        resolved = [
            variant for variant in variants if all(judged.variants[variant] for judged in judgments)
        ]
        if resolved and any(runs_misled.values()):
            misleading = max(variants, key=lambda variant: runs_misled[variant])
            pairs.append(CandidatePair(original_id, misleading, resolved[0]))
            runs_misled_by_mis[original_id] = runs_misled[misleading]
    return sorted(pairs, key=lambda pair: (-runs_misled_by_mis[pair.original], pair.original))


def analyze(
    causal: CausalModel,
    sentences: Mapping[str, JamSentence],
    candidates: Sequence[CandidatePair],
    *,
    limit: int = PAIRS,
) -> list[AttentionPair]:
    """Return the attention in both variants of the first `limit` usable pairs.

    A pair is usable if `attended_variant` returns a result for both variants.

    Args:
        causal: Model to analyze.
        sentences: Originals and variants by id.
        candidates: Pairs in order of preference.
        limit: Maximum number of pairs to return.
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
    """Return the mean of `values` (one share per pair) and the mean's 95% bootstrap interval."""
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

    Args:
        runs: Metrics of the runs that determine which variants mislead.
        sentences: Originals and variants of the language.
        causal: Model to analyze.
        evidence: Conditions and digests to store in the result.
        model: Name of the analyzed model in models.yaml.
        resamples: Number of bootstrap resamples.
    """
    candidates = select_pairs([run.judged for run in runs])
    sentences_by_id = {sentence.id: sentence for sentence in sentences}
    pairs = analyze(causal, sentences_by_id, candidates)
    misleading_shares = [pair.misleading.share for pair in pairs]
    resolved_shares = [pair.resolved.share for pair in pairs]
    differences = [pair.misleading.share - pair.resolved.share for pair in pairs]
    return AttentionMetrics(
        language=sentences[0].language,
        model=model,
        dataset_is_released=all(run.dataset_is_released for run in runs),
        data_note=runs[0].data_note if runs else "",
        judged_by=[f"{run.model}/{run.setting}/seed-{run.seed}" for run in runs],
        pairs=pairs,
        misleading=mean_share(misleading_shares, resamples=resamples),
        resolved=mean_share(resolved_shares, resamples=resamples),
        difference=mean_share(differences, resamples=resamples),
        conditions=evidence.conditions,
        computed_from=dict(evidence.computed_from),
    )
