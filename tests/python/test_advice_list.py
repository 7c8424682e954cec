# SPDX-License-Identifier: Apache-2.0
"""Every message that advises an action is in a table of test_advice*.py, or here with a reason.

Advice is found by a pattern in the string literals of the sources: an imperative that follows ';',
':' or ', or'. When a new message fails this test, add a row to a table, or a line to NOT_FOLLOWED;
a text that is no advice goes to NO_ADVICE."""

import ast
import re

import pytest
import test_advice
import test_advice_inputs
import test_advice_python
import test_advice_remote
from cli_tools import ROOT

TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"((?:[^"\\\n]|\\.)*)"|'
                    r"'(?:[^'\\\n]|\\.)+'|\w+|\S", re.S)
NUMBER = re.compile(r"PRI[a-zA-Z0-9]+")
VERBS = """
    accept add allow append ask call change check choose close convert copy correct create cut
    delete discard fix free give increase install keep leave let list load look lower make
    mend mount move name open pack pass preload put raise read reduce remove rename replace run
    save set split start store take try unpack upload use wait write""".split()
ADVICE = re.compile(
    r"(?:[;:] |^; |^)(?:{0})[ ,] *(?!at |of |below |failed|was |needs |time |average |= )"
    r"|[;,] (?:or|then) (?:{0}) |[;:] (?:or )?'penstock|' (?:explains|lists|shows|gives|makes)|; --"
    .format("|".join(VERBS)))

RACE = "another process has to change something at the right moment"
C_API = "the program and the Python package never do it; for callers of the C library"
HUGE = "needs more data than a test can have"
MEMORY = "needs a system without memory or threads"
REMOTE = "needs another machine; traffic of tests stays on loopback"
HANGS = "needs a program that hangs: tests/unit/test_ingest_video_stub.c has one"
VAGUE = "asks to check, where the server does not say what"
WRITERS = "followed in test_py_writer_tasks.py"
LIBRARIES = "long_convert_real.py reads what the other libraries write"
RAY = "needs Ray: test_ray_pack.py and test_ray_sink.py"
SETUP = "needs a machine of another setup, or root: test_lab_shapes.py has the messages"
NOT_FOLLOWED = {
    # advice : why no row follows it
    "expected a directory; extract to another directory": RACE,
    "exists already and is not changed; extract": "needs two keys that become one file name",
    "cannot be excluded; exclude folders, or move the file": "followed in test_folders.py",
    "choose with --kind images or --kind videos": "followed in test_folders.py",
    "to pack files of any name, list them in a .csv": "a list has rows",
    "found %s; leave --exclude out": "leaving an option out needs no row: test_folders.py",
    "found tar files; name them: penstock": "followed in test_folders.py",
    "pack --order source": "followed in test_folders.py",
    "is not expanded in an address; name them": "followed in test_folders.py",
    "nothing lies below the prefix %.150s; check": "needs the right spelling",
    "use fewer threads or raise the limit": MEMORY,
    "or mount it: mount -t cgroup": SETUP,
    "or choose another folder with --work": "test_lab_lock.py takes the lock when it is free",
    "; use a prefix with fewer objects": "needs a server that lists without end: test_list_wide.py",
    "need root: run penstock-lab with sudo": SETUP,
    "needs root: run penstock-lab with sudo": SETUP,
    "repeatedly created and removed by another process; name another directory": RACE,
    "put it on a local disk": "needs a file system without locks",
    "(%s). %s, or set PENSTOCK_VIDEO=inline if you trust": "followed in tests/wheel/check_video.py",
    "cannot find the file of the video decoder; set": "needs a dynamic linker that forgets a file",
    "changed since it was opened; run the same command again": RACE,
    "'penstock gc --abandon' and start again":
        "needs a damaged file, or tasks of two numbers; a number that differs has a row",
    "could not be removed (%s); remove it with": "followed in test_tasks_remote.py",
    "and the others first": "one task that is not done has a row",
    "is of another run, with other %s; run that task again": WRITERS,
    "pass their number: --tasks N, in Python tasks=N": WRITERS,
    "not complete; run %s again, then finalise": WRITERS,
    "that were discarded; run it again with the same": WRITERS,
    "use the same for all tasks, or discard what these have written": WRITERS,
    "exists here; finish it, or discard it with 'penstock gc --abandon": WRITERS,
    "have begun here; finish them with 'penstock finalise": WRITERS,
    "damaged; discard what the tasks have written": WRITERS,
    "cannot be split into tasks; use one run": C_API,
    "make the plan with 'penstock plan' before the tasks start": RACE,
    "that differ; leave --classes-from out": C_API,
    "pass those that 'penstock plan' got": "followed in test_tasks_remote.py",
    "max_side and short_side are both set; choose one": C_API,
    "choose the mode encode, raw, mix or smart": C_API,
    "choose a smaller --max-side, or --codec jpeg": "followed in test_cli_encodings.py",
    "use the mode keep (the default) or encode": C_API,
    "choose one of them, or leave no_index out": "test_py_writer.py has both",
    "take fewer with --fps, or cut it in a list with start and end": HUGE,
    "run the same command again": "followed in test_cli_pack.py after a signal; otherwise " + RACE,
    "unpack the file": "needs a libarchive without a compression",
    "Pack them on another machine, or pack frames": "needs a kernel without seccomp",
    "raise the limit with --video-seconds": HANGS,
    "close the writer and start again": "needs a disk that fails",
    "open it without preload": MEMORY,
    "open another in process": C_API,
    "open them again in process": C_API,
    "open it again in process": C_API,
    "load it with the version of penstock that wrote it": "there is one version of states",
    "service; use https": REMOTE,
    "another machine; use https": REMOTE,
    "use https, or pass --allow-http": REMOTE,
    "killed by signal %d; run the command by hand":
        "the same advice as for an exit code, which has a row",
    "make fewer requests at once": MEMORY,
    "check its spelling and DNS": REMOTE,
    "check the credentials and their permissions": VAGUE,
    "check the URL": VAGUE,
    "open it again": RACE,
    "wait until that one has ended, and start again": RACE,
    "store masks as PNG": "followed in test_cli_sources.py, where masks are PNG",
    "check whether the storage responds": "needs storage that hangs",
    "have not ended yet; call again later": "followed in test_load_loader.c",
    "no plan found; run 'penstock plan' first":
        "the tasks follow it, which have a row",
    "write the name of each number into": "followed in test_cli_labels.py",
    "check for a quote that is not closed": "the place of the quote is not known",
    "check for a symbolic link to a parent folder": "followed in test_cli_outside.py",
    "convert pickled metadata to JSON": "needs the package of gulpio",
    "set PENSTOCK_VIDEO_LIBRARY to its path": "followed in test_video_package.py",
    "use a binary, not a script": "followed in test_ingest_video_stub.c",
    "use a separate cache for each user": "needs two users",
    "check for a process that hangs": "needs a process that hangs",
    "open it with either preload or a cache": C_API,
    "set the cache right after opening the pack": C_API,
    "set the directories of its files right after opening": C_API,
    "use a newer release of penstock": "needs a pack of a later version",
    "check the network": REMOTE,
    "run 'penstock verify'": "needs an object that shrinks while it is read",
    "check the server and any proxy in between": VAGUE,
    "check the clock": "needs a wrong clock",
    "install 7.87 or newer": "needs an older libcurl",
    "use fewer readers": REMOTE,
    "read all of it": C_API,
    "choose fewer samples per block": HUGE,
    "choose smaller shards": HUGE,
    "pack the sources again, into a new pack": "needs a pack of a version before the first release",
    "preload it right after opening": C_API,
    "close it first, or unset": "followed in test_py_trace.py",
    "record a trace: set PENSTOCK_TRACE=run.json.gz": "followed in test_py_trace.py",
    "Run penstock-lab fashion first, or pass --fashion REPORT": "followed in test_lab_seeds.py",
    "is one of the traces; choose another name": "followed in test_py_trace_files.py",
    "is a command of the Python package; run": "followed in test_py_trace_files.py",
    "or a file, found %s; choose another name": "followed in test_py_trace.py",
    "copy the tensor to the device": "needs a GPU",
    "and is read by the Python package; run": "followed in test_cli_doctor.py",
    "faster disk with 'penstock copy NAME.pen DIR/NAME.pen', or use a cache": "needs two disks",
    "reduce %s, or use last_batch='short'": "a warning, followed in test_py_loader.py",
    "pass the folder that the paths in the list are relative to": "followed in test_cli_outside.py",
    "fix the label or add the class to that file": "followed in test_cli_labels.py",
    "; fix or remove this file": "followed in test_cli_labels.py",
    "copy the file samples.classes.csv to that name": "followed in test_cli_labels.py",
    "pass a list with a file LIST.classes.csv": "a list has such a file in test_cli_labels.py",
    'Choose other columns, or give it the type "bytes"': LIBRARIES,
    'write them with compression_level="chunk"': LIBRARIES,
    'use the type "json" for lists of different lengths': LIBRARIES,
    'or use the type "json?"': LIBRARIES,
    "name all columns and their types": LIBRARIES,
    "install it with: pip install 'ray[data]'": RAY,
    "install the same version on all nodes": RAY,
    "to store pixels as PNG, install Pillow": RAY,
    "rename it with columns={field: column}": RAY,
    "installed; run penstock-lab setup": "installs packages from the network",
    "needs Debian's %s; run as root": "installs packages from the network",
    "use collate_fn of the DataLoader": "followed in test_py_python.py",
    "other functions; use those, or pass strict=False": "followed in test_py_python.py",
    "write pipeline=[{...}, ops.python(fn)]": "followed in test_py_python.py",
    "correct the function, or pass a larger timeout=": "followed in test_py_python.py",
    "of: it belongs to the operation; write": "followed in test_py_boxes.py",
    "found more; split the video": HUGE,
    "more than 2^27 bytes: cut it in a list with start and end": HUGE,
    "; pack it without --video keep, or convert it with ffmpeg":
        "test_pack_videos_keep.py packs in both ways",
    "found a video; load it with a clip operation": "test_video_kept.py loads such clips",
    "choose frames that are closer together, or encode it with more key frames": HUGE,
    "choose another one before the first video is decoded": C_API,
    "install the video decoder of the same release": "needs two releases",
    "leave --fps out and choose frames when loading": "followed in test_pack_videos_keep.py",
    "found %s; leave --video out": "followed in test_pack_videos_keep.py",
    "or leave --video keep out to store frames": "followed in test_pack_videos_keep.py",
    "is for frames; leave one of them out": "followed in test_pack_videos_keep.py",
}
NO_ADVICE = {
    "cut boxes at the edges of what the result shows of the image",
    "move points to the nearest edge of what the result shows of the image", "keep or ","remove it",
    "lower left", "pack '%s' has no image field", "install ok",
    "wait for a batch, p50 / p95 / p99 ms", "%s; read %s % of its data"}
HELP = ("options.c", "commands.c", "help.c", "op.h", "_command.py", "html.py")
HELP_OF_LAB = ("HELP", "USAGE", "VERBS")
IN_TESTS = {
    # advice : followed in a test of these files that is no row
    "pass one with --work", "finish it with 'penstock finalise', or discard it and what its tasks",
    "may be running; run 'penstock finalise %.300s', or discard the plan",
    "could not be listed; run 'penstock verify'", "leave --no-index out",
    "install the package ffmpeg",
    "cannot have '?' or '#'; rename the object", "object '%s' in %s%s: %s; rename the object",
    "give it another name in the pipeline: {'details': [ops.source('info')",  # test_py_signals.py
    "correct fps in meta/info.json, or the timestamps",  # test_lerobot.py
    "found // or / at its start; rename the object", "cannot be listed; use s3://, or download",
    "found the name of a pack; 'penstock copy' copies packs",
    "found a URL; pass --root with the URL that all objects of the list are below",
    "write paths relative to it, or pass --root with a URL that all objects",
    "put the folder of the binary first in PATH",
    "run 'penstock pack' with the same arguments and --task I/N",
    "needs --analyse; add --analyse or leave it out",  # test_cli_analyse.py
    # test_in_place.py
    "make an ordinary pack of it with 'penstock copy'", "holds images, not clips; use",
    "decompress it, or use 'penstock pack'", "can name, found another; rename the object",
    "was made; run 'penstock index' again",
    # test_py_convert*.py
    "store the bytes of images in the dataset, as to_parquet", "; leave it out, or store it as '%s",
    "%s needs %s; run 'pip install", "; %s: name it with format= or --from",
    "; convert each alone, for example '%s", "or is missing; leave it out with columns=",
    "has; name the fields to store with columns=", "to worker processes; use workers=1",
    "convert reads local files only; download them first",
    # test_py_views.py; of the first, the row "another name" too
    "is a field of the pack; use another name for %s", "name the view that it follows",
    "differs from that of image '%.40s'; give both the same", "use fewer views, or smaller numbers",
    "; name one of its images or views", "and '%.40s' is none; remove of=%.40s",
    # test_py_sizes.py
    "enlarge; use min_side for the length of the shorter side",
    "pad_batch must be the last operation; move it behind", "pixels; remove it",
    "the size of the images has no bound; add", "%s needs results of one size; add",
    "the field holds a clip; use three_crop",
    "clips of different sizes do not fit into one batch; add",
    "repeat must be the last operation; move it behind", "source names no result; use a dict",
    "for several clips of a sample use 'clip n=%u'",
    # test_py_mixup.py
    "images; name the one that the labels follow", "remove %s and mix in the training loop",
    "must be mixed too; add a field with one_hot", "pass p=0.5 to both, or others whose sum",
    "differs from that of %s; give both the same", "several results per image; use several views",
    "cannot be mixed; replace pad_batch by", "cannot be mixed; add 'center_crop",
    "must be the last operations; move %s before them",
    "mixup and cutmix can follow; move it before tensor",  # test_ops_program.c
    # test_py_buckets.py
    "use fewer buckets, or last_batch=", "write 'cover bucket' or", "pass buckets= to the loader",
    "change multiple or max_ratio",
    # test_lerobot.py
    "convert the Parquet files with 'penstock convert'", "convert_image_to_video' makes videos",
    "for a field of its own; rename the feature",
    # test_lerobot_windows.py
    "but samples are no frames; pass frames to the loader",
    "at selects frames by frames and stride; remove",
    "pass the number of frames of each sample to frames",
    "load all frames between the first and the last one",
    # test_py_tokens.py
    "; use 'patches 16", "; move it before patches", "; pass tokens= and lengths= to the loader",
    "; remove the layout", "does not work with patches; use several views",
    "patches are padded to their length; remove it", "pass batch_size=256, or tokens= and lengths=",
    # test_py_boxes.py, test_ragged.py
    "use the operation 'points'", "use the operation 'boxes'", "images; name the one to follow",
    "has no image to follow; add one", "pack it with the type 'f32[*,%d] %s absolute'",
    "%s: the field '%.60s' holds %s; use '%s'", "can choose the rows; use '%s drop=no'",
    "differs between samples; use 'ragged'",
    # test_py_mix.py
    "use fields that all packs have", "use fields that are the same in all packs",
    "choose another name for the numbers of the sources",
    "; leave the source out, or use schedule= to begin with it later",
    "write a pack of those that you want, or load it alone",
    # test_lab_loader_tables.py
    "add a format such as jpeg90, or the side 0",
    # test_lab_load.py, test_lab_clips.py
    "choose one, such as --storage store=110ms", "clips only, and this task needs",
    # test_lab_fashion.py
    "because arrays have raw pixels; or pass --no-plain", "use --regimen EPOCHS:ENCODING",
    "or pass its folder with --data",
    # test_lab_dlio.py
    "DLIO has no pack to read: set $%s to", "reads %s: set dataset.num_files_train to the number",
    # test_lab_command.py
    "is complete already; remove the folder to measure again",
    "Choose another --out or --name, or remove that folder",
    # test_lab_train.py
    "; remove --nesterov", "field 'label': training needs class", "another folder, or remove it",
    "use a smaller --batch-size", "training needs PyTorch: pip install", "; use --device cpu",
    "Remove it to start again", "set with --classes-from TRAIN.pen",
    # test_cli_extract.py
    "is a part of the Python package; run", "is writing it, or was killed; delete it",
}


def texts_of_c(source):
    """Its strings, neighbours joined."""
    text = None
    for token in TOKENS.finditer(source):
        if token.group().startswith(("//", "/*")):
            continue
        if token.group(1) is not None:
            text = (text or "") + token.group(1)
        elif text is not None and not NUMBER.fullmatch(token.group()):
            yield text
            text = None


def is_help(node):
    """Of penstock-lab: help=, the description of an option, the text of --help."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", getattr(node.func, "attr", "")) == "option"
    if isinstance(node, ast.Assign):
        return getattr(node.targets[0], "id", "") in HELP_OF_LAB
    return isinstance(node, ast.keyword) and node.arg == "help"


def texts_of_python(source):
    """Its strings but those that describe a module, a class, a function or an option."""
    tree = ast.parse(source)
    skipped = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    skipped.update(part for node in ast.walk(tree) if is_help(node) for part in ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and node not in skipped:
            skipped.update(node.values)
            parts = [p.value if isinstance(p, ast.Constant) else "%s" for p in node.values]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.value


def messages():
    """(file, text) of all sources but the texts of --help."""
    for folder in ("src", "cli", "python/core", "python/penstock"):
        for path in sorted((ROOT / folder).rglob("*.[chp]*")):
            if path.name in HELP:
                continue
            texts = {".py": texts_of_python, ".c": texts_of_c, ".h": texts_of_c}.get(path.suffix)
            for text in texts(path.read_text()) if texts else ():
                if " " in text:
                    yield str(path.relative_to(ROOT)), text.replace('\\"', '"')


def followed():
    rows = [row[1] for table in (test_advice.TABLE, test_advice_inputs.TABLES)
            for row in table.values()]
    rows += [row[0] for table in (test_advice_python.TABLES, test_advice_remote.TABLE)
             for row in table.values()]
    return {row.replace('\\"', '"') for row in rows}


@pytest.fixture(scope="module")
def found():
    return list(messages())


def test_every_advice_is_followed_or_has_a_reason(found):
    known = [*followed(), *NOT_FOLLOWED, *IN_TESTS]
    advising = [(path, text) for path, text in found
                if ADVICE.search(text) and text not in NO_ADVICE]
    assert len(advising) > 150
    assert [a for a in advising if not any(part in a[1] for part in known)] == []


def test_no_reason_is_left_of_a_message_that_is_gone(found):
    texts = [text for _, text in found]
    assert [part for part in (*NOT_FOLLOWED, *IN_TESTS) if not any(part in t for t in texts)] == []


def test_what_advises_is_found():
    source = 'f("a; use " /* x */ "b %" PRIu64 "c", \'"\') // "d"'
    assert list(texts_of_c(source)) == ["a; use b %c"]
    assert list(texts_of_python('"""x"""\nf(f"a {b}; use c")')) == ["a %s; use c"]
    described = 'HELP = "a"\nf("b", help="c")\nx: int = option(1, f"d {e}")\ng("h")'
    assert list(texts_of_python(described)) == ["b", "h"]
    for text in ("x; use y", "x: leave it out", "; run it", "x, or add y", "x; 'penstock gc' z"):
        assert ADVICE.search(text), text
    for text in ("expected a name", "x: read of 3 bytes", "the user has"):
        assert not ADVICE.search(text), text
