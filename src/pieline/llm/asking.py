"""Ask questions concurrently and within the limits, without losing answers that were paid for."""

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Protocol, TypeGuard

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from pieline.core.errors import UserError
from pieline.llm.answers import Answer, check_answering_model, is_foreign
from pieline.llm.costs import estimate_input_tokens, max_answer_tokens
from pieline.llm.keys import redact
from pieline.llm.questions import Question
from pieline.llm.recordings import Recorder, counts_as_answer, foreign_file, record
from pieline.llm.retries import (
    FailedAnswerError,
    NotConnectedError,
    Rates,
    backoff,
    is_fatal,
    is_transient,
    was_rejected,
)
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import Budget, CapReachedError, Reserved
from pieline.llm.stopping import Stop, StoppedError
from pieline.llm.truncation import FirstAnswers
from pieline.models.llm import LLMEntry

FAILURES_IN_A_ROW = 3
"""Number of consecutive failed questions, per concurrent request, after which a run stops."""

_LONGEST_DESCRIPTION = 300
"""Maximum characters of an error, without its notes, in an error message."""

CONNECTION_ATTEMPTS = 3
"""Maximum attempts to connect before a run has its first answer: the address may be wrong."""


class UnansweredError(Exception):
    """Error raised if all attempts at a question failed.

    Attributes:
        rejected: Whether the provider rejected the question permanently.
    """

    def __init__(self, reason: str, *, rejected: bool = False) -> None:
        super().__init__(reason)
        self.rejected = rejected


class UselessError(Exception):
    """Error raised if all answers of the run so far are of no use (see `FirstAnswers`)."""


class Sender(Protocol):
    """Interface of a client that sends questions to one model."""

    async def send(self, question: Question) -> Answer:
        """Send a question once and return the answer."""

    async def close(self) -> None:
        """Close the connections to the server."""


class QuestionRun:
    """A run that asks one model a list of questions.

    Args:
        spec: Entry of the model.
        settings: Settings for querying the model.
        recorder: Recorder that stores the answers.
        questions: Questions, in the order in which they are asked.
        first_answers: Judge of the run's first answers, to which the recorded responses were
            already added (default: an answer with a text is of use).
        recorded: Recorded responses by key of the question; all responses to `questions` report
            failures.

    Attributes:
        budget: Budget of the run.
        answers: Answers that the run has received so far, by key of the question.
    """

    def __init__(
        self,
        spec: LLMEntry,
        settings: LLMSettings,
        recorder: Recorder,
        questions: Sequence[Question],
        *,
        first_answers: FirstAnswers | None = None,
        recorded: Mapping[str, Sequence[Answer]] = MappingProxyType({}),
    ) -> None:
        limits = settings.limits(spec.provider)
        self._spec, self._settings, self._questions = spec, settings, questions
        self._to_ask = iter(questions)
        self._concurrency = (spec.slots or 1) if spec.is_local else limits.concurrency
        self._rates = Rates(limits)
        self._recorder = recorder
        self._foreign = foreign_file(recorder.path)
        self._stop = Stop()
        self.budget = Budget(spec, settings, recorder.path, self._stop)
        self._failed_in_a_row = 0
        self._max_failed_in_a_row = FAILURES_IN_A_ROW * self._concurrency
        self._unanswered_errors: list[UnansweredError] = []
        self.answers: dict[str, Answer] = {}
        self._first_answers = first_answers or FirstAnswers(spec)
        self._failures = {
            question.key: list(recorded.get(question.key, ())) for question in questions
        }

    @property
    def failed(self) -> int:
        """Number of questions for which all attempts have failed so far."""
        return len(self._unanswered_errors)

    async def run(
        self, sender: Sender, on_progress: Callable[[], object] = lambda: None
    ) -> dict[str, Answer]:
        """Ask all questions and return the answers by key.

        If all attempts at a question fail, the other questions are still asked. Once a question has
        `max_attempts` failed responses, a failed response that has output counts as its answer.

        Args:
            sender: Client that sends the questions.
            on_progress: Callback, called after each question that got an answer or failed.

        Raises:
            UserError: The spending cap is reached, the key or model is rejected, the address cannot
                be reached, another model answers, the provider fails repeatedly, all answers are
                of no use, an answer cannot be written, or some questions were not answered. All
                answers received so far are kept.
            KeyboardInterrupt, SystemExit: The process received SIGINT or SIGTERM before all
                questions were answered. All answers received so far are kept.
        """
        worker_count = min(self._concurrency, len(self._questions))
        workers = asyncio.gather(*(self._work(sender, on_progress) for _ in range(worker_count)))
        try:
            with self._stop.on_signals(workers.cancel):
                await asyncio.wait({workers})
        finally:
            await sender.close()
        with suppress(asyncio.CancelledError):  # after a second signal abandoned the requests
            workers.result()
        self._raise_failure()
        return self.answers

    async def _work(self, sender: Sender, on_progress: Callable[[], object]) -> None:
        """Ask one question after another until no question is left or the run stops."""
        for question in self._to_ask:  # an iterator that all workers share
            if self._stop.requested:
                return
            earlier_failures = self._failures[question.key]
            # Earlier runs made all attempts.
            if len(earlier_failures) >= self._settings.max_attempts:
                self._unanswered_errors.append(UnansweredError(earlier_failures[-1].failure))
                on_progress()
                continue
            try:
                answer = await self._ask(question, sender)
            except StoppedError:
                return
            except UnansweredError as error:
                self._unanswered_errors.append(error)
                self._failed_in_a_row += 1
                if self._failed_in_a_row >= self._max_failed_in_a_row:
                    self._stop.fail(error)
                on_progress()
                continue
            except Exception as error:
                self._stop.fail(error)
                return
            self.answers[question.key] = answer
            self._failed_in_a_row = 0
            on_progress()

    async def _ask(self, question: Question, sender: Sender) -> Answer:
        """Ask one question, with retries, and return the response that counts as its answer.

        Raises:
            UnansweredError: All attempts failed.
            CapReachedError: The question could exceed the spending cap.
            StoppedError: The run was stopped.
            UserError: Other questions would fail for the same reason.
        """
        failures = self._failures[question.key]
        attempts_left = self._settings.max_attempts - len(failures)
        retrying = AsyncRetrying(
            stop=lambda state: self._is_last_attempt(state, attempts_left),
            wait=backoff(self._settings.backoff_s, self._settings.max_wait_s),
            retry=retry_if_exception(is_transient),
            sleep=lambda seconds: self._stop.unless_stopped(asyncio.sleep(seconds)),
            reraise=True,
        )
        try:
            return await retrying(self._attempt, question, sender)
        except (StoppedError, CapReachedError, UserError):
            raise
        except Exception as error:
            if failures and counts_as_answer(failures, self._settings.max_attempts):
                return failures[-1]
            raise self._final_error(error) from None

    def _final_error(self, error: Exception) -> UserError | UnansweredError:
        """Return the error to raise after the last attempt at a question failed with `error`.

        A `UserError` ends the run. After an `UnansweredError`, other questions are still asked.
        """
        if self._has_never_connected(error):
            return UserError(str(error), where=self._spec.label, hint=error.hint)
        if is_fatal(error):
            # Notes name the proxy through which the request was sent.
            through_proxy = "the proxy, " if getattr(error, "__notes__", ()) else ""
            key = self._spec.api_key_env or "the model"
            return UserError(
                f"the provider rejected the request: {self._describe(error)}",
                where=self._spec.label,
                hint=f"check {through_proxy}{key} and the account",
            )
        return UnansweredError(self._describe(error), rejected=was_rejected(error))

    def _is_last_attempt(self, state: RetryCallState, attempts_left: int) -> bool:
        """Return whether tenacity must end the retries; called after each attempt at a question.

        Args:
            state: State of the retries, with the number of the attempt that just ended.
            attempts_left: Number of attempts that were left when the run began with the question.
        """
        error = state.outcome.exception() if state.outcome else None
        if self._has_never_connected(error):
            return state.attempt_number >= CONNECTION_ATTEMPTS
        return state.attempt_number >= attempts_left

    def _has_never_connected(self, error: BaseException | None) -> TypeGuard[NotConnectedError]:
        """Return whether an error is a failed connection before the run's first answer."""
        return isinstance(error, NotConnectedError) and not self.answers

    async def _attempt(self, question: Question, sender: Sender) -> Answer:
        """Send a question once, and record the response.

        Raises:
            FailedAnswerError: The response reports a failure.
            Exception: There is no response to record.
        """
        if self._stop.requested:  # a short wait can end together with the run
            raise StoppedError
        failures = self._failures[question.key]
        max_output_tokens = max_answer_tokens(question, self._spec) or 0
        tokens = estimate_input_tokens(question) + max_output_tokens
        await self._stop.unless_stopped(self._rates.wait(tokens))
        reserved = await self.budget.reserve(question, len(failures))
        try:
            async with asyncio.timeout(self._settings.timeout(self._spec)):
                answer = await sender.send(question)
        except BaseException as error:
            is_free = was_rejected(error) or isinstance(error, NotConnectedError)
            self.budget.settle(reserved, 0.0 if is_free else None)
            raise
        # A provider may have echoed the API key.
        answer = Answer.model_validate_json(redact(answer.model_dump_json(), self._spec))
        if failures:
            answer = answer.model_copy(update={"attempt": len(failures)})
        await self._record(question, answer, reserved)
        if answer.failure:
            failures.append(answer)
            # The last failure may count as the answer, so put failures with output last.
            failures.sort(key=lambda failure: failure.has_output)
            raise FailedAnswerError(answer.failure)
        return answer

    async def _record(self, question: Question, answer: Answer, reserved: Reserved | None) -> None:
        """Record a response, and only then settle its cost.

        In this order, the ledger never settles the cost of an answer that was lost when the process
        was killed.
        """
        try:
            if is_foreign(answer, self._spec):
                record(self._foreign, [(question, answer)])
            else:
                # If the wait is canceled, the thread still writes; the loop waits for it.
                await asyncio.to_thread(self._recorder.append, [(question, answer)])
        except OSError as error:
            raise UserError(
                f"cannot write an answer: {error.strerror}",
                where=self._settings.recordings_folder,
                hint="free disk space or check permissions",
            ) from None
        finally:
            self.budget.settle_answer(reserved, answer)
        check_answering_model([answer], self._spec, self._foreign)
        self._first_answers.add(question, answer)
        if self._settings.stop_when_cut and self._first_answers.are_useless:
            self._stop.fail(UselessError())

    def _raise_failure(self) -> None:
        """Raise an error if the run was stopped or if all attempts at some questions failed."""
        failure = self._stop.failure
        unanswered = [question for question in self._questions if question.key not in self.answers]
        # A signal takes precedence over failures, which the requests in flight may have had.
        if self._stop.signal is not None and unanswered:
            print(
                f"{self._spec.label}: stopped with {len(self.answers)} of"
                f" {len(self._questions)} answers recorded; run again to continue",
                file=sys.stderr,
            )
            if self._stop.signal == signal.SIGINT:
                raise KeyboardInterrupt
            raise SystemExit(128 + self._stop.signal)
        if isinstance(failure, CapReachedError):
            raise self.budget.explain(failure, unanswered, len(self._questions)) from None
        if isinstance(failure, UselessError):
            if not unanswered:  # the last answers were already requested
                return
            raise self._first_answers.error(unanswered)
        if isinstance(failure, UnansweredError):
            raise self._too_many_failures_error(failure) from None
        if failure is not None:
            raise failure
        if self._unanswered_errors:
            raise self._some_unanswered_error()

    def _too_many_failures_error(self, last_error: UnansweredError) -> UserError:
        """Return the error of a run that stopped after consecutive questions failed."""
        hint = "check the state of the provider; the recorded answers are kept"
        failed_in_a_row = self._unanswered_errors[-self._max_failed_in_a_row :]
        if all(error.rejected for error in failed_in_a_row):
            hint = (
                "change how it is asked: see accepts, defaults and system_role in its entry in"
                " models.yaml"
            )
        return UserError(
            f"{self._max_failed_in_a_row} consecutive questions failed, the last with:"
            f" {last_error}; {len(self.answers)} of {len(self._questions)} are answered"
            f"{self.budget.possibly_billed}",
            where=self._spec.label,
            hint=hint,
        )

    def _some_unanswered_error(self) -> UserError:
        """Return the error of a run that asked all questions, some of which got no answer."""
        errors = self._unanswered_errors
        reason_counts = Counter(str(error) for error in errors)
        reason, times = reason_counts.most_common(1)[0]
        other_reasons = len(reason_counts) - 1
        and_others = f" and {other_reasons} other reasons" if other_reasons else ""
        return UserError(
            f"{len(errors)} of {len(self._questions)} questions got no answer"
            f" ({times} × {reason}{and_others}){self.budget.possibly_billed}",
            where=self._spec.label,
            hint="the other answers are recorded; a further run asks the missing ones, except"
            f" those with {self._settings.max_attempts} recorded failures (pieline recordings"
            " reask --help)",
        )

    def _describe(self, error: Exception) -> str:
        """Return the type, message and notes of an error on one line, without the API key."""
        # litellm includes full tracebacks in some of its messages.
        message = str(error).partition("Traceback (most recent call last)")[0]
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        text = " ".join(message.split()) or "no answer in time"
        # Redact before truncating, because a truncated key would not be recognized.
        return redact(f"{type(error).__name__}: {text}", self._spec)[:_LONGEST_DESCRIPTION] + notes
