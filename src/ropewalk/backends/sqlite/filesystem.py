"""Finds out whether a file is on a network file system, where SQLite's locks and shared memory do not work.

Linux tells it by the mount table, Windows by UNC paths. Elsewhere nobody can tell without a helper program.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK: Final = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "9p", "ceph", "lustre", "gfs2", "ocfs2"),
        *("glusterfs", "beegfs", "davfs", "vboxsf", "prl_fs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs"),
        *("fuse.gcsfuse", "fuse.rclone", "fuse.davfs2", "fuse.smbnetfs", "fuse.juicefs", "fuse.mfs", "fuse.curlftpfs"),
    }
)


def network_type(path: Path) -> str | None:
    """Returns the kind of network file system that contains `path`; None for a local disk, or if nobody can tell."""
    real = os.path.realpath(path)
    if real.startswith("\\\\"):
        return "a network share"
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = mounted_type(real, mounts)
    return kind if kind in _NETWORK else None


def mounted_type(path: str, mountinfo: str) -> str | None:
    """Returns the type of the mount that contains `path`, according to the text of /proc/self/mountinfo."""
    best, kind = -1, None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        point = _unescaped(before.split(" ")[4])
        # Of two mounts at the same point, the later one hides the earlier one.
        if PurePosixPath(path).is_relative_to(point) and len(point) >= best:
            best, kind = len(point), after.split(" ")[0]
    return kind


def _unescaped(field: str) -> str:
    """Decodes spaces, tabs, newlines and backslashes, which the mount table writes in octal."""
    for octal, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(octal, char)
    return field
