"""List all error messages that users can see, for review: `python tools/error_messages.py`."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def messages(path: Path) -> Iterator[str]:
    """Yield the message and hint of each `UserError` in a module, with file and line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "UserError"):
            continue
        hints = [word.value for word in node.keywords if word.arg == "hint"]
        parts = [_template(part) for part in (*node.args, *hints)]
        yield f"{path.relative_to(ROOT)}:{node.lineno}: {'; '.join(parts)}"


def _template(node: ast.expr) -> str:
    """Return a string expression as text, with its variables in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    return f"{{{ast.unparse(node)}}}"


if __name__ == "__main__":
    for source in sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("scripts/*.py")]):
        for message in messages(source):
            print(message)
