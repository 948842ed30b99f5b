"""What a stand-in of a provider was asked."""

from typing import NamedTuple


class Asked(NamedTuple):
    """One question as it came over the wire.

    Attributes:
        model: the name on the wire: litellm's id without the prefix of the provider.
        turns: role and text of each turn as the provider was sent them, in order; the system's
            turn is the first, with the role `system`.
        seed: of sampling; null where none was sent.
    """

    model: str
    turns: tuple[tuple[str, str], ...]
    seed: int | None
