"""Stand-ins in the place of data, weights and providers, before anything reads these."""

# Scripts find the rehearsal.
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] += os.pathsep + os.path.abspath(ROOT)
PACKAGES = ("pieline", "rehearsal")

from rehearsal.environment import environment

os.environ.update(environment(Path("standins")))


def put_in_place(config):
    """Make the stand-ins; the configuration with them."""
    # Only here, since it imports what must not be there before `environment` is set.
    from rehearsal.rehearsal import Rehearsal

    rehearsal = Rehearsal(config.rehearsal, ROOT)
    rehearsal.prepare()
    os.environ.update(rehearsal.environment(load_registry(rehearsal.models)))
    return rehearsal, rehearsal.applied(config)
