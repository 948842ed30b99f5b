"""One honest way to ask any language model: questions, recorded answers, limits, parsing.

Nothing is imported here on purpose. Reading recordings and parsing answers must not load the
provider libraries, which take seconds and hundreds of megabytes; only `pieline.llm.client.ask`
loads them, and only when an answer is missing.

Where to look:

- `settings`, `obstacles`: how models may be asked, and what keeps one from being asked
- `prompts`, `questions`: from a template to a `Question` and its key
- `client`: `ask(questions, spec, settings, recordings_path)`
- `answers`, `recordings`, `archive`: what was answered, and the files that keep it
- `wire`: whether a request's body is its question
- `parsing`, `idioms`: from an answer's text to an object, or to the idioms that it names, with a
  stated outcome and rule
- `readings`: how all recorded answers were read
- `costs`, `estimates`, `spending`: what it will cost, what it cost, and the spending cap
- `keys`: API keys, and keeping them out of every output
- `asking`, `transport`, `retries`, `stopping`: how `client` asks
- `server`, `llama_cpp`, `guard`: the server of a local model
"""
