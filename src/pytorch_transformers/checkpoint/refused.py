"""What to say of a weights file that cannot be read: broken on the way, or not plain data."""

from pathlib import Path

_HEAD = 512  # bytes, enough to recognise a text that stands where weights should be


def broken(path: Path, detail: str) -> OSError:
    """The error for a file that is truncated, corrupt or something else than weights.

    Args:
        path: The file.
        detail: What the reader said.
    """
    size = path.stat().st_size
    reason = _recognised(path, size) or detail.strip().splitlines()[0].rstrip(".")
    return OSError(
        f"{path} ({size} bytes) cannot be read: {reason}. "
        "Remove it and fetch it again: a download cache then loads it anew, a copied file has to be copied again."
    )


def refused(path: Path, asked: str) -> OSError:
    """The error for a pickle that would build more than tensors and plain containers. Nothing of it has run.

    Args:
        path: The file.
        asked: What the file wanted built or called.
    """
    return OSError(
        f"{path} is refused: it runs code or builds objects when read ({asked}), and so could do anything. "
        "It may be a whole model, or hold arguments and optimizer state beside the weights. If you trust where it "
        "comes from, open it with the program that wrote it and save plain weights there: "
        "torch.save(model.state_dict(), 'pytorch_model.bin')."
    )


def _recognised(path: Path, size: int) -> str | None:
    """What the file is, where its first bytes say it."""
    if size == 0:
        return "it is empty"
    with path.open("rb") as stream:
        head = stream.read(_HEAD).lstrip().lower()
    if head.startswith(b"version https://git-lfs"):
        return "it is a git-lfs pointer, not the weights; run `git lfs pull` in its repository"
    if head.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return "it is a web page, probably an error message that was saved in place of the weights"
    return None
