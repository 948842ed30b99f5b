"""Stage originals: the raw corpora after filtering."""


rule jam_decisions:
    """Derive the filtering decision on each sentence of ID10M from released originals or tags."""
    input:
        raw=jam_paths.TEST_SPLIT,
        released=by_wildcards(jam_files.released_originals),
        dev=by_wildcards(jam_files.extra_pie_source),
    output:
        jam_paths.DECISIONS,
    log:
        log_of(jam_paths.DECISIONS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_decisions"),
    script:
        "../scripts/jam_decisions.py"


rule jam_originals:
    """Filter ID10M's test split by the recorded decisions; write a report."""
    input:
        upstream=PROJECT.upstream,
        raw=jam_paths.TEST_SPLIT,
        decisions=by_wildcards(jam_files.decisions),
    output:
        originals=jam_paths.ORIGINALS,
        report=jam_paths.ORIGINALS_REPORT,
    log:
        log_of(jam_paths.ORIGINALS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_originals"),
        contents=contents(by_wildcards(jam_files.decisions)),
        decided_by=by_wildcards(jam_files.decided_by),
        limit=lambda wildcards: jam_files.limit_of_originals(JAM, wildcards.language),
    script:
        "../scripts/jam_originals.py"


rule idiolink_exclusions:
    """List the PIEs whose manual removal the public files imply."""
    input:
        candidates=idiolink_paths.CANDIDATES,
        documents=idiolink_files.released_indexes(),
    output:
        idiolink_paths.EXCLUSIONS,
    log:
        log_of(idiolink_paths.EXCLUSIONS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_exclusions"),
    script:
        "../scripts/idiolink_exclusions.py"


rule idiolink_pies:
    """Filter MAGPIE's PIEs by the three criteria and manual exclusion; write a verdict on each."""
    input:
        magpie=idiolink_files.magpie(IDIOLINK),
        exclusions=idiolink_files.exclusions(IDIOLINK),
        candidates=by_wildcards(idiolink_files.candidates),
        documents=idiolink_files.compared_indexes(IDIOLINK),
    output:
        pies=idiolink_paths.PIES,
        pairs=idiolink_paths.PAIRS,
        report=idiolink_paths.FILTER_REPORT,
    log:
        log_of(idiolink_paths.PIES),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_pies"),
        contents=contents(idiolink_files.exclusions(IDIOLINK)),
        options=idiolink_models.pie_options(IDIOLINK),
    script:
        "../scripts/idiolink_pies.py"


rule idiolink_splits:
    """Assign PIEs to splits, at random or as released, and select the gold PIEs of test."""
    input:
        pies=idiolink_paths.PIES,
        released=idiolink_files.split_source_indexes(IDIOLINK),
    output:
        idiolink_paths.SPLITS_FILE,
    log:
        log_of(idiolink_paths.SPLITS_FILE),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_splits"),
        sizes=IDIOLINK.settings.construction.splits.canonical(),
    script:
        "../scripts/idiolink_splits.py"
