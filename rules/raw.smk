"""Stage raw: upstream files, checked by digest, and unpacked weights."""


rule raw_file:
    """Fetch one upstream file from the sample, the user's own data, the mirror or its URL."""
    input:
        upstream=PROJECT.upstream,
        local=by_wildcards(PROJECT.local),
    output:
        "results/raw/{name}",
    log:
        "logs/raw/{name}.log",
    wildcard_constraints:
        name=r"(id10m|id10m-jam|idiolink|idiots|magpie)/.+",
    # Downloads run where snakemake runs, because compute nodes often have no network access.
    localrule: True
    conda:
        "../envs/core.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        *modules("fetch_raw"),
        contents=contents(by_wildcards(PROJECT.local)),
        mirror=CONFIG.mirror or "",
    script:
        "../scripts/fetch_raw.py"


rule unpack_weights:
    """Convert the weights of a model from a GGUF file or a pickle to a safetensors folder."""
    input:
        local=by_wildcards(idiolink_files.weights_files),
    output:
        weights=directory("results/raw/weights/{model}"),
        digests="results/raw/weights/{model}.sha256",
    log:
        "logs/raw/weights/{model}.log",
    wildcard_constraints:
        model=alternatives(REGISTRY),
    # The longest chain of jobs starts here.
    priority: 1
    # The job may download a pickle, and compute nodes often have no network access.
    localrule: True
    conda:
        "../envs/gpu.yaml"
    resources:
        mem_mb=growing(model_memory),
        runtime=growing(30),
    params:
        *modules("unpack_weights"),
        contents=contents(by_wildcards(idiolink_files.weights_files)),
        spec=lambda wildcards: idiolink_models.embedder(IDIOLINK, wildcards.model).document_spec(),
    script:
        "../scripts/unpack_weights.py"


rule list_weights:
    """List the Hugging Face Hub files of this configuration: sizes, licenses, missing files."""
    input:
        models=MODELS,
    log:
        "logs/list_weights.log",
    localrule: True
    conda:
        "../envs/llm.yaml"
    params:
        config=CONFIG.model_dump_json(),
        root=ROOT,
        fetch=False,
    script:
        "../scripts/weights.py"


use rule list_weights as weights with:
    log:
        "logs/weights.log",
    localrule: True
    params:
        fetch=True,
