"""Embeddings of IdioLink's texts from APIs, recorded like the answers of language models.

The text of a recorded answer is a vector: base64 of little-endian float32 numbers.
"""

import base64
import binascii
from typing import Any

import numpy as np

from pieline.core.errors import UserError
from pieline.core.records import load_jsonl
from pieline.llm.answers import Answer
from pieline.llm.parsing import Outcome, Parsed
from pieline.llm.questions import EMBEDDED, Question, make_question
from pieline.llm.task import Ask, Task
from pieline.models.api_embedder import ApiEmbedderEntry
from pieline.models.llm import LLMEntry
from pieline.studies.idiolink.predictions.query_texts import text_in_mode
from pieline.studies.idiolink.predictions.vectors import Vectors, save_vectors
from pieline.studies.idiolink.records import Document, Query


class Embedding(Task):
    """Task that embeds a split's documents, or the split's queries in one mode.

    `inputs` has `texts`, a JSONL file of documents or queries; `outputs` has `vectors`, a file with
    one vector per text.

    Attributes:
        texts: What to embed: `documents`, or the query mode of the queries.
    """

    texts: str

    def entry(self) -> ApiEmbedderEntry:
        """Return the model's entry in models.yaml."""
        return ApiEmbedderEntry.from_spec(self.spec, label=self.model)

    def questions(self, entry: LLMEntry) -> list[Question]:
        """Return one question per text, in dataset order."""
        assert isinstance(entry, ApiEmbedderEntry)
        path = self.inputs["texts"]
        model_inputs: dict[str, str] = {}
        if self.texts == "documents":
            for document in load_jsonl(path, Document):
                model_inputs[document.id] = entry.passage_prefix + document.sentence
        else:
            for query in load_jsonl(path, Query):
                model_inputs[query.id] = text_in_mode(query, entry, self.texts).text
        return [
            make_question(entry, [(EMBEDDED, model_input)], {}, name=text_id)
            for text_id, model_input in model_inputs.items()
        ]

    def likely_output_tokens(self) -> int:
        """Return 0, because embeddings have no output tokens."""
        return 0

    def run(self, entry: LLMEntry, ask: Ask) -> None:
        """Request the vectors of all texts, and save the vectors in the order of the texts.

        Raises:
            UserError: An answer contains no valid vector, or the vectors differ in length.
        """
        questions = self.questions(entry)
        answers = ask(questions)
        vectors: list[Vectors] = []
        for question in questions:
            vector = self.reading(answers[question.key]).value
            if vector is None or (vectors and len(vector) != len(vectors[0])):
                raise UserError(
                    "the answer is not a vector, or its length differs from the others",
                    where=f"{self.recordings}: {question.name}",
                    hint="delete the line with its key to request it again",
                )
            vectors.append(vector)
        save_vectors(self.outputs["vectors"], np.stack(vectors))

    def reading(self, answer: Answer) -> Parsed[Any]:
        """Return the vector in an answer, of shape (dimensions,).

        The outcome is `UNPARSEABLE` if the answer has no vector, or if a number of the vector is
        infinite or undefined.
        """
        unparseable = Parsed[Any](Outcome.UNPARSEABLE, reason="no vector")
        try:
            vector_bytes = base64.b64decode(answer.text or "", validate=True)
            vector: Vectors = np.frombuffer(vector_bytes, dtype="<f4")
        except (binascii.Error, ValueError):
            return unparseable
        if not vector.size or not np.isfinite(vector).all():
            return unparseable
        return Parsed(Outcome.OK, vector, rule="vector")
