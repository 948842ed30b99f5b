"""Import the predictions of one external run on ID10M-JAM."""

from pieline.core.jobs import job
from pieline.core.records import save_jsonl
from pieline.llm.inspect_logs import read_inspect_log
from pieline.studies.jam.predictions.external import read_predictions
from pieline.studies.jam.predictions.prompting import combine, sample_of
from pieline.studies.jam.records import load_sentences

with job(snakemake):
    sentences = load_sentences(snakemake.input.sentences)
    if snakemake.params.format == "inspect":
        answers = read_inspect_log(snakemake.input.file, [one.id for one in sentences])
        predictions = [
            combine(one.id, [sample_of(answers[one.id])], language=one.language)
            for one in sentences
        ]
    else:
        predictions = read_predictions(snakemake.input.file, sentences)
    save_jsonl(snakemake.output[0], predictions)
