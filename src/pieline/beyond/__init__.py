"""Analyses that the papers do not have, by study (docs/beyond.md).

The analyses read the studies' runs, predictions and metrics. The studies import nothing from this
package.
"""
