#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast `penstock copy` is beside curl and the AWS command line, against the same store.

    copy_speed.py [--penstock PROGRAM] [--mib N] [--at-once N] [--rounds N] [--no-aws]
                  [--json FILE] [upload] [download]

upload    a pack from memory (/dev/shm) into a bucket: `penstock copy`, every byte checked on its
          way and its hash signed, which the store checks (over http there is no other seal);
          curl: the same requests, hashed and signed beforehand; plain: curl with requests
          whose hash is not signed, as penstock sends them over https; `aws s3 cp --recursive`
download  the same back: `penstock copy`, every byte checked and written; curl: ranges to files

All with the same number of transfers at once and requests of the same size (8 MiB), over http to
a Ceph gateway on this machine, which takes most of its processor time. The sides take turns; a
figure is the median of the rounds, the spread that of the ratios to curl of one round. Processor
seconds are those of the client alone. Ends with 1 when a ratio is under what is needed.
PENSTOCK_CEPH names the directory of a store that runs already (tests/net/object_store.sh).
"""

import argparse
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
import net_stage  # noqa: E402

REQUEST = 8 << 20
NEEDED = 0.8
BUCKET = "copy-speed"
VALID_S = 3600


class Figure:
    """What one run took."""

    def __init__(self, seconds, cpu):
        self.seconds, self.cpu = seconds, cpu


def run(env, *command):
    """Runs a client; the processor time is that of it and what it has started."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([os.fspath(c) for c in command], env=env, stdout=out, stderr=out,
                                 stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            out.seek(0)
            sys.exit(f"{command[0]} ended with {child.returncode}: {out.read()[-800:].decode()}")
    return Figure(seconds, used.ru_utime + used.ru_stime)


def make_pack(options, top):
    """Of noise: nothing on the way can make it smaller."""
    from PIL import Image

    dice = random.Random(1)
    folder = top / "src" / "noise"
    folder.mkdir(parents=True)
    made, names = 0, []
    while made < options.mib << 20:
        file = folder / f"{len(names):06}.jpg"
        if len(names) < 16:
            Image.frombytes("RGB", (900, 900), dice.randbytes(900 * 900 * 3)).save(file, quality=92)
        else:
            os.link(names[len(names) % 16], file)
        names.append(file)
        made += file.stat().st_size
    pack = top / "noise.pen"
    subprocess.run([options.penstock, "pack", top / "src", "-o", pack],
                   check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(top / "src")
    return pack


class Clients:
    def __init__(self, options, store, top):
        self.options, self.store, self.top = options, store, top
        self.env = store.environment(HOME=str(top), AWS_CONFIG_FILE=str(top / "aws"))
        (top / "aws").write_text(
            "[default]\ns3 =\n"
            f"    max_concurrent_requests = {options.at_once}\n"
            f"    multipart_threshold = {REQUEST}\n    multipart_chunksize = {REQUEST}\n")
        self.s3 = store.boto3(retries=5)
        self.pack = make_pack(options, top)
        self.files = sorted(p for p in self.pack.rglob("*") if p.is_file())
        self.bytes = sum(p.stat().st_size for p in self.files)
        self.pieces = self.cut()
        names = [b["Name"] for b in self.s3.list_buckets()["Buckets"]]
        if BUCKET not in names:
            self.s3.create_bucket(Bucket=BUCKET)

    def key(self, file, side):
        return f"{side}.pen/{file.relative_to(self.pack)}"

    def cut(self):
        """(file, offset, bytes, path of a copy): curl sends files."""
        found = []
        folder = self.top / "pieces"
        folder.mkdir()
        for file in self.files:
            data = file.read_bytes()
            for at in range(0, len(data), REQUEST):
                piece = folder / f"{len(found):05}"
                piece.write_bytes(data[at:at + REQUEST])
                found.append((file, at, piece.stat().st_size, piece))
        return found

    def remove(self, side):
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=f"{side}.pen/")
        for name in [o["Key"] for page in pages for o in page.get("Contents", ())]:
            self.s3.delete_object(Bucket=BUCKET, Key=name)

    def sign(self, call, **what):
        return self.s3.generate_presigned_url(call, Params={"Bucket": BUCKET, **what},
                                              ExpiresIn=VALID_S)

    def curl(self, lines):
        config = self.top / "curl"
        config.write_text("\n".join(lines) + "\n")
        return run(self.env, "curl", "--silent", "--show-error", "--fail", "--parallel",
                   "--parallel-immediate", "--parallel-max", str(self.options.at_once),
                   "--config", config)

    # --- up ---

    def upload_penstock(self):
        self.remove("ours")
        return run(self.env, self.options.penstock, "copy", self.pack, f"s3://{BUCKET}/ours.pen",
                   "--threads", str(self.options.at_once))

    def hashed_lines(self, what, piece):
        """Where a part is sent, with its hash and a signature, made beforehand."""
        import botocore.auth
        import botocore.awsrequest
        import botocore.credentials

        url = (f"{self.store.url}/{BUCKET}/{what['Key']}?partNumber={what['PartNumber']}"
               f"&uploadId={what['UploadId']}")
        keys = botocore.credentials.Credentials(self.store.key_id, self.store.secret)
        request = botocore.awsrequest.AWSRequest("PUT", url, data=piece.read_bytes())
        signer = botocore.auth.S3SigV4Auth(keys, "s3", self.store.region)
        request.headers["X-Amz-Content-SHA256"] = signer.payload(request)
        signer.add_auth(request)
        return [f'url = "{url}"', *(f'header = "{n}: {v}"' for n, v in request.headers.items())]

    def plain_lines(self, what, _piece):
        return [f'url = "{self.sign("upload_part", **what)}"']

    def upload_curl(self):
        return self.upload_parts(self.hashed_lines)

    def upload_plain(self):
        return self.upload_parts(self.plain_lines)

    def upload_parts(self, lines_of):
        self.remove("curl")
        ids = {}
        for file in self.files:
            begun = self.s3.create_multipart_upload(Bucket=BUCKET, Key=self.key(file, "curl"))
            ids[file] = begun["UploadId"]
        lines = []
        for file, at, _, piece in self.pieces:
            what = {"Key": self.key(file, "curl"), "UploadId": ids[file],
                    "PartNumber": at // REQUEST + 1}
            lines += [*lines_of(what, piece), f'upload-file = "{piece}"',
                      'output = "/dev/null"', 'header = "Expect:"', "next"]
        figure = self.curl(lines[:-1])
        begin = time.monotonic()
        for file, name in ids.items():
            key = self.key(file, "curl")
            parts = self.s3.list_parts(Bucket=BUCKET, Key=key, UploadId=name)["Parts"]
            listed = [{"PartNumber": p["PartNumber"], "ETag": p["ETag"]} for p in parts]
            self.s3.complete_multipart_upload(Bucket=BUCKET, Key=key, UploadId=name,
                                              MultipartUpload={"Parts": listed})
        figure.seconds += time.monotonic() - begin
        return figure

    def upload_aws(self):
        self.remove("aws")
        return run(self.env, net_stage.aws_command(), "s3", "cp", "--recursive",
                   "--only-show-errors", self.pack, f"s3://{BUCKET}/aws.pen")

    # --- down ---

    def fresh(self):
        out = self.top / "out"
        shutil.rmtree(out, ignore_errors=True)
        return out

    def download_penstock(self):
        return run(self.env, self.options.penstock, "copy", f"s3://{BUCKET}/ours.pen", self.fresh(),
                   "--threads", str(self.options.at_once))

    def download_curl(self):
        out = self.fresh()
        out.mkdir()
        lines = []
        for n, (file, at, size, _) in enumerate(self.pieces):
            url = self.sign("get_object", Key=self.key(file, "ours"))
            lines += [f'url = "{url}"', f'output = "{out / str(n)}"',
                      f'range = "{at}-{at + size - 1}"', "next"]
        return self.curl(lines[:-1])

    def download_aws(self):
        return run(self.env, net_stage.aws_command(), "s3", "cp", "--recursive",
                   "--only-show-errors", f"s3://{BUCKET}/ours.pen", self.fresh())


def measure(clients, what, rounds):
    with_aws = not clients.options.no_aws and net_stage.aws_command()
    sides = ["penstock", "curl"] + (["plain"] if what == "upload" else [])
    sides += ["aws"] if with_aws else []
    found = {side: [] for side in sides}
    for n in range(rounds + 1):
        for side in sides if n % 2 else reversed(sides):
            figure = getattr(clients, f"{what}_{side}")()
            if n:  # the first round warms up
                found[side].append(figure)
    return found


def ratios_to(found, side):
    """Of one round each, sorted."""
    pairs = zip(found["penstock"], found[side], strict=True)
    return sorted(theirs.seconds / ours.seconds for ours, theirs in pairs)


def report(what, found, n_bytes):
    gigabytes = n_bytes / 1e9
    ratios = ratios_to(found, "curl")
    result = {"what": what, "bytes": n_bytes, "rounds": len(ratios),
              "ratio": round(statistics.median(ratios), 3),
              "low": round(ratios[0], 3), "high": round(ratios[-1], 3)}
    if "plain" in found:
        result["plain_ratio"] = round(statistics.median(ratios_to(found, "plain")), 3)
    for side, figures in found.items():
        seconds = statistics.median(f.seconds for f in figures)
        cpu = statistics.median(f.cpu for f in figures)
        result[side] = {"mb_per_second": round(n_bytes / seconds / 1e6, 1),
                        "cpu_seconds_per_gb": round(cpu / gigabytes, 3)}
        print(f"{what:9} {side:9} {n_bytes / seconds / 1e6:7.1f} MB/s"
              f"  {cpu / gigabytes:6.3f} CPU seconds per GB")
    print(f"{what:9} ratio to curl {result['ratio']:.2f} ({result['low']:.2f} to "
          f"{result['high']:.2f}), needed {NEEDED}" +
          (f"; to plain {result['plain_ratio']:.2f}" if "plain_ratio" in result else ""))
    return result


def read_options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", nargs="*", metavar="upload|download")
    p.add_argument("--penstock", default=ROOT / "build" / "penstock")
    p.add_argument("--mib", type=int, default=512)
    p.add_argument("--at-once", type=int, default=8)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--no-aws", action="store_true", help="without the AWS command line")
    p.add_argument("--json", type=pathlib.Path)
    options = p.parse_args()
    options.what = options.what or ["upload", "download"]
    if set(options.what) - {"upload", "download"}:
        p.error(f"expected upload or download, found {' '.join(options.what)}")
    return options


def main():
    options = read_options()
    missing = None if os.environ.get("PENSTOCK_CEPH") else net_stage.missing_ceph()
    if missing:
        sys.exit(f"copy_speed.py: {missing}")
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    results = []
    with tempfile.TemporaryDirectory(prefix="penstock-copy-", dir=where) as top:
        clients = Clients(options, net_stage.shared_ceph(), pathlib.Path(top))
        print(f"{clients.bytes / 1e6:.0f} MB in {len(clients.files)} objects, "
              f"{options.at_once} requests at once of {REQUEST >> 20} MiB")
        for what in options.what:
            if what == "download":
                clients.upload_penstock()
            results.append(report(what, measure(clients, what, options.rounds), clients.bytes))
    if options.json:
        with options.json.open("a") as out:
            out.writelines(json.dumps(r) + "\n" for r in results)
    return 0 if all(math.floor(r["ratio"] * 100) / 100 >= NEEDED for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
