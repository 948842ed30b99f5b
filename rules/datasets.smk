"""Stage datasets: validated JSONL and qrels."""


rule idiolink_dataset:
    """Write the documents, queries and qrels of one split."""
    input:
        upstream=PROJECT.upstream,
        documents=by_wildcards(idiolink_files.experiment_texts, name="indexes"),
        queries=by_wildcards(idiolink_files.experiment_texts, name="queries"),
    output:
        **idiolink_paths.dataset("{split}"),
    log:
        log_of(idiolink_paths.dataset("{split}")["documents"]),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_dataset"),
        limit=lambda wildcards: idiolink_files.limit_of_queries(IDIOLINK, wildcards.split),
    script:
        "../scripts/idiolink_dataset.py"


rule idiolink_composition:
    """Remove usages from the index of a split (the index-composition ablation)."""
    input:
        documents=idiolink_paths.dataset("{split}")["documents"],
        queries=idiolink_paths.dataset("{split}")["queries"],
        manifest=idiolink_paths.dataset("{split}")["manifest"],
    output:
        **idiolink_paths.dataset("{split}-{composition}"),
    log:
        log_of(idiolink_paths.dataset("{split}-{composition}")["documents"]),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_composition"),
    script:
        "../scripts/idiolink_composition.py"


rule idiots_dataset:
    """Check and write the sentences of IdioTS."""
    input:
        upstream=PROJECT.upstream,
        sentences=f"results/raw/{idiots_files.raw_name(IDIOTS)}",
        kinds=by_wildcards(idiots_files.kinds),
    output:
        sentences=idiots_paths.SENTENCES,
        manifest=idiots_paths.MANIFEST,
    log:
        log_of(idiots_paths.SENTENCES),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiots_dataset"),
        contents=contents(by_wildcards(idiots_files.kinds)),
        name=idiots_files.raw_name(IDIOTS),
        limit=CONFIG.limit,
        origin=idiots_files.origin(IDIOTS),
    script:
        "../scripts/idiots_dataset.py"


rule jam_dataset:
    """Select originals with enough valid variants, and list disputed variants."""
    input:
        originals=jam_paths.ORIGINALS,
        report=jam_paths.ORIGINALS_REPORT,
        variants=by_wildcards(jam_files.variants_of),
        released=by_wildcards(jam_files.released_variants),
        upstream=PROJECT.upstream,
        annotations=by_wildcards(jam_files.annotations),
        adjudications=by_wildcards(jam_files.adjudications),
    output:
        dataset=jam_paths.DATASET,
        manifest=jam_paths.MANIFEST,
        disputed=jam_paths.DISPUTED,
    log:
        log_of(jam_paths.DATASET),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_dataset"),
        contents=contents(
            by_wildcards(jam_files.annotations), by_wildcards(jam_files.adjudications)
        ),
        review=JAM.settings.variants.review,
        limit=CONFIG.limit,
    script:
        "../scripts/jam_dataset.py"


rule jam_human_form:
    """Write one hard variant per original for annotators (section 5.1), as CSV and Label Studio."""
    input:
        sentences=jam_paths.DATASET.format(language="english"),
    output:
        form=jam_paths.HUMAN_FORM,
        guidelines=jam_paths.HUMAN_GUIDELINES,
        tasks=jam_paths.HUMAN_TASKS,
        labelling=jam_paths.HUMAN_LABELLING,
    log:
        log_of(jam_paths.HUMAN_FORM),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_human_form"),
    script:
        "../scripts/jam_human_form.py"


rule jam_tagging_data:
    """Write the training data of encoders: ID10M's train and dev splits, or parts of dev."""
    input:
        train=by_wildcards(jam_files.train_split),
        dev=jam_paths.DEV_SPLIT,
    output:
        train=jam_paths.TAGGING_TRAIN,
        dev=jam_paths.TAGGING_DEV,
    log:
        log_of(jam_paths.TAGGING_TRAIN),
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_tagging_data"),
        language=by_wildcards(facts_of_language),
        negatives=JAM.settings.fine_tuning.negatives_per_idiom,
        cuts_sentences=FORMS[JAM.settings.form].cuts_sentences,
    script:
        "../scripts/jam_tagging_data.py"


rule idiolink_construct:
    """Assemble the constructed IdioLink in the released format: corrected texts by split."""
    input:
        texts=idiolink_files.of_collections(idiolink_paths.TEXTS),
        verdicts=idiolink_files.of_collections(idiolink_paths.VERDICTS),
        splits=idiolink_paths.SPLITS_FILE,
        sheet=idiolink_paths.REVIEW,
        corrections=by_wildcards(idiolink_files.corrections),
    output:
        expand(
            f"{idiolink_paths.CONSTRUCTED}/{{split}}/{{name}}.json",
            split=["train", "val", "test"],
            name=["indexes", "queries"],
        ),
    log:
        log_of(idiolink_paths.CONSTRUCTED),
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_construct"),
        contents=contents(by_wildcards(idiolink_files.corrections)),
        unreviewed=IDIOLINK.settings.construction.unreviewed,
    script:
        "../scripts/idiolink_construct.py"


rule mteb_task:
    """Export IdioLink's test split as MTEB tasks: corpus, queries, qrels and the task classes."""
    input:
        task=here("templates/mteb_task.py"),
        documents=idiolink_paths.dataset("test")["documents"],
        queries=idiolink_paths.dataset("test")["queries"],
    output:
        task="results/mteb/idiolink_mteb.py",
        corpus="results/mteb/corpus.jsonl",
        qrels="results/mteb/qrels.tsv",
        queries_sentence="results/mteb/queries_sentence.jsonl",
        queries_instruction_sentence="results/mteb/queries_instruction_sentence.jsonl",
    log:
        "logs/mteb_task.log",
    localrule: True
    conda:
        "../envs/core.yaml"
    params:
        *modules("mteb_task"),
    script:
        "../scripts/mteb_task.py"
