"""The papers' metrics, from prediction files to numbers; knows neither models nor tables."""
