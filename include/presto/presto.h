/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Presto: training data, measured, stored and streamed.
 *
 * Which strategy?  presto_sweep_run()     measures strategies on a sample of the user's data.
 *                  presto_drift_check()   does it still fit new files?
 * Store it:        presto_convert()       writes a dataset: TFRecord shards and dataset.json;
 *                  presto_writer_add()    the same of samples that the program makes.
 * Stream it:       presto_loader_open_paths()  opens a dataset, TFRecord files of others, or raw
 *                                              files, and starts threads that read, check, decode
 *                                              and batch them;
 *                  presto_loader_next()        gives the next batch, until PRESTO_END;
 *                  presto_batch_release()      takes it back;
 *                  presto_loader_free()        ends the stream.
 * Look into it:    presto_info_collect(), presto_verify_paths(), presto_repair_file().
 *
 * What a stream is made of, from the bottom to the top. presto_stream_open() puts it together.
 *
 *   presto_span, presto_tensor     bytes; a typed array in them. Both borrow.
 *   presto_pipeline                a source and an ordered list of steps, from YAML or by name.
 *   presto_dataset                 shards, and what dataset.json says of them.
 *   presto_source                  a numbered sequence of samples: a dataset's records, or files.
 *   presto_plan                    those steps of a pipeline that remain, ready to run.
 *   presto_loader, presto_batch    threads, order, prefetch, caches; rows that belong together.
 *
 * Rules for all functions:
 *
 *   Errors    A function that can fail returns a presto_status and fills the caller's presto_error,
 *             which may be NULL (presto/status.h). On failure outputs are as they were. Nothing
 *             prints, exits or keeps global state.
 *   Options   NULL means the defaults, in every function that takes options. A program that sets
 *             some calls presto_..._options_defaults() first. This also sets struct_bytes, by which
 *             the library sees how many fields the program knows: fields are only added at the end,
 *             or in the reserved room of a group (a struct within the options, whose size never
 *             changes). So a program runs with a later library without being compiled again. One
 *             that sets a field which an older library lacks gets PRESTO_ERR_UNSUPPORTED.
 *   Results   A struct of the caller's that a function fills has struct_bytes, too, and grows in
 *             the same way. The function sets it: it is inline, so that it knows the program's
 *             size, and calls its twin presto_..._sized() in the library, where struct_bytes is an
 *             input. The caller has nothing to do. Elements of arrays have reserved room, which is
 *             0. What the library hands out by a pointer may have more fields than the program
 *             knows.
 *   Ends      presto_..._free(), _done(), _close() and _release() take NULL and cannot fail.
 *             _free() is for what the library allocated; _done() and _close() are for what the
 *             caller's struct holds, which is empty and usable afterwards; _release() gives back.
 *   Owners    What a function returns as a const pointer is borrowed from the object that was asked
 *             and lives as long as it. What is given to a function is copied or used during the
 *             call only, unless its header says that it is borrowed for longer.
 *   Counts    Samples, records and bytes in files are uint64_t, on every machine. Sizes and numbers
 *             of things in memory are size_t. Names say the unit: _bytes, _ns, _s, _samples.
 *   Threads   Objects that are immutable once made (pipelines, plans, batches) may be used by any
 *             number of threads; the others by one at a time, unless their header says more.
 *
 * Each header that is included here compiles alone, too. The other headers (shards, codecs,
 * Examples, own steps) are for those who need one part without the rest.
 */
#ifndef PRESTO_PRESTO_H
#define PRESTO_PRESTO_H

#include <presto/version.h>

#include <presto/processors.h>
#include <presto/span.h>
#include <presto/status.h>
#include <presto/tensor.h>

#include <presto/pipeline.h>

#include <presto/dataset.h>
#include <presto/filesystem.h>
#include <presto/source.h>

#include <presto/loader.h>
#include <presto/mix.h>
#include <presto/out.h>
#include <presto/ring.h>
#include <presto/stream.h>

#include <presto/arrow.h>
#include <presto/convert.h>
#include <presto/inspect.h>
#include <presto/sweep.h>
#include <presto/writer.h>

#include <presto/drift.h>

#endif
