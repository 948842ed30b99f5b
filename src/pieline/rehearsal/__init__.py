"""The rehearsal: the papers' whole grid on stand-ins for corpora, weights and providers."""
