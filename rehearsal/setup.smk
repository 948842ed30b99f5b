"""Replace data, weights and providers with stand-ins before other code reads them."""

# Lets scripts import the rehearsal.
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] += os.pathsep + os.path.abspath(ROOT)
PACKAGES = ("pieline", "rehearsal")

from rehearsal.environment import environment

os.environ.update(environment(Path("standins")))


def put_in_place(config):
    """Create the stand-ins; return the rehearsal, and the configuration that uses the stand-ins."""
    # Imported here because the environment must be set before this module imports huggingface_hub.
    from rehearsal.rehearsal import Rehearsal

    rehearsal = Rehearsal(config.rehearsal, ROOT)
    rehearsal.prepare()
    os.environ.update(rehearsal.environment(load_registry(rehearsal.models)))
    return rehearsal, rehearsal.applied(config)
