"""Query language models: questions, recorded answers, limits and parsing.

Importing this package loads none of its modules, because reading recordings and parsing answers
must not load the provider libraries, which take seconds and hundreds of megabytes. Only
`pieline.llm.client.ask` loads the provider libraries, and only when an answer is missing.

Modules:

- `settings`, `obstacles`: settings for querying models, and reasons why a model cannot be queried
- `prompts`, `questions`: from a template to a `Question` and its key
- `client`: `ask(questions, spec, settings, recordings_path)`
- `answers`, `recordings`, `archive`, `renaming`: answers and the files that store them
- `wire`: comparison of a request body with its question
- `bodies`: from the body of a response to the fields of an answer
- `parsing`, `idioms`: from the text of an answer to an object, or to the idioms that the answer
  names, with the outcome of parsing and the rule that was applied
- `task`: tasks that make questions and read answers
- `readings`: counts of how recorded answers were read
- `costs`, `estimates`, `spending`: expected cost, actual cost and the spending cap
- `keys`: addresses, and API keys and their removal from every output
- `asking`, `transport`, `retries`, `stopping`, `truncation`: the implementation of `client`
- `server`, `llama_cpp`, `guard`: the server of a local model
- `inspect_logs`: answers from logs of Inspect AI
"""
