"""originals: what filtering leaves of the raw corpora."""


wildcard_constraints:
    **{name: JAM.constraints()[name] for name in ("language", "setting")},


rule jam_decisions:
    """What filtering did to each sentence of ID10M, by the released originals or by the tags."""
    input:
        script=script("jam_decisions"),
        raw="results/raw/id10m/test_{language}.tsv",
        released=lambda wildcards: JAM.released_originals(wildcards.language),
        dev=lambda wildcards: JAM.tagged_elsewhere(wildcards.language),
    output:
        "results/originals/jam/{language}.decisions.tsv",
    log:
        "logs/originals/jam/{language}.decisions.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_decisions"),
    shell:
        "python {input.script:q} --language {wildcards.language:q} --raw {input.raw:q}"
        " --released {input.released:q} --dev {input.dev:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_originals:
    """ID10M's test split after filtering by recorded decisions, and a report of it."""
    input:
        script=script("jam_originals"),
        upstream=WHOLE.run.upstream,
        raw="results/raw/id10m/test_{language}.tsv",
        decisions=lambda wildcards: JAM.decisions(wildcards.language),
    output:
        originals="results/originals/jam/{language}.jsonl",
        report="results/originals/jam/{language}.report.json",
    log:
        "logs/originals/jam/{language}.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_originals"),
        decided_by=lambda wildcards: JAM.decided_by(wildcards.language),
    shell:
        "python {input.script:q} --language {wildcards.language:q} --raw {input.raw:q}"
        " --decisions {input.decisions:q} --decided-by {params.decided_by:q} --upstream {input.upstream:q}"
        " --originals {output.originals:q} --report {output.report:q}"
        " 2> >(tee {log:q} >&2)"


rule idiolink_exclusions:
    """PIEs that the released files imply were removed by hand."""
    input:
        script=script("idiolink_exclusions"),
        candidates="results/raw/idiolink/MAGPIE_SOURCE_IDIOMS.csv",
        documents=IDIOLINK.released_indexes(),
    output:
        "results/originals/idiolink/exclusions.tsv",
    log:
        "logs/originals/idiolink/exclusions.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_exclusions"),
    shell:
        "python {input.script:q} --candidates {input.candidates:q} --documents {input.documents:q}"
        " --output {output:q}"
        " 2> >(tee {log:q} >&2)"


rule idiolink_pies:
    """MAGPIE's PIEs by the three criteria and manual exclusion, each with its reasons."""
    input:
        script=script("idiolink_pies"),
        magpie=IDIOLINK.magpie(),
        exclusions=IDIOLINK.exclusions(),
        candidates=IDIOLINK.candidates(),
        documents=IDIOLINK.compared_indexes(),
    output:
        pies="results/originals/idiolink/pies.jsonl",
        pairs="results/originals/idiolink/pairs.jsonl",
        report="results/originals/idiolink/filter_report.json",
    log:
        "logs/originals/idiolink/pies.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_pies"),
        options=IDIOLINK.pie_options(),
    shell:
        "python {input.script:q} --magpie {input.magpie:q} --exclusions {input.exclusions:q}"
        " --options {params.options:q} --candidates {input.candidates:q}"
        " --documents {input.documents:q} --pies {output.pies:q} --pairs {output.pairs:q}"
        " --report {output.report:q}"
        " 2> >(tee {log:q} >&2)"


rule idiolink_splits:
    """PIEs of train, validation and test, drawn or as released, and the gold ones of test."""
    input:
        script=script("idiolink_splits"),
        pies="results/originals/idiolink/pies.jsonl",
        released=IDIOLINK.followed_indexes(),
    output:
        "results/originals/idiolink/splits.json",
    log:
        "logs/originals/idiolink/splits.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_splits"),
        sizes=IDIOLINK.split_sizes(),
        seed=IDIOLINK.settings.construction.seed,
    shell:
        "python {input.script:q} --pies {input.pies:q} --sizes {params.sizes:q} --seed {params.seed:q}"
        " --released {input.released:q} --output {output:q}"
        " 2> >(tee {log:q} >&2)"
