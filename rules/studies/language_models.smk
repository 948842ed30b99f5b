"""The language-model jobs of all studies together, for the rules that ask nothing themselves."""


def llm_jobs():
    """All language-model jobs of the configuration, as JSON."""
    jobs = [*idiots_llm_jobs(), *jam_generation_jobs(), *jam_prompt_jobs()]
    return json.dumps([*jobs, *construction_llm_jobs()], sort_keys=True)


def llm_inputs(wildcards):
    """What the questions of all studies are made from."""
    names = [*idiots_llm_inputs(), *jam_generation_inputs(), *jam_prompt_inputs()]
    return [*names, *construction_llm_inputs()]
