# SPDX-License-Identifier: Apache-2.0
"""Wrong use, help, and the option table: nothing here needs a pack."""

import concurrent.futures
import os
import re
import subprocess

import pytest
from cli_tools import COMMANDS, PENSTOCK, good, run, usage_error
from net_stage import clean_environment

PACK = ("pack", "src", "-o", "x.pen")


def test_no_command_prints_help_and_is_wrong_use():
    result = run()
    assert result.code == 2
    assert result.out == ""
    assert "penstock pack photos -o photos.pen" in result.err


def test_version_names_the_program():
    assert re.fullmatch(r"penstock \d+\.\d+\.\d+\n", good("--version").out)
    assert good("-V").out == good("--version").out


def test_version_as_json_lists_what_the_build_has(tmp_path):
    environment = {**os.environ, "PENSTOCK_CPU": "c", "PATH": str(tmp_path),
                   "PENSTOCK_VIDEO_LIBRARY": "/none.so"}
    found = good("--version", "--json", env=environment).json()
    assert good("--version").out == f"penstock {found['version']}\n"
    assert found["tier"] == "c" and found["cpu"]
    assert good("--version", "--json").json()["tier"] in ("c", "avx2", "avx512", "neon")
    assert 1 <= found["cores"] <= len(os.sched_getaffinity(0))
    assert found["features"] == {"codecs": ["jpeg", "png", "webp"],
                                 "addresses": ["s3", "https", "http"], "ffmpeg": False,
                                 "video_decoder": False}
    versions = {library["name"]: library["version"] for library in found["libraries"]}
    assert list(versions) == ["libjpeg-turbo", "libspng", "libwebp", "zlib", "libarchive",
                              "libcurl", "openssl", "expat", "jansson"]
    assert all(re.match(r"\d+\.\d+", version) for version in versions.values()), versions


def test_version_finds_ffmpeg_only_with_ffprobe(tmp_path):
    environment = {**os.environ, "PATH": str(tmp_path)}
    for name, expected in (("ffmpeg", False), ("ffprobe", True)):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
        found = good("--version", "--json", env=environment).json()
        assert found["features"]["ffmpeg"] is expected


@pytest.mark.parametrize("word, meant", [
    ("pakc", "pack"), ("inf", "info"), ("verfy", "verify"), ("unpack", "extract"),
    ("list", "info"), ("finalisse", "finalise"), ("upload", "copy"), ("cp", "copy"),
])
def test_wrong_command_names_the_near_one(word, meant):
    assert f"unknown command {word}; did you mean {meant}?" in usage_error(word)
    assert f"did you mean {meant}?" in usage_error("help", word)


def test_command_that_is_like_none_gets_no_guess():
    message = usage_error("xylophone")
    assert "did you mean" not in message
    assert "penstock --help" in message


@pytest.mark.parametrize("command, word, meant", [
    ("pack", "--qualty", "--quality"), ("pack", "--output", "--out"),
    ("pack", "--jobs", "--threads"),
    ("pack", "--shard-size", "--shard-bytes"), ("pack", "--frac", "--fraction"),
    ("pack", "--resize", "--max-side"), ("pack", "--apend", "--append"),
    ("plan", "--ordre", "--order"), ("verify", "--decod", "--decode"),
    ("extract", "--index", "--sample"), ("extract", "--outt", "--out"), ("info", "--jsn", "--json"),
    ("verify", "--endpoint-url", "--endpoint"), ("info", "--no-sign-request", "--no-sign"),
])
def test_wrong_option_names_the_near_one(command, word, meant):
    assert f"unknown option {word}; did you mean {meant}?" in usage_error(command, "x.pen", word)


def test_option_of_another_command_is_told_so():
    assert usage_error(*PACK, "--decode").startswith("pack has no option --decode;")
    assert usage_error("plan", "src", "-o", "x.pen", "--task", "0/2").startswith(
        "plan has no option --task;")


def test_one_dash_too_few():
    assert "did you mean --mode?" in usage_error("pack", "src", "-o", "x.pen", "-mode", "keep")


@pytest.mark.parametrize("args, expected", [
    (("pack",), "pack needs an input"),
    (("pack", "src"), "pack needs --out NAME.pen"),
    (("extract", "x.pen"), "extract needs --out DIR"),
    (("info",), "info needs a pack"),
    (("info", "a.pen", "b.pen"), "found another: b.pen"),
    (("pack", ""), "argument 1 of pack is empty"),
    (("pack", "src", "-o"), "--out needs a value: --out NAME.pen"),
    (("pack", "src", "-o", "--mode", "keep"), "--out needs a value, found --mode"),
    (("pack", "src", "--out="), "--out has an empty value"),
    (("pack", "src", "-o", "x"), "the name of a pack ends in .pen; write -o x.pen"),
    (("pack", "src", "-o", "dir/.pen"), "the name of a pack ends in .pen"),
    ((*PACK, "--append=1"), "--append takes no value, found 1"),
    ((*PACK, "--mode", "keep", "--mode=raw"), "--mode is given twice: keep and raw"),
    (("--json", "info", "x.pen"), "the command comes before its options"),
])
def test_what_is_missing_or_too_much(args, expected):
    assert expected in usage_error(*args)


@pytest.mark.parametrize("option, value, expected", [
    ("--quality", "0", "a whole number from 1 to 100"),
    ("--quality", "101", "a whole number from 1 to 100"),
    ("--quality", "9O", "a whole number from 1 to 100"),
    ("--quality", " 9", "a whole number from 1 to 100"),
    ("--quality", "+9", "a whole number from 1 to 100"),
    ("--threads", "0", "a whole number from 1 to 1024"),
    ("--seed", "-1", "a whole number, 0 or more"),
    ("--seed", "18446744073709551616", "a whole number, 0 or more"),
    ("--block-samples", "2147483649", "a whole number from 1 to 2147483648"),
    ("--fraction", "0", "a number above 0, at most 1"),
    ("--fraction", "1.01", "a number above 0, at most 1"),
    ("--fraction", "nan", "a number above 0, at most 1"),
    ("--fraction", "0x1", "a number above 0, at most 1"),
    ("--raw-share", "-0.5", "a number from 0 to 1"),
    ("--mode", "kep", "keep, encode, raw, mix or smart; did you mean keep?"),
    ("--codec", "avif", "jpeg or webp"),
    ("--smart-threshold", "0", "a size from 1"),
    ("--order", "random", "shuffled or source"),
    ("--task", "3/3", "I/N"), ("--task", "1", "I/N"), ("--task", "1/2/3", "I/N"),
    ("--shard-bytes", "0", "a size from 1"),
    ("--shard-bytes", "1QiB", "a size such as 512MiB"),
    ("--shard-bytes", "1.5GiB", "a size such as 512MiB"),
    ("--shard-bytes", "-1", "a size such as 512MiB"),
    ("--shard-bytes", "MiB", "a size such as 512MiB"),
    ("--shard-bytes", "99999999999TiB", "a size from 1"),
    ("--shard-bytes", "16777217TiB", "a size from 1"),  # 1 TiB when 2^64 is lost
])
def test_values_out_of_range(option, value, expected):
    message = usage_error("pack", "src", "-o", "x.pen", option, value)
    assert message.startswith(f"{option} {value}: expected ")
    assert expected in message


@pytest.mark.parametrize("value", ["5-", "-5", "9-5", "a", "5-9-11", "1,2"])
def test_sample_numbers_out_of_range(value):
    message = usage_error("extract", "x.pen", "-o", "d", f"-s{value}")
    assert "expected the index of a sample" in message


@pytest.mark.parametrize("options, expected", [
    (("--quality", "80", "--mode", "keep"),
     "applies to --mode encode, mix or smart, but the mode is keep"),
    (("--quality", "80"), "the mode is keep"),
    (("--quality", "80", "--mode", "mix"), "add --max-side or --short-side"),
    (("--max-side", "9"), "--max-side applies to --mode encode, raw, mix or smart"),
    (("--codec", "webp"), "--codec applies to --mode encode, mix or smart"),
    (("--codec", "webp", "--mode", "mix"), "or leave --codec out"),
    (("--smart-threshold", "9", "--mode", "mix"), "--smart-threshold applies to --mode smart"),
    (("--raw-share", "0.5", "--mode", "raw"), "--raw-share applies to --mode mix"),
    (("--no-index", "--mode", "raw"),
     "--no-index applies to --mode keep, encode or smart, but the mode is raw"),
    (("--mode", "tile"), "tiles can be read, but are no longer written; use --mode keep"),
    (("--mode", "raw", "--max-side", "9", "--short-side", "9"), "use one of them"),
    (("--append", "--classes-from", "y.pen"), "leave --classes-from out"),
    (("--task", "0/3", "--append"), "append in one run"),
    (("--task", "0/3", "--bad-report", "f", "--on-bad", "skip"), "leave --bad-report out"),
    (("--max-bad", "3"), "add --on-bad skip"),
    (("--bad-report", "f", "--on-bad", "stop"), "add --on-bad skip"),
])
def test_options_that_do_not_go_together(options, expected):
    assert expected in usage_error(*PACK, *options)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(command):
    text = good("help", command).out
    assert good(command, "--help").out == text
    assert good(command, "-h").out == text
    assert text.startswith(f"penstock {command} - ")
    for part in ("\nUsage: penstock ", "\nExamples:\n", "ptions:\n", "\nNext: ", "  --json"):
        assert part in text
    assert text.count(f"\n  penstock {command} ") >= 1
    assert 2 <= len(re.findall(r"^  penstock ", text, re.M)) <= 7
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii()
    assert not re.search(r" $|\t", text, re.M)


def test_help_of_pack_has_every_option_with_its_default():
    text = re.sub(r"\s+", " ", good("help", "pack").out)
    for option in (
        "-o, --out NAME.pen", "--mode M", "--quality Q", "--max-side N", "--short-side N",
        "--raw-share P", "--codec C", "--smart-threshold B", "--check decode", "--no-index",
        "--progressive A", "--order O", "--seed S", "--fraction F",
        "--classes-from P.pen", "--on-bad A", "--max-bad N", "--bad-report FILE", "--threads N",
        "--shard-bytes B", "--block-samples K", "--append", "--task I/N", "--json", "-h, --help",
    ):
        assert f" {option} " in text, option
    for default in ("keep", "90", "0.25", "shuffled", "0", "1", "stop", "512MiB"):
        assert f"default: {default})" in text, default
    assert "(default: keep) keep: the source bytes" in text


def test_common_options_come_first():
    for command, names in (("pack", ("-o, --out", "--mode", "--threads", "--json")),
                           ("verify", ("--decode", "--threads", "--json"))):
        sections = re.split(r"\n(?=\S.*:\n  )", good("help", command).out)
        at = [section.partition(":")[0] for section in sections[1:]]
        assert at[:2] == ["Examples", "Common options"]
        assert all(f" {name} " in sections[2] for name in names)
    assert "\nOptions:\n" in good("help", "top").out


def test_options_for_remote_packs_are_explained_once():
    topic = good("help", "s3").out
    commands = "pack, index, plan, finalise, gc, info, verify, extract, copy and doctor"
    assert f" Options of {commands}: " in " ".join(topic.split())
    assert "\nOptions of pack, index, plan, finalise, gc and copy:\n      --work DIR" in topic
    assert "\nOptions of copy:\n" in topic
    for command in ("pack", "index", "plan", "finalise", "gc", "info", "verify", "extract", "copy",
                    "doctor"):
        text = good("help", command).out
        assert "'penstock help s3' explains these options." in text
        assert "S3-compatible server" not in text
        remote = text.partition("\nRemote packs")[2].partition("'penstock help s3'")[0]
        for name in re.findall(r"--[a-z-]+", remote):
            assert f" {name} " in topic
    for command in ("cache", "ops", "top"):
        assert "help s3" not in good("help", command).out


def test_wrong_option_for_a_remote_pack_names_its_help():
    assert "'penstock help s3' explains it" in usage_error("info", "x.pen", "--endpoint-url")


def test_every_example_in_the_help_parses(tmp_path):
    """Each is run up to the point where its input is missing: a failure, not wrong use. Addresses
    lead to a port of this machine where nobody listens."""
    nowhere = clean_environment(
        AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b",
        https_proxy="http://127.0.0.1:1", HOME=str(tmp_path))
    lines = [line for command in COMMANDS
             for line in re.findall(r"^  penstock (.*)$", good("help", command).out, re.M)]

    def run_line(line):
        words = [w.strip("'") for w in line.split(" | ")[0].split(" 2>")[0].split()]
        return run(*words, cwd=tmp_path, env=nowhere)

    # At the same time, as those that try to connect wait most of theirs.
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for line, result in zip(lines, pool.map(run_line, lines), strict=True):
            assert result.code in (1, 75), (line, result.code, result.err)  # they share a directory


def test_top_help_shows_the_path():
    text = good("--help").out
    assert good("help").out == text
    assert good("-h").out == text
    at = [text.index(f"penstock {v} photos") for v in ("pack", "info", "verify", "extract")]
    assert at == sorted(at)
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\S", text, re.M)


def test_finalize_is_taken_too():
    assert good("help", "finalize").out == good("help", "finalise").out


def test_double_dash_ends_options(tmp_path):
    result = run("info", "--", "--json", cwd=tmp_path)
    assert result.code == 1
    assert "--json" in result.message()


def test_control_characters_do_not_reach_the_terminal():
    message = usage_error("info", "x.pen", "--a\x1b[31m\nb")
    assert "\\x1b[31m\\x0ab" in message


def test_write_error_on_stdout_is_a_failure():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PENSTOCK, "--help"], stdout=full, stderr=subprocess.PIPE,
                              check=False)
    assert done.returncode == 1
    assert b"stdout: cannot write" in done.stderr
