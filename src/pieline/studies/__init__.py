"""The studies, one package each: every package here with a module `study` is one."""
