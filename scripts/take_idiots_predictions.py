"""Import the predictions of one external run on IdioTS."""

from pieline.core.jobs import job
from pieline.core.records import load_jsonl, save_jsonl
from pieline.llm.inspect_logs import read_inspect_log
from pieline.studies.idiots.predictions import read_prediction, read_predictions
from pieline.studies.idiots.records import IdiotsSentence

with job(snakemake):
    sentences = load_jsonl(snakemake.input.sentences, IdiotsSentence)
    if snakemake.params.format == "inspect":
        answers = read_inspect_log(snakemake.input.file, [sentence.id for sentence in sentences])
        predictions = [
            read_prediction(sentence_id, answer) for sentence_id, answer in answers.items()
        ]
    else:
        predictions = read_predictions(snakemake.input.file, sentences)
    save_jsonl(snakemake.output[0], predictions)
