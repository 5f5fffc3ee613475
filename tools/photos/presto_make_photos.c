/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presto-make-photos: makes a folder of JPEGs or PNGs that behave like photos, to try the other
 * programs on. photo_scene.h makes the pictures, photo_encode.h the files.
 *
 * Invariant: the bytes of a file depend on the options (not on the threads) and on libjpeg or
 * libspng only.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <getopt.h>

#include "../cli/cli.h"
#include "photo_encode.h"

enum {
    MAX_COUNT = 100000, /* the five digits of a file name, so that names sort */
    MAX_CLASSES = 100,  /* likewise */
    MIN_SIDE = 16,
    MAX_SIDE = 4096,
    MAX_THREADS = 256,
    NAME_BYTES = 64 /* room for "/class-NN/photo-NNNNN.jpg.part" */
};

typedef struct photo_options {
    int count, classes, seed, threads;
    photo_format format;
    const char *folder;
    bool quiet, json;
} photo_options;

static void set_defaults(void *job) {
    unsigned cpus = presto_processor_count();
    *(photo_options *)job =
        (photo_options){.count = 1000,
                        .classes = 10,
                        .seed = 1,
                        .threads = (int)(cpus < MAX_THREADS ? cpus : MAX_THREADS),
                        .format = {.width = 500, .height = 375, .quality = 90}};
}

/* The names of photo_format.is_png16. */
static const cli_value formats[] = {{"jpeg", 0}, {"png16", 1}, {NULL, 0}};

static const cli_option options[] = {
    CLI_GROUP("What"),
    {'n', "count", "N", "photos to make", CLI_FIELD,
     CLI_NUMBER(photo_options, count, 1, MAX_COUNT)},
    {'c', "classes", "N", "class folders; the photos are spread evenly", CLI_FIELD,
     CLI_NUMBER(photo_options, classes, 1, MAX_CLASSES)},
    {0, "width", "N", "pixels", CLI_FIELD,
     CLI_NUMBER(photo_options, format.width, MIN_SIDE, MAX_SIDE)},
    {0, "height", "N", "pixels", CLI_FIELD,
     CLI_NUMBER(photo_options, format.height, MIN_SIDE, MAX_SIDE)},
    {0, "quality", "N", "JPEG quality, 1 to 100", CLI_FIELD,
     CLI_NUMBER(photo_options, format.quality, 1, 100)},
    {0, "format", "NAME", "jpeg, or png16 (RGB of 16 bits)", CLI_FIELD,
     CLI_CHOICE(photo_options, format.is_png16, formats)},
    {0, "seed", "N", "another seed makes other photos", CLI_FIELD,
     CLI_NUMBER(photo_options, seed, 0, INT_MAX)},

    CLI_GROUP("How"),
    {'o', "output", "DIR", "folder to fill; may hold an earlier run's photos and nothing else",
     NULL, CLI_PATH(photo_options, folder)},
    {'j', "threads", "N", "worker threads; 0 = run inline", "number of CPUs",
     CLI_NUMBER(photo_options, threads, 0, MAX_THREADS)},
    CLI_COMMON_OPTIONS(photo_options, "print the closing figures as a JSON object on stdout", 0),
};

static const cli_program self = {
    "presto-make-photos",
    "[OPTIONS] -o DIR",
    "Make a corpus of JPEGs or PNGs that behave like photos, in class folders, to try the other "
    "programs on.",
    options,
    "The same options make the same bytes, whatever the number of threads.",
    sizeof(photo_options),
    set_defaults,
    .example = "presto-make-photos -n 200 -o photos",
    .most_exit = CLI_USAGE,
};

/* ---- One photo ---- */

/* Existing files are not followed or written through. Files of a killed run are removed. */
static FILE *create_file(const char *path) {
    (void)unlink(path);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *stream = file >= 0 ? fdopen(file, "wb") : NULL;
    if (stream == NULL && file >= 0)
        close(file);
    return stream;
}

/* Writes under a name that no reader takes for a photo, then renames, so a file with its final
 * name is complete. No fsync: after a power cut, photos are made again in seconds. */
static presto_status write_photo(scene *picture, const photo_options *o, int number,
                                 presto_error *err) {
    char message[PHOTO_MESSAGE_BYTES] = "";
    char path[PATH_MAX];
    char part[PATH_MAX + NAME_BYTES];
    snprintf(path, sizeof path, "%s/class-%02d/photo-%05d.%s", o->folder, number % o->classes,
             number, photo_ending(&o->format));
    snprintf(part, sizeof part, "%s.part", path);
    FILE *out = create_file(part);
    if (out == NULL)
        return presto_fail_errno(err, errno, part, "cannot create");
    errno = 0;
    bool written = photo_encode(picture, &o->format, out, message);
    int reason = errno;
    if (fclose(out) != 0 && written) {
        written = false;
        reason = errno;
    }
    if (written && rename(part, path) == 0)
        return PRESTO_OK;
    reason = written ? errno : reason;
    unlink(part);
    if (reason != 0)
        return presto_fail_errno(err, reason, path, "cannot write");
    presto_error_set(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "%s", message);
    presto_error_set_file(err, path);
    return PRESTO_ERR_IO;
}

/* ---- The folder ---- */

/* Would this run write an entry of this name: a class folder (if class_number < 0), or a photo
 * of that class, complete or left by a killed run? Hidden files are not photos. */
static bool is_expected(const photo_options *o, int class_number, const char *name) {
    char expected[NAME_BYTES];
    long number = strlen(name) > 6 ? strtol(name + 6, NULL, 10) : -1; /* "class-" or "photo-" */
    if (name[0] == '.')
        return true;
    if (number < 0 || number >= o->count)
        return false;
    if (class_number < 0) {
        snprintf(expected, sizeof expected, "class-%02ld", number);
        return number < o->classes && strcmp(name, expected) == 0;
    }
    int length =
        snprintf(expected, sizeof expected, "photo-%05ld.%s", number, photo_ending(&o->format));
    return number % o->classes == class_number && strncmp(name, expected, (size_t)length) == 0 &&
           (name[length] == '\0' || strcmp(name + length, ".part") == 0);
}

/* Makes the folder. If it exists, it may hold only what this run writes. Anything else, such as
 * the rest of a larger corpus, would be taken for data of this corpus. */
static bool prepare_folder(const photo_options *o, int class_number) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, class_number < 0 ? "%s" : "%s/class-%02d", o->folder, class_number);
    DIR *folder = mkdir(path, 0777) == 0 || errno == EEXIST ? opendir(path) : NULL;
    if (folder == NULL) {
        cli_message("%s: %s", path, strerror(errno));
        return false;
    }
    bool clean = true;
    for (struct dirent *entry; clean && (entry = readdir(folder)) != NULL;) {
        clean = is_expected(o, class_number, entry->d_name);
        if (!clean)
            cli_message("%s/%s: not of this corpus; choose an empty folder", path, entry->d_name);
    }
    closedir(folder);
    return clean;
}

/* ---- Workers ---- */

/* On the stack of make_photos, which joins the threads before it returns; main has the options. */
typedef struct photo_job {
    const photo_options *options;
    atomic_int next_number;
    atomic_int done;
    atomic_bool stopped; /* all threads stop */
    pthread_mutex_t lock;
    bool failed;           /* guarded by lock */
    presto_error err;      /* likewise: the first failure */
    cli_progress progress; /* of the thread that prints */
} photo_job;

static void fail_job(photo_job *j, const presto_error *err) {
    pthread_mutex_lock(&j->lock);
    if (!j->failed)
        j->err = *err;
    j->failed = true;
    pthread_mutex_unlock(&j->lock);
    atomic_store(&j->stopped, true);
}

/* A picture does not depend on its worker, so any free worker takes the next number. */
static void make_pictures(photo_job *j, bool talks) {
    const photo_options *o = j->options;
    presto_error err;
    scene *picture = scene_new(o->format.width, o->format.height);
    if (picture == NULL) {
        presto_fail_memory(&err, (uint64_t)o->format.width * (uint64_t)o->format.height);
        fail_job(j, &err);
    }
    int number;
    while (!atomic_load(&j->stopped) &&
           (number = atomic_fetch_add(&j->next_number, 1)) < o->count) {
        scene_compose(picture, o->seed, number, number % o->classes, o->classes);
        if (write_photo(picture, o, number, &err) < 0)
            fail_job(j, &err);
        int done = atomic_fetch_add(&j->done, 1) + 1;
        cli_progress_state state = {"photos", (uint64_t)done, (uint64_t)o->count, 0, NULL, false};
        if (talks)
            cli_progress_show(&j->progress, &state);
        if (cli_interrupted())
            atomic_store(&j->stopped, true);
    }
    scene_free(picture);
}

static void *work(void *job) {
    make_pictures(job, false);
    return NULL;
}

/* The calling thread works, too, so it is no failure if fewer threads start than asked for, or
 * none. */
static int make_photos(const photo_options *o) {
    photo_job j = {.options = o, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t helpers[MAX_THREADS];
    int started = 0;
    for (int i = -1; i < o->classes && i < o->count; i++)
        if (!prepare_folder(o, i))
            return CLI_FAILED;
    cli_catch_signals();
    cli_progress_start(&j.progress, o->quiet);
    while (started < o->threads - 1 && started < o->count - 1 &&
           pthread_create(&helpers[started], NULL, work, &j) == 0)
        started++;
    make_pictures(&j, true);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
    cli_progress_end(&j.progress);
    if (j.failed)
        return cli_error(&j.err);
    return atomic_load(&j.stopped) ? CLI_FAILED : CLI_DONE;
}

/* ---- Command line ---- */

static void parse_command_line(photo_options *o, int argc, char **argv) {
    cli_parse(argc, argv, o);
    if (o->format.is_png16 && !photo_has_png())
        cli_usage("--format: this program was built without libspng");
    if (optind < argc)
        cli_usage("unexpected argument '%s'", argv[optind]);
    if (o->folder == NULL)
        cli_usage("--output is missing");
    if (strlen(o->folder) >= PATH_MAX - NAME_BYTES)
        cli_usage("--output: the name is too long");
}

static int print_json(const photo_options *o, double wall_s) {
    json_t *object = cli_json_new();
    cli_json_set(object, "folder", cli_json_text(o->folder));
    cli_json_set(object, "photos", json_integer(o->count));
    cli_json_set(object, "classes", json_integer(o->classes < o->count ? o->classes : o->count));
    cli_json_set(object, "width", json_integer(o->format.width));
    cli_json_set(object, "height", json_integer(o->format.height));
    cli_json_set(object, "wall_s", cli_json_real(wall_s));
    return cli_print_json(object);
}

static void print_result(const photo_options *o, double wall_s) {
    char photos[PRESTO_TEXT_BYTES], classes[PRESTO_TEXT_BYTES], time[PRESTO_TEXT_BYTES];
    cli_message("%s: %s of %d x %d pixels, %s, in %s", o->folder,
                presto_format_things((uint64_t)o->count, "photo", photos), o->format.width,
                o->format.height,
                presto_format_things((uint64_t)(o->classes < o->count ? o->classes : o->count),
                                     "class folder", classes),
                presto_format_seconds(wall_s, time));
}

int main(int argc, char **argv) {
    photo_options o = {0};
    cli_start(&self);
    parse_command_line(&o, argc, argv);
    uint64_t started_ns = cli_now_ns();
    int code = make_photos(&o);
    double wall_s = (double)(cli_now_ns() - started_ns) / 1e9;
    if (code == CLI_DONE && !o.quiet)
        print_result(&o, wall_s);
    if (code == CLI_DONE && o.json)
        code = print_json(&o, wall_s);
    cli_reraise();
    return code;
}
