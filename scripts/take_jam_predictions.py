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
        answers = read_inspect_log(snakemake.input.file, [sentence.id for sentence in sentences])
        predictions = [
            combine(sentence.id, [sample_of(answers[sentence.id])], language=sentence.language)
            for sentence in sentences
        ]
    else:
        predictions = read_predictions(snakemake.input.file, sentences)
    save_jsonl(snakemake.output[0], predictions)
