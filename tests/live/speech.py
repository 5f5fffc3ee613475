#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speech decoded, resampled and turned into mel spectrograms, beside libsndfile, libsoxr and TensorFlow.

FLAC equals libsndfile to the bit, MP3 within one step, resampling libsoxr within two. Spectrograms equal tf.signal within
1e-4; where a band lies more than 60 dB below the loudest of its frame, float32 does not resolve it, in TensorFlow neither:
there both must be equally far from the same computation in float64. Runs in the tests' Python environment.
Usage: speech.py TOOLS_DIR
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import soundfile
import soxr
import tensorflow as tf

MAKER = pathlib.Path(__file__).resolve().parents[1] / "corpora" / "make"
TOLERANCE = 1e-4
FAR_BELOW = 60  # dB


def run(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def load(tools, folder, *arguments):
    """key -> (tensor as bytes, rate), read by TensorFlow."""
    stream = folder / "stream.tfrecord"
    stream.write_bytes(run(tools / "presto-load", "-q", *arguments))
    features = {"audio": tf.io.FixedLenFeature([], tf.string), "key": tf.io.FixedLenFeature([], tf.string),
                "rate": tf.io.FixedLenFeature([], tf.int64)}
    samples = (tf.io.parse_single_example(record, features) for record in tf.data.TFRecordDataset(str(stream)))
    return {s["key"].numpy().decode(): (s["audio"].numpy(), int(s["rate"])) for s in samples}


def by_tensorflow(samples, rate):
    signal = samples.astype(np.float32) / np.float32(32768)
    stft = tf.signal.stft(signal, rate * 20 // 1000, rate * 10 // 1000, 1024)
    weights = tf.signal.linear_to_mel_weight_matrix(80, 513, rate, 125.0, 3800.0)
    return tf.math.log(tf.matmul(tf.abs(stft), weights) + 1e-8).numpy()


def in_float64(samples, rate):
    window, stride = rate * 20 // 1000, rate * 10 // 1000
    starts = np.arange(0, len(samples) - window + 1, stride)
    frames = (samples / 32768.0)[starts[:, None] + np.arange(window)]
    turn = tf.signal.hann_window(window).numpy().astype(np.float64)
    weights = tf.signal.linear_to_mel_weight_matrix(80, 513, rate, 125.0, 3800.0).numpy().astype(np.float64)
    return np.log(np.abs(np.fft.rfft(frames * turn, 1024)) @ weights + 1e-8)


def check_spectrogram(key, got, samples, rate):
    want = by_tensorflow(samples, rate)
    assert got.shape == want.shape, (key, got.shape, want.shape)
    apart = np.abs(got - want)
    heard = want > want.max(axis=1, keepdims=True) - FAR_BELOW / 20 * np.log(10)
    worst = apart[heard].max()
    assert worst <= TOLERANCE, (key, worst)
    exact = in_float64(samples, rate)
    ours, theirs = np.abs(got - exact).max(), np.abs(want - exact).max()
    assert ours <= max(2 * theirs, TOLERANCE), (key, ours, theirs)
    return worst, apart.max()


def check(tools, name, most, folder):
    clips = folder / name
    run(MAKER, name, "--tiny", "-o", clips)
    decoded = load(tools, folder, "-p", name, "--to", "decoded", clips)
    mels = load(tools, folder, "-p", name, clips)
    slow = load(tools, folder, "-p", name, "--to", "decoded", "--set", "decode-audio.rate=8000", clips)
    worst = (0, 0)
    assert len(decoded) == len(mels) == len(slow) >= 6
    for key, (audio, rate) in decoded.items():
        samples = tf.io.parse_tensor(audio, tf.int16).numpy()
        want, want_rate = soundfile.read(clips / key, dtype="int16")
        assert rate == want_rate and samples.shape == want.shape, key
        assert np.abs(samples.astype(int) - want).max() <= most, key
        mel = tf.io.parse_tensor(mels[key][0], tf.float32).numpy()
        worst = np.maximum(worst, check_spectrogram(key, mel, samples, rate))
        resampled = tf.io.parse_tensor(slow[key][0], tf.int16).numpy()
        again = soxr.resample(samples, rate, 8000, quality="HQ")
        count = min(len(resampled), len(again))
        assert slow[key][1] == 8000 and abs(len(resampled) - len(again)) <= 1, key
        assert np.abs(resampled[:count].astype(int) - again[:count]).max() <= 2, key
    print(f"{name}: {len(decoded)} clips, spectrograms differ by {worst[0]:.2g} where heard, {worst[1]:.2g} in all")


def main():
    tools = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="presto-live-") as folder:
        check(tools, "flac", 0, pathlib.Path(folder))
        check(tools, "mp3", 1, pathlib.Path(folder))


if __name__ == "__main__":
    main()
