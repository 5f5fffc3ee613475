#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speech: the pipelines mp3 and flac, the sources common-voice and librispeech, and tables and clips that are not as
they should be."""
import json
import shutil

from cli import GOLDEN, Case, example, frames, main, run

AUDIO = GOLDEN / "audio"
STEPS = """
steps:
  - {step: read-file,       yields: concatenated}
  - {step: decode-audio,    yields: decoded}
  - {step: mel-spectrogram, yields: spectrogram-encoded}
"""
SOUNDS = ["cbr-48k.mp3", "no-info-48k.mp3", "joint-48k.mp3", "vbr-id3-22k.mp3"]


class Speech(Case):
    def yaml(self, source):
        path = self.new("speech").with_suffix(".yaml")
        path.write_text(f"name: speech\nsource: {source}{STEPS}")
        return path

    def voices(self, rows, header="client_id\tpath\tsentence\tage", clips=8, table="train.tsv"):
        """A folder as Common Voice has them: clips c0.mp3, c1.mp3, ..."""
        folder = self.new("voices")
        (folder / "clips").mkdir(parents=True)
        for i in range(clips):
            shutil.copy(AUDIO / SOUNDS[i % len(SOUNDS)], folder / "clips" / f"c{i}.mp3")
        (folder / table).write_text("".join(line + "\n" for line in [header, *rows]))
        return folder

    def all_voices(self):
        return self.voices([f"id{i}\tc{i}.mp3\tSentence \"{i}\", ü\t{i}0" for i in (5, 2, 7, 0, 1, 6, 3, 4)])

    def speech(self):
        """A tree as LibriSpeech has them."""
        folder = self.new("speech")
        for chapter in ("84/121123", "84/121550", "174/50561"):
            (folder / chapter).mkdir(parents=True)
            stem = chapter.replace("/", "-")
            lines = [f"{stem}-{i:04} LINE {i} OF {stem}\n" for i in range(3)]
            (folder / chapter / f"{stem}.trans.txt").write_text("".join(lines))
            for i in range(3):
                shutil.copy(AUDIO / "pcm16-16k.flac", folder / chapter / f"{stem}-{i:04}.flac")
        return folder

    # ---- what comes out ----

    def test_rows_of_common_voice_become_samples_in_their_order(self):
        pipeline = self.yaml("{type: common-voice, columns: [client_id, age]}")
        rows = [example(f) for f in frames(self.load("-q", "-p", pipeline, "--to", "decoded", self.all_voices()))]
        order = (5, 2, 7, 0, 1, 6, 3, 4)
        self.assertEqual([r["key"][0].decode() for r in rows], [f"clips/c{i}.mp3" for i in order])
        self.assertEqual([r["transcript"][0].decode() for r in rows], [f'Sentence "{i}", ü' for i in order])
        self.assertEqual([r["client_id"][0].decode() for r in rows], [f"id{i}" for i in order])
        self.assertEqual([r["age"][0].decode() for r in rows], [f"{i}0" for i in order])
        self.assertEqual([r["rate"][0] for r in rows], [22050 if i % 4 == 3 else 48000 for i in order])

    def test_another_table_is_chosen_by_option_or_named(self):
        folder = self.all_voices()
        (folder / "dev.tsv").write_bytes(b"\xef\xbb\xbfpath\tsentence\r\nc1.mp3\tone\r\n")
        pipeline = self.yaml("{type: common-voice}")
        for arguments in (["--set", "source.table=dev.tsv", folder], [folder / "dev.tsv"]):
            rows = [example(f) for f in frames(self.load("-q", "-p", pipeline, "--to", "concatenated", *arguments))]
            self.assertEqual([(r["key"][0], r["transcript"][0]) for r in rows], [(b"clips/c1.mp3", b"one")])
            self.assertEqual(rows[0]["audio"][0], (folder / "clips" / "c1.mp3").read_bytes())

    def test_lines_of_librispeech_become_samples(self):
        pipeline = self.yaml("{type: librispeech}")
        rows = [example(f) for f in frames(self.load("-q", "-p", pipeline, "--to", "decoded", self.speech()))]
        self.assertEqual([(r["speaker"][0], r["chapter"][0]) for r in rows],
                         [(174, 50561)] * 3 + [(84, 121123)] * 3 + [(84, 121550)] * 3)
        self.assertEqual(rows[4]["key"], [b"84/121123/84-121123-0001.flac"])
        self.assertEqual(rows[4]["transcript"], [b"LINE 1 OF 84-121123"])

    def test_stored_at_any_split_it_loads_as_online(self):
        for source, folder in (("{type: common-voice}", self.all_voices()), ("{type: librispeech}", self.speech())):
            pipeline = self.yaml(source)
            online = self.load("-q", "-p", pipeline, folder)
            for split in ("concatenated", "decoded", "spectrogram-encoded"):
                stored = self.write("-q", "-u", split, "-s", "2", pipeline=pipeline, source=folder)
                self.assertTrue(self.load("-q", stored) == online, (source, split))

    def test_built_in_pipelines_take_folders_of_clips(self):
        for name, folder, rate in (("mp3", self.all_voices() / "clips", None), ("flac", self.speech(), 16000)):
            rows = [example(f) for f in frames(self.load("-q", "-p", name, folder))]
            self.assertEqual(len(rows), 8 if name == "mp3" else 9)
            self.assertEqual(sorted(rows[0]), ["audio", "key", "label", "rate"])
            self.assertTrue(rate is None or all(r["rate"] == [rate] for r in rows))

    # ---- every order ----

    def test_threads_ranks_and_resumed_streams_deliver_the_same(self):
        for source, folder in (("{type: common-voice}", self.all_voices()), ("{type: librispeech}", self.speech())):
            order = ["-q", "-p", self.yaml(source), "--to", "decoded", "--shuffle", "full", "--seed", "5", "-e", "2"]
            rows = frames(self.load("-j", "0", *order, folder))
            for threads in ("1", "4"):
                self.assertTrue(frames(self.load("-j", threads, *order, folder)) == rows)
            ranks = [frames(self.load(*order, "--rank", str(r), "--world", "4", folder)) for r in range(4)]
            found = {row for rank in ranks for row in rank}
            self.assertTrue(found == set(rows) and len({len(rank) for rank in ranks}) == 1)
            state = self.new("state").with_suffix(".json")
            head = frames(self.load(*order, "--state", state, "--limit", "7", folder))
            self.assertTrue(head + frames(self.load(*order, "--state", state, folder)) == rows)

    def test_a_changed_transcript_is_another_source(self):
        folder = self.speech()
        table = folder / "84" / "121123" / "84-121123.trans.txt"
        order = ["-q", "-p", self.yaml("{type: librispeech}"), "--to", "concatenated"]
        state = self.new("state").with_suffix(".json")
        self.load(*order, "--state", state, "--limit", "2", folder)
        table.write_text(table.read_text().replace("LINE", "LIME"))
        self.assert_fails(run("presto-load", *order, "--state", state, folder), 2, state.name)

    # ---- what is missing ----

    def test_rows_without_file_and_files_without_row_are_told(self):
        folder = self.voices(["a\tc1.mp3\tone\t", "b\tgone.mp3\ttwo\t", "c\tgone2.mp3\tthree\t", "d\tc0.mp3\tfour\t"], clips=5)
        done = run("presto-load", "-p", self.yaml("{type: common-voice}"), "--to", "concatenated", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([example(f)["transcript"] for f in frames(done.stdout)], [[b"one"], [b"four"]])
        self.assertIn("train.tsv: 2 of 4 rows left out: no such file in clips/, the first in line 3: gone.mp3", done.stderr)
        self.assertIn("clips/: 3 of 5 files left out: no row in ", done.stderr)
        folder = self.voices(["a\tc1.mp3\tone\t", "b\tc0.mp3\t\t"], clips=2)
        done = run("presto-load", "-p", self.yaml("{type: common-voice}"), "--to", "concatenated", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("train.tsv: no sentence in 1 of 2 rows, the first is line 3: the transcript is empty there", done.stderr)
        folder = self.speech()
        table = folder / "84" / "121123" / "84-121123.trans.txt"
        lines = table.read_text().splitlines()
        table.write_text("\n".join([lines[0], lines[1].split()[0], *lines[2:]]) + "\n")
        done = run("presto-load", "-p", self.yaml("{type: librispeech}"), "--to", "concatenated", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 of 9 transcripts without text, the first in 84/121123/84-121123.trans.txt, line 2: ", done.stderr)

    def test_transcripts_without_file_and_files_without_transcript_are_told(self):
        folder = self.speech()
        (folder / "84" / "121123" / "84-121123-0001.flac").unlink()
        shutil.copy(AUDIO / "pcm16-16k.flac", folder / "84" / "121550" / "84-121550-0009.flac")
        done = run("presto-load", "-p", self.yaml("{type: librispeech}"), "--to", "concatenated", folder)
        self.assertEqual(len(frames(done.stdout)), 8)
        self.assertIn("1 of 9 transcripts left out: no such file, the first in 84/121123/84-121123.trans.txt, line 2: "
                      "84-121123-0001", done.stderr)
        self.assertIn("1 of 9 .flac files left out: no transcript", done.stderr)

    def test_nothing_found_is_an_error(self):
        voice, speech = self.yaml("{type: common-voice}"), self.yaml("{type: librispeech}")
        empty = self.new("empty")
        empty.mkdir()
        for pipeline, folder, *parts in (
                (voice, empty, "train.tsv"), (speech, empty, "no sound with a transcript"),
                (voice, self.voices([]), "train.tsv: has no rows"),
                (voice, self.voices(["a\tx.mp3\tone\t"], clips=0), "of its 1 clip, none is in", "of line 2, is x.mp3"),
                (speech, self.all_voices(), "0 files *.trans.txt")):
            self.assert_fails(run("presto-load", "-p", pipeline, folder), 1, *parts)

    # ---- damage ----

    def test_damaged_tables_name_file_and_line(self):
        voice, good = self.yaml("{type: common-voice}"), "a\tc0.mp3\tone\t"
        for rows, header, *parts in (
                ([good, "b\tc1.mp3"], None, "train.tsv: line 3 has 2 fields, line 1 has 4"),
                ([good, "b\tc1.mp3\tx\0y\t"], None, "train.tsv: line 3 holds a NUL byte"),
                ([good], "client_id\tpath\ttext\tage", "train.tsv: line 1 names no column 'sentence'"),
                ([good, "b\t../../etc/passwd\tx\t"], None, "train.tsv: line 3: the path", "leads out of"),
                ([good, "b\t/etc/passwd\tx\t"], None, "line 3: the path \"/etc/passwd\" leads out of"),
                ([good, "b\t\tx\t"], None, "line 3: the path \"\" leads out of")):
            folder = self.voices(rows, header or "client_id\tpath\tsentence\tage")
            self.assert_fails(run("presto-load", "-p", voice, folder), 1, *parts)
        for line in ("../84-121123-0001 X", "84-121123 X", "84-x-0001 X", "84-121123-../0001 X", " X"):
            folder = self.speech()
            table = folder / "84" / "121123" / "84-121123.trans.txt"
            table.write_text(table.read_text() + line + "\n")
            self.assert_fails(run("presto-load", "-p", self.yaml("{type: librispeech}"), folder), 1,
                              "84-121123.trans.txt: line 4 must start with SPEAKER-CHAPTER-NUMBER")

    def test_damaged_clips_are_named_or_skipped(self):
        folder = self.all_voices()
        shutil.copy(AUDIO / "bad-cut-cbr-48k.mp3", folder / "clips" / "c2.mp3")
        (folder / "clips" / "c3.mp3").write_bytes(b"")
        order = ["-p", self.yaml("{type: common-voice}")]
        self.assert_fails_with_data(run("presto-load", *order, folder), "clips/c2.mp3: ", "truncated MP3")
        done = run("presto-load", *order, "--on-error", "skip", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        keys = [example(f)["key"][0].decode() for f in frames(done.stdout)]
        self.assertEqual(keys, [f"clips/c{i}.mp3" for i in (5, 7, 0, 1, 6, 4)])

    def assert_fails_with_data(self, done, *parts):
        self.assertNotEqual(done.returncode, 0)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_options_that_cannot_be_are_refused(self):
        for source, part in (("{type: common-voice, table: ../x.tsv}", "table"),
                             ("{type: common-voice, columns: [transcript]}", "columns"),
                             ("{type: common-voice, columns: [age, age]}", "columns"),
                             ("{type: common-voice, feature: rate}", "feature"),
                             ("{type: librispeech, ending: /x}", "ending"),
                             ("{type: librispeech, match: ['*']}", "match")):
            done = run("presto-load", "-p", self.yaml(source), self.folder)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(part, done.stderr)

    def test_the_plan_tells_what_comes_out(self):
        done = run("presto-load", "-p", "flac", "--explain", self.speech())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("float32[?,80], yields spectrogram-encoded", done.stdout.decode())
        info = json.loads(run("presto-inspect", "info", "--json",
                              self.write("-q", "-u", "decoded", pipeline="flac", source=self.speech())).stdout)
        self.assertIn("rate", info["features"])


if __name__ == "__main__":
    main()
