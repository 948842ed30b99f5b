"""Define the path patterns of files for analyses beyond the papers."""

from pieline.core.sidecars import LIST_ENDING

FOLD_TRAIN = "results/datasets/jam_tagging/{language}/{setting}/fold-{fold}.tsv"
"""Path of the training data for the encoder that tags the originals and variants of a fold."""
FOLDS_FILE = "results/datasets/jam_tagging/{language}/{setting}/folds.json"
FOLD_WEIGHTS = "results/training/jam/{language}/{model}/{setting}/fold-{fold}/seed-{seed}/weights"
FOLD_WEIGHTS_DIGESTS = f"{FOLD_WEIGHTS}{LIST_ENDING}"
FOLD_LOG = FOLD_WEIGHTS.replace("/weights", "/training.json")

BIAS = "results/metrics/idiots/{model}/bias.json"

SHORTCUTS = "results/metrics/idiolink/test/{model}/{query_mode}/seed-{seed}.shortcuts.json"
