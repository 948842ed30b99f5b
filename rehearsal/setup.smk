"""Replace data, weights and providers with stand-ins before anything reads them."""

# Lets scripts import the rehearsal.
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] += os.pathsep + os.path.abspath(ROOT)
PACKAGES = ("pieline", "rehearsal")

from rehearsal.environment import environment

os.environ.update(environment(Path("standins")))


def put_in_place(config):
    """Make the stand-ins, and return the rehearsal and the configuration that uses them."""
    # Imported here because `environment` must be set before its imports.
    from rehearsal.rehearsal import Rehearsal

    rehearsal = Rehearsal(config.rehearsal, ROOT)
    rehearsal.prepare()
    os.environ.update(rehearsal.environment(load_registry(rehearsal.models)))
    return rehearsal, rehearsal.applied(config)
