# SPDX-License-Identifier: Apache-2.0
"""Speech by espeak-ng with the noise of a room, in the layouts of Common Voice (MP3, 48 kHz, 0.020 MB a clip) and of
LibriSpeech (FLAC, 16 kHz, 0.232 MB an utterance)."""
import random

import numpy as np

import words
from corpus import for_each, run, tool

SPOKEN_RATE = 22050  # of espeak-ng
VOICES = ["en-us", "en-gb", "en-us+m3", "en-us+f2", "en-gb+f4", "en-gb-scotland+m5", "en-us+f5", "en-gb+m7"]


def speak(text, voice, speed, pitch):
    wav = run([tool("espeak-ng", "espeak-ng"), "--stdout", "-v", voice, "-s", speed, "-p", pitch, text])
    start = wav.index(b"data") + 8  # the length before it is unknown to espeak-ng, which writes to a pipe
    return np.frombuffer(wav[start:len(wav) - (len(wav) - start) % 2], "<i2").astype(np.float64)


def resample(samples, rate):
    """By the spectrum; 20 ms are whole numbers of samples at all rates used."""
    blocks = -(-len(samples) // (SPOKEN_RATE // 50))
    padded = np.zeros(blocks * (SPOKEN_RATE // 50))
    padded[:len(samples)] = samples
    count = blocks * (rate // 50)
    spectrum = np.fft.rfft(padded)
    kept = np.zeros(count // 2 + 1, complex)
    bins = min(len(kept), len(spectrum))
    kept[:bins] = spectrum[:bins]
    return np.fft.irfft(kept, count) * (count / len(padded))


def record(text, number, rate, noise):
    """What a microphone hears: int16, little-endian."""
    chance = random.Random(f"speech {number}")
    speech = resample(speak(text, VOICES[number % len(VOICES)], chance.randint(150, 200), chance.randint(30, 70)), rate)
    loudness = chance.uniform(0.4, 0.9) * 32767 / max(1.0, np.abs(speech).max())
    room = np.random.Generator(np.random.PCG64(number)).normal(0, noise, len(speech))
    return np.clip(np.round(speech * loudness + room), -32768, 32767).astype("<i2").tobytes()


def make_clip(path, text, number):
    run([tool("lame", "lame"), "--quiet", "-r", "-s", "48", "--bitwidth", "16", "--signed", "--little-endian", "-m", "m",
         "--cbr", "-b", "64", "-", path], record(text, number, 48000, 12))


def make_utterance(path, text, number):
    run([tool("flac", "flac"), "--silent", "--force", "--force-raw-format", "--endian=little", "--sign=signed", "--channels=1",
         "--bps=16", "--sample-rate=16000", "-o", path, "-"], record(text, number, 16000, 60))


def make_mp3(folder, size):
    (folder / "clips").mkdir()
    lines = ["client_id\tpath\tsentence\tup_votes\tdown_votes\tage\tgender\taccent\tlocale\tsegment"]
    jobs = []
    for number in range(size.count):
        rng = random.Random(f"mp3 {number}")
        text = min((words.sentence(rng, 3) for _ in range(3)), key=len)
        name = f"common_voice_en_{17000000 + 37 * number}.mp3"
        client = f"{rng.getrandbits(512):0128x}"
        lines.append(f"{client}\t{name}\t{text}\t{rng.randint(2, 9)}\t{rng.randint(0, 1)}\t\t\t\ten\t")
        jobs.append((str(folder / "clips" / name), text, number))
    (folder / "train.tsv").write_text("\n".join(lines) + "\n")
    for_each(make_clip, jobs)


def make_flac(folder, size):
    """Speakers with chapters of ten utterances."""
    jobs, transcripts = [], {}
    for number in range(size.count):
        rng = random.Random(f"flac {number}")
        speaker, chapter = 100 + number // (3 if size.tiny else 20) * 7, 1200 + number // (3 if size.tiny else 10)
        text = words.sentence(rng, 3 if size.tiny else rng.randint(18, 45))
        name = f"{speaker}-{chapter}-{number % 10:04}"
        place = folder / "train-clean-100" / str(speaker) / str(chapter)
        place.mkdir(parents=True, exist_ok=True)
        plain = "".join(letter for letter in text.upper() if letter.isalpha() or letter in " '")
        transcripts.setdefault(place / f"{speaker}-{chapter}.trans.txt", []).append(f"{name} {plain}\n")
        jobs.append((str(place / f"{name}.flac"), text, number))
    for path, lines in transcripts.items():
        path.write_text("".join(lines))
    for_each(make_utterance, jobs)
