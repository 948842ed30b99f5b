"""Path patterns of files that no paper needs, used by rules and modules."""

from pieline.core.sidecars import LIST_ENDING

FOLD_TRAIN = "results/datasets/jam_tagging/{language}/{setting}/fold-{fold}.tsv"
"""Path of the training data of the encoder that tags a fold's originals and their variants."""
FOLDS_FILE = "results/datasets/jam_tagging/{language}/{setting}/folds.json"
FOLD_WEIGHTS = "results/training/jam/{language}/{model}/{setting}/fold-{fold}/seed-{seed}/weights"
FOLD_WEIGHTS_DIGESTS = f"{FOLD_WEIGHTS}{LIST_ENDING}"
FOLD_LOG = FOLD_WEIGHTS.replace("/weights", "/training.json")

BIAS = "results/metrics/idiots/{model}/bias.json"

SHORTCUTS = "results/metrics/idiolink/test/{model}/{query_mode}/seed-{seed}.shortcuts.json"
