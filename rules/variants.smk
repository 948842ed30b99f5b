"""Stage variants: texts written from originals by people or models."""


rule jam_variants:
    """Read the validated variants of the sample or the release, and check them automatically."""
    input:
        originals=jam_paths.ORIGINALS,
        variants=by_wildcards(jam_files.variants_file),
    output:
        variants=jam_paths.VARIANTS,
        report=jam_paths.VARIANTS_REPORT,
    log:
        log_of(jam_paths.VARIANTS),
    wildcard_constraints:
        language=jam_files.validated_constraint(JAM),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_variants"),
        contents=contents(by_wildcards(jam_files.variants_file)),
        source=JAM.settings.variants.source,
    script:
        "../scripts/jam_variants.py"


rule jam_label_studio:
    """Write Label Studio tasks and labeling configuration for the validation of variants."""
    input:
        originals=jam_paths.ORIGINALS,
        variants=jam_paths.VARIANTS,
    output:
        tasks=jam_paths.LABELLING_TASKS,
        config=jam_paths.LABELLING,
    log:
        log_of(jam_paths.LABELLING_TASKS),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_label_studio"),
    script:
        "../scripts/jam_label_studio.py"


rule idiolink_review:
    """Write flagged texts and texts of gold PIEs for manual review: CSV and Label Studio."""
    input:
        texts=idiolink_files.of_collections(idiolink_paths.TEXTS),
        verdicts=idiolink_files.of_collections(idiolink_paths.VERDICTS),
        splits=idiolink_paths.SPLITS_FILE,
    output:
        sheet=idiolink_paths.REVIEW,
        guidelines=idiolink_paths.REVIEW_GUIDELINES,
        tasks=idiolink_paths.REVIEW_TASKS,
        labelling=idiolink_paths.REVIEW_LABELLING,
    log:
        log_of(idiolink_paths.REVIEW),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_review"),
    script:
        "../scripts/idiolink_review.py"


if JAM.project.is_sample and not JAM.settings.variants.model:

    rule jam_neutral_sample:
        """Select the sample's neutral variants for hard ones that confused a model (appendix G)."""
        input:
            dataset=jam_paths.DATASET,
            metrics=[jam_paths.METRICS],
            sample=here("data/sample/id10m/neutral/{language}.json"),
        output:
            variants=jam_paths.NEUTRAL_VARIANTS,
            report=jam_paths.NEUTRAL_REPORT,
        log:
            log_of(jam_paths.NEUTRAL_VARIANTS),
        conda:
            "../envs/core.yaml"
        params:
            *modules("jam_neutral_sample"),
            contents=contents(
                lambda wildcards: here(f"data/sample/id10m/neutral/{wildcards.language}.json")
            ),
        script:
            "../scripts/jam_neutral_sample.py"

    # Selects a neutral variant for each hard one of the dataset, for prompts with neutral contexts.
    use rule jam_neutral_sample as jam_neutral_contexts_sample with:
        input:
            dataset=jam_paths.DATASET,
            metrics=[],
            sample=here("data/sample/id10m/neutral/{language}.json"),
        output:
            variants=jam_paths.NEUTRAL_CONTEXTS,
            report=jam_paths.NEUTRAL_CONTEXTS.replace(".jsonl", ".report.json"),
        log:
            log_of(jam_paths.NEUTRAL_CONTEXTS),
