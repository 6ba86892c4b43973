"""One file from a repository on the hub, through the `huggingface_hub` library, which downloads and caches.

What is added here: a missing file is an answer and not an error; the endpoint and the offline switch are read from the
environment at each call (the library reads them at import); a server that cannot be reached costs one short attempt,
not a series; and every error says what was asked, where the cache is, and what to do.
"""

import logging
import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from .cache import offline
from .url import BUSY, ServerAwayError, client_errors, is_url, url_file

__all__ = ["HUB", "HubAnswer", "ask_hub", "endpoint", "hub_cache", "hub_file", "hub_url", "is_url", "url_file"]

logger = logging.getLogger(__name__)

HUB = "https://huggingface.co"
_MAIN = "main"
_ANSWER_WITHIN = 5.0  # seconds for the server's first answer, unless $HF_HUB_ETAG_TIMEOUT says otherwise
_COMMIT = re.compile(r"[0-9a-f]{40}")


class HubAnswer(NamedTuple):
    """What became of one request.

    Attributes:
        path: The cached file, or None when the repository has none of that name.
        unreachable: Why only the cache was looked at, None when the server answered.
    """

    path: Path | None
    unreachable: str | None = None


def hub_url(repo: str, filename: str | None = None, revision: str | None = None) -> str:
    """Address of a repository, or of one file in it, on the hub that `$HF_ENDPOINT` names."""
    root = f"{endpoint()}/{repo}"
    return root if filename is None else f"{root}/resolve/{quote(revision or _MAIN, safe='')}/{quote(filename)}"


def hub_cache(cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder the hub library keeps its files in."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE if cache_dir is None else cache_dir).expanduser()


def hub_file(
    repo: str,
    filename: str,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
    hint: str = "",
) -> Path | None:
    """Path of one file of a repository, downloaded unless the cache has this version; None if it has no such file.

    Args:
        repo: `owner/name`.
        filename: Name in the repository.
        cache_dir: Cache in the hub library's layout, instead of its own.
        revision: Branch, tag or commit; None for the main branch.
        local_files_only: Look only into the cache and open no connection.
        hint: Text to add when there is no such repository.

    Raises:
        OSError: No such repository or revision, no access to it, a broken transfer, or neither network nor cache.
    """
    return ask_hub(
        repo, filename, cache_dir=cache_dir, revision=revision, local_files_only=local_files_only, hint=hint
    ).path


def ask_hub(
    repo: str,
    filename: str,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
    hint: str = "",
) -> HubAnswer:
    """As `hub_file`, and says whether the server answered.

    Raises:
        OSError: As `hub_file`.
    """
    from huggingface_hub import errors

    wanted = _Wanted(repo, filename, revision or _MAIN, hub_cache(cache_dir), hint)
    try:
        if offline(local_files_only):
            return wanted.from_cache("the network is switched off")
        return HubAnswer(wanted.current())
    except ServerAwayError as error:
        return wanted.from_cache(str(error))
    except errors.LocalEntryNotFoundError as error:  # the server went away between two requests
        return wanted.from_cache(f"the server cannot be reached: {error.__cause__ or error}")
    except errors.EntryNotFoundError:
        return HubAnswer(None)
    except errors.RevisionNotFoundError as error:
        raise OSError(f"The repository {hub_url(repo)} has no revision {wanted.revision!r}.") from error
    except errors.GatedRepoError as error:
        raise OSError(f"{wanted.url} is open only to those who accepted its terms. {_SIGN_IN}") from error
    except errors.RepositoryNotFoundError as error:
        raise OSError(
            f"There is no repository {hub_url(repo)}, or it is private. {_SIGN_IN} {hint}".rstrip()
        ) from error
    except errors.HfHubHTTPError as error:
        raise OSError(f"{wanted.url} cannot be fetched: {error}") from error
    except errors.HFValidationError as error:
        raise OSError(f"{repo!r} cannot be the name of a repository: {error} {hint}".rstrip()) from error


_SIGN_IN = "With access to it, sign in with `hf auth login` or set HF_TOKEN."


class _Wanted(NamedTuple):
    """One request: the ways to answer it."""

    repo: str
    filename: str
    revision: str
    cache: Path
    hint: str

    @property
    def url(self) -> str:
        return hub_url(self.repo, self.filename, self.revision)

    def cached(self) -> Path | None:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(self.repo, self.filename, cache_dir=self.cache, revision=self.revision)
        return Path(found) if isinstance(found, str) else None

    def known_absent(self) -> bool:
        """Whether the server once said that this revision has no such file."""
        from huggingface_hub import _CACHED_NO_EXIST, try_to_load_from_cache

        found = try_to_load_from_cache(self.repo, self.filename, cache_dir=self.cache, revision=self.revision)
        return found is _CACHED_NO_EXIST

    def current(self) -> Path | None:
        """The file as the server has it now, or None where it has none; one request if the cache is up to date.

        Raises:
            ServerAwayError: The server does not answer.
            OSError: As `hub_file`.
        """
        cached = self.cached()
        if _COMMIT.fullmatch(self.revision) and (cached is not None or self.known_absent()):
            return cached  # a commit never changes
        commit = self.probe()
        if cached is not None and cached.parents[self.filename.count("/")].name == commit:
            return cached
        return self.download()

    def probe(self) -> str | None:
        """Ask for the headers of the file, once, and return the commit they name.

        Left to itself the library tries a silent server six times in half a minute, and takes only some failures
        for a server that is away.

        Raises:
            ServerAwayError: The server does not answer.
        """
        from huggingface_hub import errors, get_hf_file_metadata

        try:
            return get_hf_file_metadata(self.url, timeout=_patience(), endpoint=endpoint()).commit_hash
        except errors.EntryNotFoundError:
            if self.known_absent():
                raise
            return None  # the download, which fails in the same way, records the absence for later
        except errors.HfHubHTTPError as error:
            if error.response.status_code < 500 and error.response.status_code not in BUSY:
                raise
            raise ServerAwayError(f"the server answered {error.response.status_code}") from error
        except client_errors() as error:
            raise ServerAwayError(f"the server cannot be reached: {error}") from error

    def download(self) -> Path:
        """Let the library fetch the file into its cache.

        Raises:
            OSError: The transfer broke, or the disk is full.
        """
        from huggingface_hub import errors, hf_hub_download

        try:
            path = hf_hub_download(
                self.repo,
                self.filename,
                cache_dir=self.cache,
                revision=self.revision,
                endpoint=endpoint(),
                etag_timeout=_patience(),
                library_name="pytorch-transformers",
            )
        except (errors.EntryNotFoundError, errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise
        except client_errors() as error:
            raise OSError(
                f"{self.url} could not be downloaded into {self.cache}: {error}. What arrived is not used; "
                "load again to fetch the rest."
            ) from error
        return Path(path)

    def from_cache(self, reason: str) -> HubAnswer:
        """Answer without the server.

        A file that is not there counts as absent if other files of the revision are: programs that fill the cache do
        not record which files a repository lacks.

        Raises:
            OSError: Nothing of this revision is in the cache.
        """
        path = self.cached()
        if path is None and not self.known_absent():
            if not self._has_snapshot():
                raise OSError(
                    f"{self.url} is not in the cache {self.cache}, and {reason}. Connect, or unset HF_HUB_OFFLINE, "
                    "PYTORCH_TRANSFORMERS_OFFLINE and local_files_only; or load once on a machine with a network and "
                    f"copy its cache here; or give a folder. {self.hint}".rstrip()
                )
            logger.info("%s is not in the cache %s, and %s; taken as absent.", self.url, self.cache, reason)
        return HubAnswer(path, reason)

    def _has_snapshot(self) -> bool:
        """Whether any file of the revision is cached (layout: huggingface_hub, guide "Understand caching")."""
        home = self.cache / f"models--{self.repo.replace('/', '--')}"
        reference = home / "refs" / self.revision
        commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else self.revision
        return any(path.is_file() for path in (home / "snapshots" / commit).glob("**/*"))


def endpoint() -> str:
    """Address of the hub, without a slash at its end: `$HF_ENDPOINT`, or the public one."""
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def _patience() -> float:
    """Seconds to wait for the server's first answer."""
    setting = os.environ.get("HF_HUB_ETAG_TIMEOUT", "")
    return float(setting) if setting.isdigit() else _ANSWER_WITHIN
