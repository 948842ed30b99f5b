"""datasets: validated JSONL and qrels."""


wildcard_constraints:
    **IDIOLINK.wildcards(),


rule idiolink_dataset:
    """Documents, queries and qrels of one split."""
    input:
        script=script("idiolink_dataset"),
        upstream=WHOLE.run.upstream,
        documents=lambda wildcards: IDIOLINK.experiment_texts(wildcards.split, "indexes"),
        queries=lambda wildcards: IDIOLINK.experiment_texts(wildcards.split, "queries"),
    output:
        documents="results/datasets/idiolink/{split}/documents.jsonl",
        queries="results/datasets/idiolink/{split}/queries.jsonl",
        qrels="results/datasets/idiolink/{split}/qrels.txt",
        manifest="results/datasets/idiolink/{split}/manifest.json",
    log:
        "logs/datasets/idiolink/{split}.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_dataset"),
    shell:
        "python {input.script:q} --split {wildcards.split:q} --documents {input.documents:q}"
        " --queries {input.queries:q} --upstream {input.upstream:q}"
        ' --output "$(dirname {output.manifest:q})"'
        " 2> >(tee {log:q} >&2)"


rule idiolink_composition:
    """A split whose index lacks some usages (the index-composition ablation)."""
    input:
        script=script("idiolink_composition"),
        documents="results/datasets/idiolink/{split}/documents.jsonl",
        queries="results/datasets/idiolink/{split}/queries.jsonl",
        manifest="results/datasets/idiolink/{split}/manifest.json",
    output:
        documents="results/datasets/idiolink/{split}-{composition}/documents.jsonl",
        queries="results/datasets/idiolink/{split}-{composition}/queries.jsonl",
        qrels="results/datasets/idiolink/{split}-{composition}/qrels.txt",
        manifest="results/datasets/idiolink/{split}-{composition}/manifest.json",
    log:
        "logs/datasets/idiolink/{split}-{composition}.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_composition"),
    shell:
        "python {input.script:q} --composition {wildcards.composition:q}"
        ' --dataset "$(dirname {input.manifest:q})" --output "$(dirname {output.manifest:q})"'
        " 2> >(tee {log:q} >&2)"


rule idiots_dataset:
    """The sentences of IdioTS, checked."""
    input:
        script=script("idiots_dataset"),
        upstream=WHOLE.run.upstream,
        sentences=f"results/raw/{IDIOTS.raw_name()}",
        kinds=IDIOTS.kinds(),
    output:
        sentences="results/datasets/idiots/sentences.jsonl",
        manifest="results/datasets/idiots/manifest.json",
    log:
        "logs/datasets/idiots.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiots_dataset"),
        name=IDIOTS.raw_name(),
        origin=IDIOTS.origin(),
    shell:
        "python {input.script:q} --sentences {input.sentences:q} --kinds {input.kinds:q}"
        " --upstream {input.upstream:q} --name {params.name:q} --origin {params.origin:q}"
        ' --output "$(dirname {output.manifest:q})"'
        " 2> >(tee {log:q} >&2)"


rule jam_dataset:
    """Originals with enough valid variants, those selected, and what annotators disagree on."""
    input:
        script=script("jam_dataset"),
        originals="results/originals/jam/{language}.jsonl",
        report="results/originals/jam/{language}.report.json",
        variants="results/variants/jam/{language}.jsonl",
        released=lambda wildcards: JAM.released_variants(wildcards.language),
        upstream=WHOLE.run.upstream,
        annotations=lambda wildcards: JAM.annotations(wildcards.language),
        adjudications=lambda wildcards: JAM.adjudications(wildcards.language),
    output:
        dataset="results/datasets/jam/{language}.jsonl",
        manifest="results/datasets/jam/{language}.manifest.json",
        disputed="results/datasets/jam/{language}.disputed.tsv",
    log:
        "logs/datasets/jam/{language}.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_dataset"),
        selection=JAM.selection(),
    shell:
        "python {input.script:q} --originals {input.originals:q} --report {input.report:q}"
        " --variants {input.variants:q} --released {input.released:q} --upstream {input.upstream:q}"
        " --annotations {input.annotations:q}"
        " --adjudications {input.adjudications:q} --selection {params.selection:q}"
        " --dataset {output.dataset:q} --manifest {output.manifest:q} --disputed {output.disputed:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_human_form:
    """One hard variant of each original for people to label (section 5.1): CSV and Label Studio."""
    input:
        script=script("jam_human_form"),
        sentences="results/datasets/jam/english.jsonl",
    output:
        form="results/datasets/jam/english.human_form.csv",
        tasks="results/datasets/jam/english.human_tasks.json",
        labelling="results/datasets/jam/english.human_labelling.xml",
    log:
        "logs/datasets/jam/english.human_form.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_human_form"),
        seed=JAM.settings.variants.seed,
    shell:
        "python {input.script:q} --sentences {input.sentences:q} --seed {params.seed:q}"
        " --form {output.form:q} --tasks {output.tasks:q} --labelling {output.labelling:q}"
        " 2> >(tee {log:q} >&2)"


rule jam_tagging_data:
    """What encoders learn from: ID10M's train and dev, or dev alone cut in two."""
    input:
        script=script("jam_tagging_data"),
        train=lambda wildcards: JAM.train_split(wildcards.language),
        dev="results/raw/id10m/dev_{language}.tsv",
    output:
        train="results/datasets/jam_tagging/{language}/train.tsv",
        dev="results/datasets/jam_tagging/{language}/dev.tsv",
    log:
        "logs/datasets/jam_tagging/{language}.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("jam_tagging_data"),
        negatives=JAM.settings.fine_tuning.negatives_per_idiom or "",
        words=JAM.settings.fine_tuning.input,
    shell:
        "python {input.script:q} --train {input.train:q} --dev {input.dev:q}"
        " --negatives {params.negatives:q} --words {params.words:q}"
        " --output-train {output.train:q} --output-dev {output.dev:q}"
        " 2> >(tee {log:q} >&2)"


rule idiolink_construct:
    """The constructed IdioLink in the released format: corrected texts by split."""
    input:
        script=script("idiolink_construct"),
        texts=IDIOLINK.of_collections("results/variants/idiolink/{collection}.texts.jsonl"),
        verdicts=IDIOLINK.of_collections("results/variants/idiolink/{collection}.verdicts.jsonl"),
        splits="results/originals/idiolink/splits.json",
        sheet="results/variants/idiolink/review.csv",
        corrections=IDIOLINK.corrections(),
    output:
        expand(
            "results/datasets/idiolink/constructed/{split}/{name}.json",
            split=["train", "val", "test"],
            name=["indexes", "queries"],
        ),
    log:
        "logs/datasets/idiolink/constructed.log",
    conda:
        "../envs/core.yaml"
    params:
        *modules("idiolink_construct"),
        unreviewed=IDIOLINK.settings.construction.unreviewed,
    shell:
        "python {input.script:q} --texts {input.texts:q} --verdicts {input.verdicts:q}"
        " --splits {input.splits:q} --sheet {input.sheet:q} --corrections {input.corrections:q}"
        " --unreviewed {params.unreviewed:q} --output results/datasets/idiolink/constructed"
        " 2> >(tee {log:q} >&2)"
