# SPDX-License-Identifier: Apache-2.0
"""WebDataset tars of files: sample i has the key i and the class i."""

import io
import pathlib
import tarfile

TARS_PER_WORKER = 4


def write_tars(folder, files, n_tars):
    """The tars in `folder`, made once; consecutive files are in one tar."""
    folder = pathlib.Path(folder)
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        each = -(-len(files) // n_tars)
        for first in range(0, len(files), each):
            with tarfile.open(folder / f"{first // each:06}.tar", "w", tarfile.USTAR_FORMAT) as tar:
                for i, file in list(enumerate(files))[first : first + each]:
                    for suffix, data in (("jpg", pathlib.Path(file).read_bytes()),
                                         ("cls", b"%d" % i)):
                        member = tarfile.TarInfo(f"{i:08}.{suffix}")
                        member.size = len(data)
                        tar.addfile(member, io.BytesIO(data))
        (folder / "done").touch()
    return sorted(map(str, folder.glob("*.tar")))


def tars_of(task):
    """Of the files of a task (__init__.py)."""
    folder = pathlib.Path(task["work"]) / f"tars-{task['set']}"
    return write_tars(folder, task["files"], TARS_PER_WORKER * task["threads"])
