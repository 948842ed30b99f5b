"""The studies; each subpackage with a `study` module defines one study."""
