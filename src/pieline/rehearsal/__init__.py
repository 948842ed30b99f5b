"""The rehearsal: the papers' full grid from end to end, with stand-ins for all that costs."""
