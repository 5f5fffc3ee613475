# SPDX-License-Identifier: Apache-2.0
# Fault injection: what records/ calls goes through tests/unit/records/faults.c, where the k-th call fails.
target_sources(records_test_faults PRIVATE unit/records/faults.c)
foreach(function malloc calloc realloc aligned_alloc strdup pread pread64 write fsync rename close open open64 mmap mmap64)
  target_link_options(records_test_faults PRIVATE -Wl,--wrap=${function})
endforeach()
# How many of the open files are looked at to choose one that is closed.
target_link_options(records_test_shard_threads PRIVATE -Wl,--wrap=pthread_mutex_trylock)
