# SPDX-License-Identifier: Apache-2.0
"""Golden sounds: small files of every kind, what libsndfile decodes, and TensorFlow's mel spectrograms.

Uses soundfile (libsndfile), flac, libFLAC, lame, mpg123 and TensorFlow. `make(folder)` writes the files and manifest.json.
"""

import ctypes
import json
import pathlib
import re
import struct
import subprocess
import zlib

import numpy as np
import soundfile


def voice(rate, seconds, seed):
    """Harmonics of a gliding tone with pauses, and some noise: float64 in [-1, 1]."""
    rng = np.random.default_rng(seed)
    at = np.arange(int(rate * seconds)) / rate
    pitch = 140 + 60 * np.sin(7 * at + seed)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    sound = sum(np.sin(k * phase) / k for k in range(1, 40) if k * 200 < rate / 2)
    envelope = np.clip(np.sin(19 * at) + 0.4, 0, 1)
    return 0.3 * sound * envelope + 0.01 * rng.standard_normal(at.size)


def pcm(sound):
    return np.clip(np.rint(sound * 32768), -32768, 32767).astype(np.int16)


def spectrogram(samples, rate):
    import tensorflow as tf

    if len(samples) < rate * 20 // 1000:
        return np.zeros((0, 80), np.float32)  # tf.signal.frame gives no frames, which tf.signal.rfft then refuses
    signal = samples.astype(np.float32) / np.float32(32768)
    stft = tf.signal.stft(signal, rate * 20 // 1000, rate * 10 // 1000, 1024)
    weights = tf.signal.linear_to_mel_weight_matrix(80, 513, rate, 125.0, 3800.0)
    return tf.math.log(tf.matmul(tf.abs(stft), weights) + 1e-8).numpy()


def put_array(folder, name, array):
    import io

    out = io.BytesIO()
    np.save(out, array)
    (folder / name).write_bytes(zlib.compress(out.getvalue(), 9))
    return {"file": name, "shape": list(array.shape)}


def run(*command, stdin=None):
    subprocess.run([str(c) for c in command], check=True, input=stdin, capture_output=True)


def make_sounds(folder):
    """Yields (file name, what it is)."""
    mono = pcm(voice(16000, 0.3, 1))
    stereo = np.stack([mono, pcm(voice(16000, 0.3, 2))], axis=1)
    wide = voice(48000, 0.25, 3)

    def wav(name, data, rate, subtype, **more):
        soundfile.write(folder / name, data, rate, subtype=subtype, **more)

    wav("pcm16-8k.wav", pcm(voice(8000, 0.3, 4)), 8000, "PCM_16")
    yield "pcm16-8k.wav", "WAV, 16 bits"
    wav("pcm16-stereo-16k.wav", stereo, 16000, "PCM_16")
    yield "pcm16-stereo-16k.wav", "WAV, two channels"
    wav("pcm24-22k.wav", voice(22050, 0.2, 5), 22050, "PCM_24")
    yield "pcm24-22k.wav", "WAV, 24 bits"
    loud = np.concatenate([1.5 * voice(16000, 0.1, 6), [1.5, -1.5, np.nan, 1.0, -1.0, 0.0]]).astype(np.float32)
    wav("float-16k.wav", loud, 16000, "FLOAT")
    yield "float-16k.wav", "WAV of float32, some beyond 1, one NaN"
    wav("ulaw-8k.wav", voice(8000, 0.2, 7), 8000, "ULAW")
    yield "ulaw-8k.wav", "WAV, mu-law"
    wav("empty-16k.wav", np.zeros(0, np.int16), 16000, "PCM_16")
    yield "empty-16k.wav", "WAV without samples"
    wav("short-16k.wav", mono[:319], 16000, "PCM_16")
    yield "short-16k.wav", "WAV, one sample less than a window"
    data = (folder / "pcm16-8k.wav").read_bytes()
    (folder / "streamed-8k.wav").write_bytes(data[:4] + b"\xff" * 4 + data[8:40] + b"\xff" * 4 + data[44:])
    yield "streamed-8k.wav", "WAV whose sizes were not known when it was written"

    source = folder / "source.wav"
    wav("source.wav", mono, 16000, "PCM_16")
    run("flac", "-s", "-f", "-8", "--no-padding", source, "-o", folder / "pcm16-16k.flac")
    yield "pcm16-16k.flac", "FLAC, 16 bits"
    run("flac", "-s", "-f", "--no-padding", "--endian=little", "--channels=1", "--bps=16", "--sample-rate=16000", "--sign=signed",
        "--force-raw-format", "-", "-o", folder / "streamed-16k.flac", stdin=mono.tobytes())
    streamed = bytearray((folder / "streamed-16k.flac").read_bytes())
    streamed[21] &= 0xf0
    streamed[22:26] = bytes(4)
    (folder / "streamed-16k.flac").write_bytes(streamed)
    yield "streamed-16k.flac", "FLAC that does not say how many samples it has"
    wav("pcm24-stereo-44k.flac", np.stack([voice(44100, 0.1, 8), voice(44100, 0.1, 9)], axis=1), 44100, "PCM_24")
    yield "pcm24-stereo-44k.flac", "FLAC, 24 bits, two channels"
    wav("vorbis-16k.ogg", voice(16000, 0.3, 10), 16000, "VORBIS", format="OGG")
    yield "vorbis-16k.ogg", "Ogg Vorbis"
    wav("opus-48k.ogg", wide, 48000, "OPUS", format="OGG")
    yield "opus-48k.ogg", "Ogg Opus"

    wav("source.wav", pcm(wide), 48000, "PCM_16")
    run("lame", "--quiet", "-b", 64, source, folder / "cbr-48k.mp3")
    yield "cbr-48k.mp3", "MP3, constant bit rate"
    run("lame", "--quiet", "-V", 4, "--resample", 22.05, "--tt", "a title", "--id3v2-only", source,
        folder / "vbr-id3-22k.mp3")
    yield "vbr-id3-22k.mp3", "MP3 of MPEG 2, variable bit rate, an ID3v2 tag"
    run("lame", "--quiet", "-t", "-b", 64, "--tt", "a title", "--id3v1-only", source, folder / "no-info-48k.mp3")
    yield "no-info-48k.mp3", "MP3 without LAME's first frame, an ID3v1 tag"
    wav("source.wav", np.stack([pcm(wide), pcm(1.2 * wide[::-1])], axis=1), 48000, "PCM_16")
    run("lame", "--quiet", "-b", 128, "-m", "j", source, folder / "joint-48k.mp3")
    yield "joint-48k.mp3", "MP3, joint stereo, loud"
    source.unlink()
    yield from make_odd_flac(folder)
    yield from make_odd_mp3(folder)


def encode_flac(path, values, rate, bits):
    """By libFLAC itself: its program writes depths of whole bytes only."""
    library = ctypes.CDLL("libFLAC.so.12")
    library.FLAC__stream_encoder_new.restype = ctypes.c_void_p
    encoder = ctypes.c_void_p(library.FLAC__stream_encoder_new())
    library.FLAC__stream_encoder_set_streamable_subset(encoder, 0)
    library.FLAC__stream_encoder_set_channels(encoder, 1)
    library.FLAC__stream_encoder_set_bits_per_sample(encoder, bits)
    library.FLAC__stream_encoder_set_sample_rate(encoder, rate)
    if library.FLAC__stream_encoder_init_file(encoder, str(path).encode(), None, None) != 0:
        raise OSError(f"libFLAC does not write {bits} bits")
    data = np.ascontiguousarray(values, np.int32)
    if not library.FLAC__stream_encoder_process_interleaved(encoder, data.ctypes.data_as(ctypes.c_void_p), data.size):
        raise OSError(f"{bits} bits")
    library.FLAC__stream_encoder_finish(encoder)
    library.FLAC__stream_encoder_delete(encoder)


def odd_values(bits):
    return np.rint(voice(8000, 0.1, 11) * (2**(bits - 1) - 1)).astype(np.int64)


def make_odd_flac(folder):
    for bits in (4, 8, 12, 15, 20, 31, 32):
        encode_flac(folder / f"bits{bits}-8k.flac", odd_values(bits), 8000, bits)
        yield f"bits{bits}-8k.flac", f"FLAC of {bits} bits"
    raw = odd_values(32).astype("<i4").tobytes()
    run("flac", "-s", "-f", "--ogg", "--serial-number=7", "--force-raw-format", "--endian=little", "--sign=signed", "--channels=1", "--bps=32",
        "--sample-rate=8000", "-", "-o", folder / "bits32-8k.oga", stdin=raw)
    yield "bits32-8k.oga", "FLAC of 32 bits in Ogg"


def make_odd_mp3(folder):
    source = folder / "source.wav"
    soundfile.write(source, pcm(voice(16000, 0.4, 12)), 16000, subtype="PCM_16")
    run("lame", "--quiet", "--freeformat", "-b", 99, source, folder / "free-16k.mp3")
    yield "free-16k.mp3", "MP3 of free format"
    run("lame", "--quiet", "-t", "--freeformat", "-b", 40, source, folder / "free-no-info-16k.mp3")
    yield "free-no-info-16k.mp3", "MP3 of free format, without LAME's first frame"
    run("lame", "--quiet", "-b", 64, source, folder / "cut-last-16k.mp3")
    source.unlink()
    data = bytearray((folder / "cut-last-16k.mp3").read_bytes())
    (folder / "cut-last-16k.mp3").write_bytes(data[:-50])
    yield "cut-last-16k.mp3", "MP3 whose last frame lacks 50 bytes"
    at = data.index(b"Info") + 8
    data[at:at + 4] = struct.pack(">I", struct.unpack(">I", data[at:at + 4])[0] + 1)
    (folder / "counts-itself-16k.mp3").write_bytes(data)
    yield "counts-itself-16k.mp3", "MP3 whose first frame counts itself, as Helix and LAME 3.94b1 write it"
    data = (folder / "no-info-48k.mp3").read_bytes()
    (folder / "cut-no-info-48k.mp3").write_bytes(data[:len(data) * 2 // 3])
    yield "cut-no-info-48k.mp3", "no-info-48k.mp3, cut within a frame: nothing in it says that more is missing"


def make_bad(folder):
    """Yields (file name, what it is, the status that Presto answers with)."""

    def put(name, data):
        (folder / name).write_bytes(bytes(data))
        return name

    def of(name):
        return bytearray((folder / name).read_bytes())

    for name in ("pcm16-8k.wav", "pcm16-16k.flac", "cbr-48k.mp3", "vorbis-16k.ogg"):
        data = of(name)
        status = "CORRUPT" if name.endswith(".flac") else "TRUNCATED"
        yield put(f"bad-cut-{name}", data[:len(data) * 2 // 3]), f"{name}, cut short", status
    data = of("cbr-48k.mp3")
    size = 144 * 64000 // 48000
    yield put("bad-cut-at-frame.mp3", data[:len(data) // size * size - size]), "cbr-48k.mp3 without two frames", "TRUNCATED"
    data[5 * size:5 * size + 8] = bytes(8)
    yield put("bad-hole.mp3", data), "cbr-48k.mp3, the header of a frame overwritten", "CORRUPT"
    data = of("pcm16-16k.flac")
    data[len(data) // 2] ^= 16
    yield put("bad-bit.flac", data), "pcm16-16k.flac, one bit flipped", "CORRUPT"
    data = of("pcm16-16k.flac")
    data[21] |= 0x0f
    data[22:26] = b"\xff" * 4
    yield put("bad-claim.flac", data), "pcm16-16k.flac that claims 2^36 - 1 samples", "TRUNCATED"
    data = of("pcm16-8k.wav")
    data[40:44] = struct.pack("<I", 2**30)
    yield put("bad-claim.wav", data), "pcm16-8k.wav that claims 1 GiB", "TRUNCATED"
    data = of("pcm16-8k.wav")
    data[24:28] = struct.pack("<I", 2_000_000_000)
    yield put("bad-rate.wav", data), "pcm16-8k.wav with a rate of 2 GHz", "CORRUPT"
    data = of("pcm16-8k.wav")
    data[22:24] = bytes(2)
    yield put("bad-channels.wav", data), "pcm16-8k.wav without channels", "CORRUPT"
    yield put("bad-empty.mp3", b""), "no bytes", "TRUNCATED"
    yield put("bad-text.mp3", b"This is not a sound.\n" * 9), "text", "CORRUPT"
    rates = [of("pcm16-16k.flac"), of("bits8-8k.flac"), of("bits12-8k.flac"), of("bits12-8k.flac")]
    rates[0] = rates[0][:21] + bytes([rates[0][21] & 0xf0]) + bytes(4) + rates[0][26:]
    yield put("bad-rate-changes.flac", rates[0] + rates[1][frames_at(rates[1]):]), "FLAC whose rate changes", "UNSUPPORTED"
    yield put("bad-two-streams.flac", rates[2] + rates[3]), "two streams of FLAC behind each other", "UNSUPPORTED"
    yield put("bad-riff.wav", b"RIFF\0\0\0\0WAVE"), "a WAV header alone", "TRUNCATED"
    yield put("bad-magic.flac", b"fLaC" + bytes(60)), "FLAC's magic alone", "CORRUPT"


def frames_at(flac):
    """Behind the blocks of metadata."""
    at = 4
    while True:
        is_last = flac[at] & 128
        at += 4 + int.from_bytes(flac[at + 1:at + 4], "big")
        if is_last:
            return at


def decode_flac(path):
    """FLAC loses nothing; libFLAC's program reads depths of whole bytes only."""
    bits = int(re.match(r"bits(\d+)", path.name)[1])
    values = odd_values(bits)
    return (values >> (bits - 16) if bits >= 16 else values << (16 - bits)).astype(np.int16), 8000


def decode_mp3(path):
    """By mpg123's program."""
    raw = subprocess.run(["mpg123", "-q", "-s", "-e", "f32", path], check=True, capture_output=True).stdout
    values = np.frombuffer(raw, "<f4")
    return np.clip(np.rint(values * 32768), -32768, 32767).astype(np.int16), int(path.stem.split("-")[-1][:-1]) * 1000


def decode(path):
    """One channel as the step's documentation says, and the rate."""
    if path.name.startswith("bits"):
        return decode_flac(path)
    if path.name.startswith(("free", "cut", "counts")):
        return decode_mp3(path)
    if path.name == "streamed-16k.flac":  # which soundfile refuses
        raw = subprocess.run(["flac", "-s", "-d", "-c", "--force-raw-format", "--endian=little", "--sign=signed", path],
                             check=True, capture_output=True).stdout
        return np.frombuffer(raw, np.int16), 16000
    with soundfile.SoundFile(path) as file:
        if file.subtype == "FLOAT":
            data = np.nan_to_num(file.read(dtype="float32"), nan=0)
            return np.clip(np.rint(data * 32768), -32768, 32767).astype(np.int16), file.samplerate
        data, rate = file.read(dtype="int16"), file.samplerate
    if data.ndim == 2:
        data = np.floor(data.astype(np.int64).sum(axis=1) / data.shape[1] + 0.5).astype(np.int16)
    return data, rate


def make(folder):
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    manifest = {"soundfile": soundfile.__version__, "libsndfile": soundfile.__libsndfile_version__, "sounds": []}
    for name, about in make_sounds(folder):
        samples, rate = decode(folder / name)
        entry = {"file": name, "about": about, "rate": rate, "most": 1 if name.endswith((".mp3", ".ogg")) else 0,
                 "decoded": put_array(folder, f"{name}.decoded.npy.z", samples)}
        if name != "float-16k.wav":
            entry["spectrogram"] = put_array(folder, f"{name}.mel.npy.z", spectrogram(samples, rate))
        manifest["sounds"].append(entry)
    for name, about, status in make_bad(folder):
        manifest["sounds"].append({"file": name, "about": about, "error": f"PRESTO_ERR_{status}"})
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    make(pathlib.Path(__file__).resolve().parent / "audio")
