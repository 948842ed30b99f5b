"""What Label Studio exports (JSON, not JSON-MIN): tasks with what people answered."""

from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from pieline.core.errors import UserError
from pieline.core.files import read_json
from pieline.core.records import validated


class ForeignShape(BaseModel):
    """A part of an export, of which only the declared fields matter."""


D = TypeVar("D", bound=ForeignShape)
_MEND = "export our own tasks as JSON (not JSON-MIN)"


class _Value(ForeignShape):
    choices: list[str] | None = None
    text: list[str] | str | None = None

    def answer(self, where: str) -> str:
        """What was chosen or written.

        Raises:
            UserError: several choices, or none.
        """
        if self.choices is not None or self.text is None:
            if len(self.choices or []) != 1:
                chosen = len(self.choices or [])
                raise UserError(f"{chosen} choices, not 1", where=where, mend="choose one")
            return (self.choices or [""])[0]
        return (self.text if isinstance(self.text, str) else "\n".join(self.text)).strip()


class _Result(ForeignShape):
    from_name: str
    value: _Value


class _Person(ForeignShape):
    id: int | str


class _Annotation(ForeignShape):
    completed_by: int | str | _Person | None = None
    was_cancelled: bool | None = None
    result: list[_Result]

    @property
    def annotator(self) -> str:
        """Who answered, empty where the export does not tell."""
        person = self.completed_by
        return "" if person is None else str(person.id if isinstance(person, _Person) else person)


class Task(ForeignShape, Generic[D]):
    """What one task showed, and the annotations of it."""

    data: D
    annotations: list[_Annotation] | None = None

    @property
    def done(self) -> list[_Annotation]:
        """The annotations that were not cancelled: Label Studio exports those, too."""
        return [one for one in self.annotations or [] if not one.was_cancelled]


def read_tasks(path: str | Path, data: type[D]) -> list[tuple[str, Task[D]]]:
    """The tasks of an export, each with how errors name it.

    Args:
        path: the export.
        data: what a task shows.

    Raises:
        UserError: no such export; names file and task.
    """
    tasks = validated(list[object], read_json(path), where=path, mend=_MEND)
    named = ((f"{path}: task {number}", task) for number, task in enumerate(tasks, start=1))
    return [(where, validated(Task[data], task, where=where, mend=_MEND)) for where, task in named]  # type: ignore[valid-type]
