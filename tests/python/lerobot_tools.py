# SPDX-License-Identifier: Apache-2.0
"""LeRobot datasets (v3), written by pyarrow and ffmpeg to the documented layout, and a reader that
follows LeRobot's own: pyarrow for numbers, ffmpeg for frames."""

import functools
import json
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from packet_tools import output

FPS = 30
SIZE = (48, 64)  # height, width
TASKS = ("pick up the cube", "öffne die Schublade")
CAMERAS = ("observation.images.top", "observation.images.wrist")
H264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "12", "-bf", "0")
EXACT = ("-sws_flags", "neighbor+accurate_rnd+full_chroma_int")
NUMBERS = {"observation.state": ("float32", [6]), "action": ("float32", [3]),
           "next.reward": ("float32", [1]), "next.done": ("bool", [1])}
COUNTERS = {"timestamp": ("float32", [1]), "frame_index": ("int64", [1]),
            "episode_index": ("int64", [1]), "index": ("int64", [1]), "task_index": ("int64", [1])}


def rgb(path):
    data = output("ffmpeg", "-nostdin", "-loglevel", "error", "-i", path, "-vsync", "passthrough",
                  *EXACT, "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
    return np.frombuffer(data, np.uint8).reshape(-1, *SIZE, 3)


def make_video(path, parts, hue, coded):
    """One file of several episodes, each encoded by itself. parts: number of frames of each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = []
    for i, frames in enumerate(parts):
        names.append(path.with_suffix(f".{i}.mp4"))
        output("ffmpeg", "-nostdin", "-y", "-loglevel", "error", "-f", "lavfi", "-i",
               f"testsrc2=s={SIZE[1]}x{SIZE[0]}:r={FPS}", "-vf", f"hue=h={hue + 31 * i}",
               "-frames:v", str(frames), *coded, names[-1])
    listed = path.with_suffix(".txt")
    listed.write_text("".join(
        f"file '{name}'\nduration {n / FPS:.6f}\n" for name, n in zip(names, parts)))
    output("ffmpeg", "-nostdin", "-y", "-loglevel", "error", "-f", "concat", "-safe", "0", "-i",
           listed, "-c", "copy", path)
    for name in (*names, listed):
        name.unlink()


def chunk(kind, number, suffix):
    return f"{kind}/chunk-000/file-{number:03d}.{suffix}"


class Dataset:
    """Written below a folder: `per_file` episodes in each video, `per_data` in each data file."""

    def __init__(self, root, lengths, cameras=CAMERAS, per_file=2, per_data=3, coded=H264):
        self.root, self.lengths, self.cameras = root, list(lengths), cameras
        self.per_file, self.per_data = per_file, per_data
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)]).tolist()
        rng = np.random.default_rng(3)
        n = self.starts[-1]
        episodes = np.repeat(np.arange(len(self.lengths)), self.lengths)
        frames = np.concatenate([np.arange(length) for length in self.lengths])
        self.columns = {
            "observation.state": rng.normal(size=(n, 6)).astype(np.float32),
            "action": rng.normal(size=(n, 3)).astype(np.float32),
            "next.reward": rng.normal(size=n).astype(np.float32),
            "next.done": rng.random(n) < 0.5,
            "timestamp": (frames / FPS).astype(np.float32), "frame_index": frames,
            "episode_index": episodes, "index": np.arange(n), "task_index": episodes % len(TASKS),
        }
        self.write_info()
        self.write_tasks()
        self.write_data()
        self.write_episodes()
        for number, first in enumerate(range(0, len(self.lengths), per_file)):
            for i, camera in enumerate(cameras):
                make_video(self.video_path(camera, number),
                           self.lengths[first:first + per_file], 17 * number + 90 * i, coded)

    def path(self, name):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def video_path(self, camera, number):
        return self.path(chunk(f"videos/{camera}", number, "mp4"))

    def write_info(self, **changes):
        features = {name: {"dtype": "video", "shape": [*SIZE, 3], "names": ["h", "w", "c"]}
                    for name in self.cameras}
        features |= {name: {"dtype": dtype, "shape": shape, "names": None}
                     for name, (dtype, shape) in (NUMBERS | COUNTERS).items()}
        info = {
            "codebase_version": "v3.0", "robot_type": "none", "fps": FPS, "features": features,
            "total_episodes": len(self.lengths), "total_frames": sum(self.lengths),
            "total_tasks": len(TASKS), "chunks_size": 1000, "splits": {},
            "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
            "video_path":
                "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
            **changes,
        }
        self.path("meta/info.json").write_text(json.dumps(info))

    def write_tasks(self, names=("__index_level_0__", "task_index"), texts=TASKS):
        pq.write_table(pa.table(dict(zip(names, (list(texts), list(range(len(texts))))))),
                       self.path("meta/tasks.parquet"))

    def write_data(self, **changes):
        """As datasets stores it: numbers, and lists of fixed size."""
        columns = self.columns | changes
        for number, first in enumerate(range(0, len(self.lengths), self.per_data)):
            end = min(first + self.per_data, len(self.lengths))
            low, high = self.starts[first], self.starts[end]
            arrays = {}
            for name, values in columns.items():
                if values is None:
                    continue
                part = pa.array(values[low:high].reshape(-1))
                arrays[name] = pa.FixedSizeListArray.from_arrays(part, values.shape[1]) \
                    if values.ndim > 1 else part
            with pq.ParquetWriter(self.path(chunk("data", number, "parquet")),
                                  pa.table(arrays).schema) as writer:
                for episode in range(first, end):
                    rows = slice(self.starts[episode] - low, self.lengths[episode])
                    writer.write_table(pa.table(arrays).slice(rows.start, rows.stop))

    def episode_columns(self):
        number = np.arange(len(self.lengths))
        columns = {
            "episode_index": number, "length": np.array(self.lengths),
            "tasks": [[TASKS[i % len(TASKS)]] for i in number],
            "dataset_from_index": np.array(self.starts[:-1]),
            "dataset_to_index": np.array(self.starts[1:]),
            "data/chunk_index": number * 0, "data/file_index": number // self.per_data,
            "stats/action/mean": [[0.0] * 3 for _ in number],
        }
        files = number // self.per_file
        start = np.array([sum(self.lengths[f * self.per_file:i]) / FPS
                          for i, f in enumerate(files)])
        for camera in self.cameras:
            columns |= {
                f"videos/{camera}/chunk_index": number * 0, f"videos/{camera}/file_index": files,
                f"videos/{camera}/from_timestamp": start,
                f"videos/{camera}/to_timestamp": start + np.array(self.lengths) / FPS,
            }
        return columns

    def write_episodes(self, **changes):
        columns = self.episode_columns() | changes
        columns = {name: values for name, values in columns.items() if values is not None}
        pq.write_table(pa.table(columns), self.path("meta/episodes/chunk-000/file-000.parquet"))

    # ---- reading, as LeRobot does

    @functools.lru_cache(maxsize=64)  # noqa: B019
    def file_frames(self, camera, number):
        return rgb(self.video_path(camera, number))

    def frames(self, camera, episode):
        """All frames of an episode."""
        first = episode // self.per_file * self.per_file
        start = sum(self.lengths[first:episode])
        found = self.file_frames(camera, episode // self.per_file)
        return found[start:start + self.lengths[episode]]

    def rows(self, name, episode):
        return self.columns[name][self.starts[episode]:self.starts[episode + 1]]

    def window(self, name, episode, frame, deltas):
        """Values at frames relative to one, and which of them are padding."""
        rows = self.frames(name, episode) if name in self.cameras else self.rows(name, episode)
        places = frame + np.array(deltas)
        is_pad = (places < 0) | (places >= len(rows))
        return rows[np.clip(places, 0, len(rows) - 1)], is_pad


def has_encoder(name):
    return name in subprocess.run(["ffmpeg", "-hide_banner", "-encoders"], check=False, text=True,
                                  capture_output=True).stdout
