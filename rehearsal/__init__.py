"""The papers' full grid on stand-ins for data, weights and providers."""
