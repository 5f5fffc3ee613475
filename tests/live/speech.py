#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speech decoded, resampled and turned into mel spectrograms, beside libsndfile, libsoxr and TensorFlow.

FLAC equals libsndfile to the bit, MP3 within one step, resampling libsoxr within two. Spectrograms equal tf.signal within
1e-4; where a band lies more than 60 dB below the loudest of its frame, float32 does not resolve it, in TensorFlow neither.
There both are compared with the same computation in float64, by NumPy: in each band, our root mean square error is TensorFlow's
(within a factor of 1.5: both round, each in its own order) or below 1e-5, and we have no more values beyond 1e-4. Runs in the
tests' Python environment.
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
NEAR = 1e-5  # root mean square of a band: what the rounding of weights and logarithms makes
ORDER = 1.5  # between two float32 transforms that round in another order


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


def mels(hertz):
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


def weights_in_float64(rate, bands=80, bins=513, lowest=125.0, highest=3800.0):
    """HTK's triangles, as tf.signal has them: equidistant in mels, without DC."""
    at = mels(np.linspace(0, rate / 2, bins))[:, None]
    edges = np.linspace(mels(lowest), mels(highest), bands + 2)
    rising = (at - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - at) / (edges[2:] - edges[1:-1])
    weights = np.maximum(0, np.minimum(rising, falling))
    weights[0] = 0
    return weights


def in_float64(samples, rate):
    window, stride = rate * 20 // 1000, rate * 10 // 1000
    starts = np.arange(0, len(samples) - window + 1, stride)
    frames = (samples / 32768.0)[starts[:, None] + np.arange(window)]
    turn = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    return np.log(np.abs(np.fft.rfft(frames * turn, 1024)) @ weights_in_float64(rate) + 1e-8)


def check_spectrogram(key, got, samples, rate):
    """How far apart ours and TensorFlow's are where it is heard, and how far both are from float64."""
    want = by_tensorflow(samples, rate)
    assert got.shape == want.shape, (key, got.shape, want.shape)
    heard = want > want.max(axis=1, keepdims=True) - FAR_BELOW / 20 * np.log(10)
    worst = np.abs(got - want)[heard].max()
    assert worst <= TOLERANCE, (key, worst)
    exact = in_float64(samples, rate)
    return worst, np.abs(got - exact), np.abs(want - exact)


def check_bands(name, ours, theirs):
    """In each band, over all clips: are we as near to float64 as TensorFlow is?"""
    mine, other = (np.sqrt(np.mean(errors ** 2, axis=0)) for errors in (ours, theirs))
    far = mine > np.maximum(ORDER * other, NEAR)
    assert not far.any(), (name, np.flatnonzero(far), mine[far], other[far])
    beyond, allowed = (ours > TOLERANCE).sum(), (theirs > TOLERANCE).sum()
    assert beyond <= ORDER * allowed + 2, (name, beyond, allowed)
    return f"{beyond} of {ours.size} values beyond {TOLERANCE:g} of float64, TensorFlow {allowed}; worst {ours.max():.2g} and {theirs.max():.2g}"


def check(tools, name, most, folder):
    clips = folder / name
    run(MAKER, name, "--tiny", "-o", clips)
    decoded = load(tools, folder, "-p", name, "--to", "decoded", clips)
    spectrograms = load(tools, folder, "-p", name, clips)
    slow = load(tools, folder, "-p", name, "--to", "decoded", "--set", "decode-audio.rate=8000", clips)
    worst, ours, theirs = 0, [], []
    assert len(decoded) == len(spectrograms) == len(slow) >= 6
    for key, (audio, rate) in decoded.items():
        samples = tf.io.parse_tensor(audio, tf.int16).numpy()
        want, want_rate = soundfile.read(clips / key, dtype="int16")
        assert rate == want_rate and samples.shape == want.shape, key
        assert np.abs(samples.astype(int) - want).max() <= most, key
        mel = tf.io.parse_tensor(spectrograms[key][0], tf.float32).numpy()
        apart, our_errors, their_errors = check_spectrogram(key, mel, samples, rate)
        worst = max(worst, apart)
        ours.append(our_errors)
        theirs.append(their_errors)
        resampled = tf.io.parse_tensor(slow[key][0], tf.int16).numpy()
        again = soxr.resample(samples, rate, 8000, quality="HQ")
        count = min(len(resampled), len(again))
        assert slow[key][1] == 8000 and abs(len(resampled) - len(again)) <= 1, key
        assert np.abs(resampled[:count].astype(int) - again[:count]).max() <= 2, key
    bands = check_bands(name, np.concatenate(ours), np.concatenate(theirs))
    print(f"{name}: {len(decoded)} clips, spectrograms differ by {worst:.2g} where heard; {bands}")


def main():
    tools = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="presto-live-") as folder:
        check(tools, "flac", 0, pathlib.Path(folder))
        check(tools, "mp3", 1, pathlib.Path(folder))


if __name__ == "__main__":
    main()
