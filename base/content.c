/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file is, by its first bytes. Signatures are those of the formats' specifications and of
 * file(1). Text is told from other bytes by control characters, as mimesniff.spec.whatwg.org does,
 * but by their share: real pages have some of them.
 */
#define _GNU_SOURCE /* memmem */
#include "content_internal.h"

#include <string.h>
#include <strings.h>

/* Text is looked at so far to be called text, and so far to be called none. */
#define TEXT_BYTES 512
#define BINARY_BYTES 4096
/* Too few bytes to tell that they are no text. */
#define LEAST_BINARY_BYTES 32
/* Letters in a signature that no text begins with by chance. */
#define LETTERS_ENOUGH 7

#define DECOMPRESS(program) "decompress it first (" program ")"
#define UNPACK(program) "unpack it first (" program ")"

typedef struct signature {
    presto__content content;
    size_t at;
    const char *bytes;
    size_t count;
    size_t second_at; /* a second one, if second is not NULL; it has no zero byte */
    const char *second;
} signature;

#define IMAGE(name, shown)                                                                         \
    { name, shown, PRESTO__CONTENT_IMAGE, NULL, true }
#define SOUND(name, shown)                                                                         \
    { name, shown, PRESTO__CONTENT_SOUND, NULL, true }
#define VIDEO(name, shown)                                                                         \
    { name, shown, PRESTO__CONTENT_VIDEO, NULL, true }
#define COLUMNS(name, shown)                                                                       \
    { name, shown, PRESTO__CONTENT_COLUMNS, NULL, true }
#define ARRAYS(name, shown)                                                                        \
    { name, shown, PRESTO__CONTENT_ARRAYS, NULL, true }
#define DOCUMENT(name, shown)                                                                      \
    { name, shown, PRESTO__CONTENT_DOCUMENT, NULL, true }
#define MARKUP(name, shown)                                                                        \
    { name, shown, PRESTO__CONTENT_MARKUP, NULL, true }
#define OTHER(name, shown)                                                                         \
    { name, shown, PRESTO__CONTENT_OTHER, NULL, true }
#define PACKED(name, shown, how)                                                                   \
    { name, shown, PRESTO__CONTENT_ARCHIVE, how, true }
#define SMALLER(name, shown, how)                                                                  \
    { name, shown, PRESTO__CONTENT_COMPRESSED, how, true }
#define POINTER(name, shown, how)                                                                  \
    { name, shown, PRESTO__CONTENT_POINTER, how, true }
/* Its bytes could be the length of a record, or few. */
#define UNSURE(name, shown, group, how)                                                            \
    { name, shown, group, how, false }
#define AT(bytes) 0, bytes, sizeof(bytes) - 1, 0, NULL
#define LATER(at, bytes) at, bytes, sizeof(bytes) - 1, 0, NULL
#define BOTH(bytes, at, second) 0, bytes, sizeof(bytes) - 1, at, second

/* The first that fits counts. One of two bytes only is no proof. */
static const signature signatures[] = {
    {{"index", "the index of a TFRecord file", PRESTO__CONTENT_OTHER, "name that file instead",
      true},
     AT("PRESTOIX")},
    {{"index", "the index of a text file", PRESTO__CONTENT_OTHER, "name that file instead", true},
     AT("PRESTOLX")},
    /* images */
    {IMAGE("jpeg", "a JPEG file"), AT("\xff\xd8\xff")},
    {IMAGE("png", "a PNG file"), AT("\x89PNG\r\n\x1a\n")},
    {IMAGE("gif", "a GIF file"), AT("GIF8")},
    {IMAGE("webp", "a WebP file"), BOTH("RIFF", 8, "WEBP")},
    {IMAGE("tiff", "a TIFF file"), AT("II*\0")},
    {IMAGE("tiff", "a TIFF file"), AT("MM\0*")},
    {IMAGE("tiff", "a TIFF file"), AT("II+\0")},
    {IMAGE("tiff", "a TIFF file"), AT("MM\0+")},
    {IMAGE("jxl", "a JPEG XL file"), AT("\0\0\0\x0cJXL \r\n\x87\n")},
    {IMAGE("jp2", "a JPEG 2000 file"), AT("\0\0\0\x0cjP  \r\n\x87\n")},
    {IMAGE("jp2", "a JPEG 2000 file"), AT("\xff\x4f\xff\x51")},
    {IMAGE("avif", "an AVIF file"), LATER(4, "ftypavif")},
    {IMAGE("avif", "an AVIF file"), LATER(4, "ftypavis")},
    {IMAGE("heic", "a HEIC file"), LATER(4, "ftyphe")},
    {IMAGE("heic", "a HEIC file"), LATER(4, "ftypmif1")},
    {IMAGE("heic", "a HEIC file"), LATER(4, "ftypmsf1")},
    {IMAGE("raw", "a camera's raw file"), LATER(4, "ftypcrx ")},
    {IMAGE("raw", "a camera's raw file"), AT("FUJIFILMCCD-RAW")},
    {IMAGE("raw", "a camera's raw file"), AT("IIRO")},
    {IMAGE("psd", "a Photoshop file"), AT("8BPS")},
    {IMAGE("exr", "an OpenEXR file"), AT("\x76\x2f\x31\x01")},
    {IMAGE("hdr", "a Radiance HDR file"), AT("#?RADIANCE")},
    {IMAGE("dds", "a DDS file"), AT("DDS ")},
    {IMAGE("qoi", "a QOI file"), AT("qoif")},
    {IMAGE("djvu", "a DjVu file"), AT("AT&TFORM")},
    {IMAGE("xcf", "a GIMP file"), AT("gimp xcf ")},
    {IMAGE("icns", "an icon file"), AT("icns")},
    {IMAGE("dicom", "a DICOM file"), LATER(128, "DICM")},
    {IMAGE("fits", "a FITS file"), AT("SIMPLE  =                    T")},
    {UNSURE("ico", "an icon file", PRESTO__CONTENT_IMAGE, NULL), AT("\0\0\1\0")},
    /* sound */
    {SOUND("wav", "a WAV file"), BOTH("RIFF", 8, "WAVE")},
    {SOUND("wav", "a WAV file"), BOTH("RIFX", 8, "WAVE")},
    {SOUND("wav", "an RF64 (large WAV) file"), BOTH("RF64", 8, "WAVE")},
    {SOUND("wav", "a BW64 (large WAV) file"), BOTH("BW64", 8, "WAVE")},
    {SOUND("w64", "a Wave64 file"), AT("riff\x2e\x91\xcf\x11")},
    {SOUND("flac", "a FLAC file"), AT("fLaC")},
    {SOUND("ogg", "an Ogg file"), AT("OggS")},
    {SOUND("mp3", "an MP3 file"), AT("ID3\2")},
    {SOUND("mp3", "an MP3 file"), AT("ID3\3")},
    {SOUND("mp3", "an MP3 file"), AT("ID3\4")},
    {SOUND("m4a", "an M4A (AAC or ALAC) file"), LATER(4, "ftypM4A ")},
    {SOUND("m4a", "an M4A (AAC) file"), LATER(4, "ftypM4B ")},
    {SOUND("aiff", "an AIFF file"), BOTH("FORM", 8, "AIFF")},
    {SOUND("aiff", "an AIFF file"), BOTH("FORM", 8, "AIFC")},
    {SOUND("au", "an AU file"), AT(".snd")},
    {SOUND("caf", "a CAF file"), AT("caff")},
    {SOUND("amr", "an AMR file"), AT("#!AMR")},
    {SOUND("ape", "a Monkey's Audio file"), AT("MAC ")},
    {SOUND("wavpack", "a WavPack file"), AT("wvpk")},
    {SOUND("musepack", "a Musepack file"), AT("MPCK")},
    {SOUND("tta", "a TTA file"), AT("TTA1")},
    {SOUND("dsf", "a DSD file"), AT("DSD ")},
    {SOUND("sphere", "a NIST SPHERE file"), AT("NIST_1A\n")},
    {SOUND("midi", "a MIDI file"), AT("MThd")},
    {SOUND("voc", "a VOC file"), AT("Creative Voice File")},
    /* video */
    {VIDEO("avi", "an AVI file"), BOTH("RIFF", 8, "AVI ")},
    {VIDEO("mp4", "an MP4 file"), LATER(4, "ftyp")},
    {VIDEO("mp4", "a QuickTime file"), LATER(4, "moov")},
    {VIDEO("mp4", "a QuickTime file"), LATER(4, "mdat")},
    {VIDEO("mkv", "a Matroska or WebM file"), AT("\x1a\x45\xdf\xa3")},
    {VIDEO("flv", "a Flash video"), AT("FLV\x01")},
    {VIDEO("asf", "a Windows Media file"), AT("\x30\x26\xb2\x75\x8e\x66\xcf\x11")},
    {UNSURE("mpeg", "an MPEG video", PRESTO__CONTENT_VIDEO, NULL), AT("\0\0\1\xba")},
    {UNSURE("mpeg", "an MPEG video", PRESTO__CONTENT_VIDEO, NULL), AT("\0\0\1\xb3")},
    {VIDEO("mpeg-ts", "an MPEG transport stream"), BOTH("G", 188, "G@")},
    {OTHER("swf", "a Flash file"), AT("FWS")},
    {OTHER("swf", "a Flash file"), AT("CWS")},
    /* arrays */
    {{"hdf5", "an HDF5 file", PRESTO__CONTENT_ARRAYS, "source type hdf5 reads it", true},
     AT("\x89HDF\r\n")},
    {ARRAYS("npy", "an npy file"), AT("\x93NUMPY")},
    {ARRAYS("safetensors", "a safetensors file"), LATER(8, "{\"__metadata__\":")},
    {ARRAYS("netcdf", "a NetCDF file"), AT("CDF\x01")},
    {ARRAYS("netcdf", "a NetCDF file"), AT("CDF\x02")},
    {ARRAYS("netcdf", "a NetCDF file"), AT("CDF\x05")},
    {ARRAYS("matlab", "a MATLAB file"), AT("MATLAB 5.0 MAT-file")},
    {ARRAYS("nifti", "a NIfTI file"), LATER(344, "n+1\0")},
    {ARRAYS("nifti", "a NIfTI file"), LATER(344, "ni1\0")},
    {ARRAYS("gguf", "a GGUF model"), AT("GGUF")},
    {UNSURE("pickle", "a Python pickle", PRESTO__CONTENT_ARRAYS, NULL), AT("\x80\x02}")},
    {UNSURE("pickle", "a Python pickle", PRESTO__CONTENT_ARRAYS, NULL), AT("\x80\x02]")},
    {UNSURE("pickle", "a Python pickle", PRESTO__CONTENT_ARRAYS, NULL), AT("\x80\x02"
                                                                           "c")},
    {UNSURE("pickle", "a Python pickle", PRESTO__CONTENT_ARRAYS, NULL), AT("\x80\x03}")},
    {UNSURE("pickle", "a Python pickle", PRESTO__CONTENT_ARRAYS, NULL), AT("\x80\x03]")},
    {UNSURE("pickle", "a Python pickle", PRESTO__CONTENT_ARRAYS, NULL), AT("\x80\x03"
                                                                           "c")},
    {UNSURE("pickle", "a Python pickle", PRESTO__CONTENT_ARRAYS, NULL), AT("\x80\x04\x95")},
    {UNSURE("pickle", "a Python pickle", PRESTO__CONTENT_ARRAYS, NULL), AT("\x80\x05\x95")},
    {OTHER("sentencepiece", "a SentencePiece model"), BOTH("\n", 2, "\n\x05<unk>")},
    /* tables */
    {COLUMNS("parquet", "a Parquet file"), AT("PAR1")},
    {COLUMNS("parquet", "an encrypted Parquet file"), AT("PARE")},
    {COLUMNS("arrow", "an Arrow (Feather) file"), AT("ARROW1")},
    {COLUMNS("arrow", "an Arrow (Feather) file"), AT("FEA1")},
    {COLUMNS("orc", "an ORC file"), AT("ORC")},
    {COLUMNS("avro", "an Avro file"), AT("Obj\x01")},
    {COLUMNS("sqlite", "an SQLite file"), AT("SQLite format 3\0")},
    {COLUMNS("lmdb", "an LMDB database"), LATER(16, "\xde\xc0\xef\xbe")},
    {COLUMNS("sequencefile", "a Hadoop SequenceFile"), AT("SEQ\x06")},
    {COLUMNS("stata", "a Stata file"), AT("<stata_dta>")},
    {COLUMNS("spss", "an SPSS file"), AT("$FL2")},
    {COLUMNS("rdata", "an R data file"), AT("RDX")},
    /* documents */
    {DOCUMENT("pdf", "a PDF file"), AT("%PDF-")},
    {DOCUMENT("office", "a file of an older Office (doc, xls, ppt)"),
     AT("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")},
    {DOCUMENT("rtf", "an RTF file"), AT("{\\rtf")},
    {DOCUMENT("mobi", "a Kindle book"), LATER(60, "BOOKMOBI")},
    {DOCUMENT("chm", "a compiled help file"), AT("ITSF")},
    {DOCUMENT("postscript", "a PostScript file"), AT("%!PS-Adobe")},
    /* markup; more of HTML below */
    {MARKUP("xml", "an XML file"), AT("<?xml")},
    /* what stands for another file */
    {POINTER("lfs", "a git LFS pointer, not the file itself", "fetch that with \"git lfs pull\""),
     AT("version https://git-lfs.github.com/spec/")},
    {POINTER("annex", "a git-annex pointer, not the file itself",
             "fetch that with \"git annex get\""),
     AT("/annex/objects/")},
    {POINTER("dvc", "a DVC pointer, not the file itself", "fetch that with \"dvc pull\""),
     AT("outs:\n- md5: ")},
    {POINTER("dvc", "a DVC pointer, not the file itself", "fetch that with \"dvc pull\""),
     AT("outs:\n- hash: ")},
    /* archives */
    {PACKED("zip", "a zip file", UNPACK("unzip")), AT("PK\x03\x04")},
    {PACKED("zip", "an empty zip file", UNPACK("unzip")), AT("PK\x05\x06")},
    {PACKED("zip", "a zip file", UNPACK("unzip")), AT("PK00PK\x03\x04")},
    {PACKED("7z", "a 7z file", UNPACK("7z x")), AT("7z\xbc\xaf\x27\x1c")},
    {PACKED("rar", "a RAR file", UNPACK("unrar x")), AT("Rar!\x1a\x07")},
    {PACKED("cab", "a cabinet file", UNPACK("cabextract")), AT("MSCF\0")},
    {PACKED("ar", "an ar archive", UNPACK("ar x")), AT("!<arch>\n")},
    {PACKED("cpio", "a cpio archive", UNPACK("cpio -i")), AT("070701")},
    {PACKED("rpm", "an RPM package", UNPACK("rpm2cpio")), AT("\xed\xab\xee\xdb")},
    {PACKED("squashfs", "a SquashFS image", UNPACK("unsquashfs")), AT("hsqs")},
    /* compressed */
    {UNSURE("gzip", "a gzip file", PRESTO__CONTENT_COMPRESSED, DECOMPRESS("gunzip")),
     AT("\x1f\x8b\x08")},
    {SMALLER("zstd", "a zstd file", DECOMPRESS("unzstd")), AT("\x28\xb5\x2f\xfd")},
    {SMALLER("xz", "an xz file", DECOMPRESS("unxz")), AT("\xfd\x37zXZ")},
    {SMALLER("bzip2", "a bzip2 file", DECOMPRESS("bunzip2")), BOTH("BZh", 4, "1AY&SY")},
    {SMALLER("lz4", "an lz4 file", DECOMPRESS("unlz4")), AT("\x04\x22\x4d\x18")},
    {SMALLER("lzip", "an lzip file", DECOMPRESS("lzip -d")), AT("LZIP\x01")},
    {SMALLER("lzop", "an lzop file", DECOMPRESS("lzop -d")), AT("\x89LZO\0\r\n\x1a\n")},
    {SMALLER("snappy", "a Snappy file", DECOMPRESS("snzip -d")), AT("\xff\x06\0\0sNaPpY")},
    {UNSURE("lzma", "an lzma file", PRESTO__CONTENT_COMPRESSED, DECOMPRESS("unlzma")),
     AT("\x5d\0\0\x80\0")},
    {UNSURE("lzma", "an lzma file", PRESTO__CONTENT_COMPRESSED, DECOMPRESS("unlzma")),
     AT("\x5d\0\0\0\4")},
    {UNSURE("compress", "a file of compress (.Z)", PRESTO__CONTENT_COMPRESSED,
            DECOMPRESS("uncompress")),
     AT("\x1f\x9d\x90")},
    /* programs, fonts, other */
    {OTHER("elf", "a program or library (ELF)"), AT("\x7f"
                                                    "ELF")},
    {OTHER("macho", "a program or library (Mach-O)"), AT("\xcf\xfa\xed\xfe")},
    {OTHER("java", "a Java class"), AT("\xca\xfe\xba\xbe")},
    {OTHER("wasm", "a WebAssembly module"), AT("\0asm\1\0\0\0")},
    {OTHER("dex", "an Android program"), AT("dex\n0")},
    {OTHER("pyc", "compiled Python"), LATER(1, "\r\r\n\0\0\0\0")},
    {UNSURE("font", "a font", PRESTO__CONTENT_OTHER, NULL), AT("\0\1\0\0\0")},
    {OTHER("font", "a font"), AT("OTTO")},
    {OTHER("font", "a font"), AT("wOFF")},
    {OTHER("font", "a font"), AT("wOF2")},
    {OTHER("font", "a font"), AT("ttcf")},
    {OTHER("pcap", "a packet capture"), AT("\xd4\xc3\xb2\xa1")},
    {OTHER("git", "a pack of git"), AT("PACK\0\0\0\2")},
    {OTHER("exe", "a program or library (Windows)"), AT("MZ\x90\0")},
    {OTHER("exe", "a program or library (DOS or Windows)"), BOTH("MZ", 128, "PE")},
};

/* Those without a fixed signature. */
static const presto__content npz_content = {"npz", "an npz file", PRESTO__CONTENT_ARCHIVE,
                                            UNPACK("unzip"), true};
static const presto__content torch_content = {"torch", "a PyTorch file (torch.save)",
                                              PRESTO__CONTENT_ARRAYS, NULL, true};
static const presto__content tar_content =
    PACKED("tar", "a tar file", "--set source.type=tar takes its members");
static const presto__content office_content = {"office", "an Office file (docx, xlsx, pptx, odt)",
                                               PRESTO__CONTENT_DOCUMENT, NULL, true};
static const presto__content epub_content = {"epub", "an EPUB book", PRESTO__CONTENT_DOCUMENT,
                                             UNPACK("unzip"), true};
static const presto__content avif_content = IMAGE("avif", "an AVIF file");
static const presto__content bmp_content = IMAGE("bmp", "a BMP file");
static const presto__content jxl_content =
    UNSURE("jxl", "a JPEG XL file", PRESTO__CONTENT_IMAGE, NULL);
static const presto__content pnm_content = IMAGE("pnm", "a PNM (PBM, PGM, PPM) file");
static const presto__content svg_content = MARKUP("svg", "an SVG file");
static const presto__content html_content = MARKUP("html", "an HTML file");
static const presto__content error_content = MARKUP("xml", "an XML file with an error of a server");
static const presto__content mpeg_content =
    UNSURE("mp3", "an MP3 file", PRESTO__CONTENT_SOUND, NULL);
static const presto__content aac_content =
    UNSURE("aac", "an AAC file", PRESTO__CONTENT_SOUND, NULL);
static const presto__content arrow_content = COLUMNS("arrow", "an Arrow stream");
static const presto__content safetensors_content = ARRAYS("safetensors", "a safetensors file");
static const presto__content text_content =
    UNSURE("text", "a text file", PRESTO__CONTENT_TEXT, NULL);
static const presto__content wide_content =
    UNSURE("text", "a text file in UTF-16 or UTF-32", PRESTO__CONTENT_TEXT, NULL);
static const presto__content json_content =
    UNSURE("text", "a JSON file", PRESTO__CONTENT_JSON, NULL);
static const presto__content lines_content =
    UNSURE("text", "a JSON Lines file", PRESTO__CONTENT_LINES,
           "each of its lines is a sample of its own: write each to a file or record of its own");
static const presto__content csv_content =
    UNSURE("text", "a CSV file", PRESTO__CONTENT_TABLE, NULL);
static const presto__content binary_content =
    UNSURE("binary", "binary data", PRESTO__CONTENT_OTHER, NULL);

static bool stands_at(presto_span bytes, size_t at, const char *want, size_t count) {
    return bytes.bytes >= count && at <= bytes.bytes - count &&
           memcmp(bytes.data + at, want, count) == 0;
}

static presto_span first_bytes(presto_span bytes, size_t most) {
    return presto_span_of(bytes.data, bytes.bytes < most ? bytes.bytes : most);
}

/* ---- text or not ---- */

/* Controls that no text has: not white space, backspace (of old manuals) or escape (ISO-2022). */
static bool is_binary_byte(uint8_t byte) {
    return byte < 0x20 && !(byte >= 8 && byte <= 0x0d) && byte != 0x1b && byte != 0x1a;
}

static bool has_binary_byte(presto_span bytes) {
    for (size_t i = 0; i < bytes.bytes; i++)
        if (is_binary_byte(bytes.data[i]))
            return true;
    return false;
}

/* Text of any language: no control characters but white space, and UTF-8 as far as it is looked at.
 */
static bool looks_like_text(presto_span bytes) {
    size_t most = bytes.bytes < TEXT_BYTES ? bytes.bytes : TEXT_BYTES;
    size_t follow = 0;
    for (size_t i = 0; i < most; i++) {
        uint8_t byte = bytes.data[i];
        if (follow > 0) {
            if ((byte & 0xc0) != 0x80)
                return false;
            follow--;
        } else if (byte >= 0x80) {
            follow = (byte & 0xe0) == 0xc0 ? 1 : (byte & 0xf0) == 0xe0 ? 2 : 3;
            if (byte < 0xc2 || byte > 0xf4)
                return false;
        } else if (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f') {
            return false;
        } else if (byte == 0x7f) {
            return false;
        }
    }
    return bytes.bytes > 0 && (follow == 0 || most < bytes.bytes);
}

/* UTF-16 or UTF-32 without a mark, of mostly Latin text or markup: the zeros stand in step. */
static bool is_wide_text(presto_span bytes) {
    size_t zeros[4] = {0}, controls = 0;
    size_t steps = bytes.bytes / 4;
    for (size_t i = 0; i < steps * 4; i++) {
        zeros[i % 4] += bytes.data[i] == 0;
        controls += bytes.data[i] != 0 && is_binary_byte(bytes.data[i]);
    }
    if (steps < 2 || controls * 10 > steps)
        return false;
    size_t most = steps - steps / 4, few = steps / 20;
    bool is_16_little = zeros[1] >= most && zeros[3] >= most && zeros[0] <= few && zeros[2] <= few;
    bool is_16_big = zeros[0] >= most && zeros[2] >= most && zeros[1] <= few && zeros[3] <= few;
    bool is_plain = controls * 40 <= steps;
    bool is_32_little = zeros[2] >= most && zeros[3] >= most && zeros[0] <= few;
    bool is_32_big = zeros[0] >= most && zeros[1] >= most && zeros[3] <= few;
    return is_16_little || is_16_big || (is_plain && (is_32_little || is_32_big));
}

/* UTF-32 or UTF-16 behind its byte order mark: in UTF-16, no unit is 0, and surrogates come in pairs. */
static bool is_marked_wide(presto_span bytes) {
    if (stands_at(bytes, 0, "\xff\xfe\0\0", 4) || stands_at(bytes, 0, "\0\0\xfe\xff", 4))
        return is_wide_text(first_bytes(bytes, BINARY_BYTES));
    if (bytes.bytes < 4 ||
        !(stands_at(bytes, 0, "\xff\xfe", 2) || stands_at(bytes, 0, "\xfe\xff", 2)))
        return false;
    bool is_little = bytes.data[0] == 0xff;
    bool is_high = false;
    presto_span start = first_bytes(bytes, TEXT_BYTES);
    for (size_t i = 2; i + 1 < start.bytes; i += 2) {
        unsigned high = start.data[is_little ? i + 1 : i], low = start.data[is_little ? i : i + 1];
        bool is_low = high >= 0xdc && high < 0xe0;
        if (is_high != is_low || (high == 0 && is_binary_byte((uint8_t)low)))
            return false;
        is_high = high >= 0xd8 && high < 0xdc;
    }
    return true;
}

/*
 * Of random bytes a tenth are such controls, of all kinds; numbers are full of zeros. Separators of
 * fields and lines may be frequent in text, but are of few kinds. Zeros at the end are padding.
 */
static bool is_binary(presto_span bytes) {
    size_t count = 0, zeros = 0, kinds = 0;
    bool is_seen[0x20] = {false};
    presto_span start = first_bytes(bytes, BINARY_BYTES);
    if (start.bytes < LEAST_BINARY_BYTES)
        return false;
    while (start.bytes > 0 && start.data[start.bytes - 1] == 0)
        start.bytes--;
    if (start.bytes == 0)
        return true;
    for (size_t i = 0; i < start.bytes; i++) {
        uint8_t byte = start.data[i];
        if (!is_binary_byte(byte))
            continue;
        count++;
        zeros += byte == 0;
        kinds += !is_seen[byte];
        is_seen[byte] = true;
    }
    bool is_mixed = count * 40 > start.bytes && kinds >= 4;
    return (is_mixed || zeros * 10 > start.bytes) && !is_wide_text(start);
}

/* ---- which kind of text: named only if there is little doubt ---- */

static size_t skip_space(presto_span text, size_t at) {
    while (at < text.bytes && memchr(" \t\r\n", text.data[at], 4) != NULL)
        at++;
    return at;
}

static size_t skip_number(presto_span text, size_t at) {
    while (at < text.bytes && memchr("+-.0123456789eE", text.data[at], 15) != NULL)
        at++;
    return at;
}

/* An object with a name, or an array whose first item is no bare word: "[INFO] ..." is a log. */
static bool looks_like_json(presto_span text) {
    size_t at = skip_space(text, 0);
    if (at == text.bytes || (text.data[at] != '{' && text.data[at] != '['))
        return false;
    bool is_object = text.data[at] == '{';
    at = skip_space(text, at + 1);
    if (at == text.bytes)
        return false;
    if (is_object)
        return text.data[at] == '"';
    if (memchr("{[\"", text.data[at], 3) != NULL)
        return true;
    size_t end = skip_number(text, at);
    bool is_number = end > at;
    at = skip_space(text, end);
    return is_number && at < text.bytes && memchr(",]", text.data[at], 2) != NULL;
}

/* An object that ends with its line, and another one behind it. */
static bool looks_like_json_lines(presto_span text) {
    size_t at = skip_space(text, 0);
    if (at == text.bytes || text.data[at] != '{' || !looks_like_json(text))
        return false;
    const uint8_t *line_end = memchr(text.data + at, '\n', text.bytes - at);
    if (line_end == NULL)
        return false;
    size_t end = (size_t)(line_end - text.data), last = end;
    while (last > at && (text.data[last - 1] == '\r' || text.data[last - 1] == ' '))
        last--;
    presto_span rest = presto_span_of(text.data + end, text.bytes - end);
    size_t next = skip_space(rest, 0);
    return text.data[last - 1] == '}' && next < rest.bytes && rest.data[next] == '{' &&
           looks_like_json(rest);
}

/*
 * At least two lines, each with the same number of the same separator. In prose, a space follows a
 * comma. A line that is cut off does not count.
 */
static bool has_columns(presto_span text, uint8_t separator) {
    size_t columns = 0, first_columns = 0, lines = 0;
    bool is_quoted = false;
    for (size_t i = 0; i < text.bytes; i++) {
        uint8_t byte = text.data[i];
        if (byte == '"')
            is_quoted = !is_quoted;
        if (is_quoted)
            continue;
        if (byte == separator) {
            columns++;
            if (lines == 0 && i + 1 < text.bytes && text.data[i + 1] == ' ')
                return false;
        } else if (byte == '\n') {
            if (lines++ == 0)
                first_columns = columns;
            if (columns == 0 || columns != first_columns)
                return false;
            columns = 0;
        }
    }
    return lines >= 2;
}

static const presto__content *kind_of_text(presto_span text) {
    const presto_span start = first_bytes(text, TEXT_BYTES);
    if (looks_like_json(start))
        return looks_like_json_lines(text) ? &lines_content : &json_content;
    bool is_csv = has_columns(start, ',') || has_columns(start, ';') || has_columns(start, '\t');
    return is_csv ? &csv_content : &text_content;
}

/* ---- formats that take more than a signature ---- */

static bool has_word(presto_span text, size_t at, const char *word) {
    size_t bytes = strlen(word);
    return at <= text.bytes && text.bytes - at >= bytes &&
           strncasecmp((const char *)text.data + at, word, bytes) == 0;
}

static bool contains(presto_span bytes, const char *word) {
    return memmem(bytes.data, bytes.bytes, word, strlen(word)) != NULL;
}

/* Behind white space, a mark, and comments: a page rarely starts at once. */
static const presto__content *kind_of_markup(presto_span bytes) {
    static const char *const starts[] = {"<!doctype html", "<html",   "<head", "<title",
                                         "<body",          "<script", "<meta"};
    presto_span text = first_bytes(bytes, BINARY_BYTES);
    size_t at = skip_space(text, stands_at(text, 0, "\xef\xbb\xbf", 3) ? 3 : 0);
    while (has_word(text, at, "<!--")) {
        presto_span rest = presto_span_of(text.data + at, text.bytes - at);
        const uint8_t *end = memmem(rest.data, rest.bytes, "-->", 3);
        if (end == NULL)
            return &html_content;
        at = skip_space(text, (size_t)(end - text.data) + 3);
    }
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (has_word(text, at, starts[i]))
            return &html_content;
    if (has_word(text, at, "<svg"))
        return &svg_content;
    if (!has_word(text, at, "<?xml"))
        return NULL;
    presto_span start = presto_span_of(text.data + at, text.bytes - at);
    return contains(start, "<Error>") ? &error_content
           : contains(start, "<svg")  ? &svg_content
                                      : NULL;
}

/* The name of a zip file's first entry tells what it is. */
static const presto__content *kind_of_zip(presto_span bytes) {
    static const char *const office[] = {
        "[Content_Types].xml", "_rels/", "docProps/", "word/", "xl/", "ppt/"};
    if (!stands_at(bytes, 0, "PK\x03\x04", 4) || bytes.bytes < 30)
        return NULL;
    size_t name_bytes = bytes.data[26] | (size_t)bytes.data[27] << 8;
    presto_span name = presto_span_of(bytes.data + 30, bytes.bytes - 30);
    if (name.bytes > name_bytes)
        name.bytes = name_bytes;
    if (name.bytes >= 4 && stands_at(name, name.bytes - 4, ".npy", 4))
        return &npz_content;
    if (name.bytes >= 9 && stands_at(name, name.bytes - 9, "/data.pkl", 9))
        return &torch_content;
    if (presto_span_equal(name, presto_span_of_text("mimetype")))
        return contains(first_bytes(bytes, 128), "application/epub+zip") ? &epub_content
                                                                         : &office_content;
    for (size_t i = 0; i < sizeof office / sizeof office[0]; i++)
        if (has_word(name, 0, office[i]))
            return &office_content;
    return NULL;
}

/* A brand of AVIF among those of a container whose first brand only says that it holds images. */
static bool is_avif(presto_span bytes) {
    if (!stands_at(bytes, 4, "ftypmif1", 8) && !stands_at(bytes, 4, "ftypmsf1", 8))
        return false;
    size_t end = bytes.data[3] < bytes.bytes ? bytes.data[3] : bytes.bytes;
    for (size_t at = 16; at + 4 <= end; at += 4)
        if (stands_at(bytes, at, "avif", 4) || stands_at(bytes, at, "avis", 4))
            return true;
    return false;
}

/* "BM", two reserved words of 0, and a header of a size that exists. */
static bool is_bmp(presto_span bytes) {
    return stands_at(bytes, 0, "BM", 2) && bytes.bytes >= 18 &&
           stands_at(bytes, 6, "\0\0\0\0", 4) && stands_at(bytes, 15, "\0\0\0", 3) &&
           memchr("\x0c\x10\x28\x34\x38\x40\x6c\x7c", bytes.data[14], 8) != NULL;
}

/* P1 to P6 and white space, then a number or a comment. */
static bool is_pnm(presto_span bytes) {
    return bytes.bytes >= 4 && bytes.data[0] == 'P' && bytes.data[1] >= '1' &&
           bytes.data[1] <= '7' && (bytes.data[2] == '\n' || bytes.data[2] == ' ') &&
           ((bytes.data[3] >= '0' && bytes.data[3] <= '9') || bytes.data[3] == '#' ||
            (bytes.data[1] == '7' && bytes.data[3] == 'W'));
}

static bool is_safetensors(presto_span bytes) {
    return bytes.bytes >= 10 && stands_at(bytes, 5, "\0\0\0{\"", 5);
}

/* A frame of MP3: eleven set bits, layer III, a valid bit rate and sampling rate. Or two of AAC. */
static const presto__content *kind_of_mpeg(presto_span bytes) {
    if (bytes.bytes < 4 || bytes.data[0] != 0xff)
        return NULL;
    if ((bytes.data[1] & 0xe6) == 0xe2 && (bytes.data[2] & 0xf0) != 0xf0 &&
        (bytes.data[2] & 0x0c) != 0x0c)
        return &mpeg_content;
    if (bytes.bytes < 6 || (bytes.data[1] & 0xf6) != 0xf0)
        return NULL;
    size_t next =
        (size_t)(bytes.data[3] & 3) << 11 | (size_t)bytes.data[4] << 3 | bytes.data[5] >> 5;
    return next >= 7 && stands_at(bytes, next, (const char *)bytes.data, 2) ? &aac_content : NULL;
}

/* By its mark, or an old one by the checksum of its first header, in which the checksum is blank. */
static bool is_tar(presto_span bytes) {
    enum { HEADER = 512, AT = 148, DIGITS = 8 };
    size_t sum = 0, noted = 0;
    if (stands_at(bytes, 257, "ustar", 5))
        return true;
    if (bytes.bytes < HEADER)
        return false;
    for (size_t i = 0; i < HEADER; i++) {
        uint8_t byte = bytes.data[i];
        bool is_sum = i >= AT && i < AT + DIGITS;
        sum += is_sum ? ' ' : byte;
        if (is_sum && byte >= '0' && byte <= '7')
            noted = noted * 8 + (size_t)(byte - '0');
    }
    return sum == noted;
}

/* Signatures that stand in the file; text or not, these count. */
static const presto__content *kind_of_other(presto_span bytes) {
    if (is_avif(bytes))
        return &avif_content;
    if (is_bmp(bytes))
        return &bmp_content;
    if (is_safetensors(bytes))
        return &safetensors_content;
    if (stands_at(bytes, 0, "\xff\xff\xff\xff", 4) && stands_at(bytes, 6, "\0\0\x10\0\0\0", 6))
        return &arrow_content;
    return kind_of_zip(bytes);
}

/* A few letters, as text could begin. */
static bool is_word(const signature *known) {
    if (known->count + (known->second != NULL ? strlen(known->second) : 0) >= LETTERS_ENOUGH)
        return false;
    for (size_t i = 0; i < known->count; i++) {
        uint8_t byte = (uint8_t)known->bytes[i];
        if (byte >= 0x80 || is_binary_byte(byte))
            return false;
    }
    return true;
}

static bool is_text_format(presto__content_group group) {
    return group == PRESTO__CONTENT_MARKUP || group == PRESTO__CONTENT_POINTER ||
           group == PRESTO__CONTENT_DOCUMENT;
}

static bool fits(const signature *known, presto_span bytes) {
    return stands_at(bytes, known->at, known->bytes, known->count) &&
           (known->second == NULL ||
            stands_at(bytes, known->second_at, known->second, strlen(known->second)));
}

/* Not text of whatever encoding. */
static const presto__content *known_format(presto_span bytes) {
    const presto__content *other = kind_of_other(bytes);
    if (other != NULL)
        return other;
    bool may_be_text = !has_binary_byte(first_bytes(bytes, TEXT_BYTES));
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        const signature *known = &signatures[i];
        if (fits(known, bytes) &&
            (!may_be_text || is_text_format(known->content.group) || !is_word(known)))
            return &known->content;
    }
    return NULL;
}

/* Two or four bytes are no proof: text in an encoding of one byte may begin with them. */
static const presto__content *short_format(presto_span bytes) {
    if (bytes.bytes >= LEAST_BINARY_BYTES && !is_binary(bytes))
        return NULL;
    if (is_pnm(bytes) && has_binary_byte(first_bytes(bytes, BINARY_BYTES)))
        return &pnm_content;
    return stands_at(bytes, 0, "\xff\x0a", 2) ? &jxl_content : kind_of_mpeg(bytes);
}

const presto__content *presto__content_of(presto_span bytes) {
    if (is_tar(bytes)) /* its first bytes are a name */
        return &tar_content;
    const presto__content *markup = kind_of_markup(bytes);
    if (markup != NULL)
        return markup;
    if (is_marked_wide(bytes))
        return &wide_content;
    const presto__content *format = known_format(bytes);
    if (format == NULL)
        format = short_format(bytes);
    if (format != NULL)
        return format;
    return looks_like_text(bytes) ? kind_of_text(bytes) : NULL;
}

const presto__content *presto__content_no_text(presto_span bytes) {
    if (is_tar(bytes))
        return &tar_content;
    if (kind_of_markup(bytes) != NULL || is_marked_wide(bytes))
        return NULL;
    const presto__content *format = known_format(bytes);
    if (format != NULL)
        return format->group < PRESTO__CONTENT_IMAGE ? NULL : format;
    if (looks_like_json_lines(bytes))
        return &lines_content;
    if (!is_binary(bytes))
        return NULL;
    format = short_format(bytes);
    return format != NULL ? format : &binary_content;
}

/* ---- messages ---- */

static const char *advice_of(const presto__content *content, presto__content_group wanted) {
    if (content->advice != NULL)
        return content->advice;
    if (wanted == PRESTO__CONTENT_OTHER)
        return "name another file";
    if (content->group == wanted)
        return "convert it";
    if (content->group < PRESTO__CONTENT_IMAGE && wanted >= PRESTO__CONTENT_IMAGE)
        return "has its download failed, or is the path another one?";
    if (content->group == PRESTO__CONTENT_COLUMNS || content->group == PRESTO__CONTENT_DOCUMENT)
        return "export what it holds first";
    return "leave such files out, for example with source.match";
}

presto_status presto__content_refuse(const presto__content *content, presto__content_group wanted,
                                     const char *needed, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%s, but %s is needed: %s",
                       content->shown, needed, advice_of(content, wanted));
}
