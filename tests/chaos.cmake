# SPDX-License-Identifier: Apache-2.0
# Kills, signals, faults and damage while the programs run. What takes long is left out under sanitizers;
# PRESTO_CHAOS_MOMENTS=200 tries more random moments, PRESTO_CHAOS_ALL=1 every call instead of some of many.
set(chaos_tests kill signals consumer)
if(NOT PRESTO_SANITIZE MATCHES "thread")  # of processes, not of threads
  list(APPEND chaos_tests damage owners links)
endif()
if(PRESTO_SANITIZE)
  set(chaos_light 1)
else()
  set(chaos_light 0)
  list(APPEND chaos_tests faults machine machine_faults sweeps)
endif()
foreach(name ${chaos_tests})
  add_test(NAME chaos.${name}
           COMMAND ${PRESTO_SYSTEM_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/chaos/test_${name}.py)
  set_tests_properties(chaos.${name} PROPERTIES ENVIRONMENT
    "PRESTO_TOOLS=$<TARGET_FILE_DIR:presto-load>;PRESTO_PHOTOS=$<TARGET_FILE:presto-make-photos>;PRESTO_SANITIZE=${PRESTO_SANITIZE};PRESTO_CHAOS_LIGHT=${chaos_light};CC=${CMAKE_C_COMPILER}")
endforeach()
if(NOT PRESTO_SANITIZE)
  # Hundreds of short programs: busy processors make it some times as long.
  set_tests_properties(chaos.faults chaos.sweeps PROPERTIES TIMEOUT 900)
endif()

# A hostile round: everything of the loader that has threads, delayed at random by a seed. It sleeps for most of its time, so it
# counts as one program although it runs several. It is over within five minutes on any machine: on a very busy one it has no time
# for some tests, others with each seed.
if(PRESTO_SANITIZE)
  add_test(NAME chaos.hostile
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/chaos/hostile --build ${PROJECT_BINARY_DIR} --seconds 280)
  set_tests_properties(chaos.hostile PROPERTIES TIMEOUT 360
    ENVIRONMENT "PRESTO_PHOTOS=$<TARGET_FILE:presto-make-photos>;CC=${CMAKE_C_COMPILER}")
else()
  add_test(NAME chaos.rounds COMMAND ${PRESTO_SYSTEM_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/chaos/test_rounds.py)
  set_tests_properties(chaos.rounds PROPERTIES ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
endif()

# The same for every allocation and system call of our own code, where sanitizers can watch: the wrappers of records'
# fault injection under a conversion and a stream.
set(faulty loader_test_arrow_in loader_test_faults loader_test_source_lines loader_test_writer)
if(TARGET loader_test_source_hdf5_damage)
  list(APPEND faulty loader_test_source_hdf5_damage)
endif()
foreach(target ${faulty})
  target_sources(${target} PRIVATE unit/records/faults.c)
  foreach(function malloc calloc realloc aligned_alloc strdup pread pread64 write fsync rename close open open64 mmap mmap64)
    target_link_options(${target} PRIVATE -Wl,--wrap=${function})
  endforeach()
endforeach()
# A writer that hangs on its file.
target_link_options(loader_test_writers PRIVATE -Wl,--wrap=presto__shard_writer_open)
# Workers that stop at the worst time.
target_link_options(loader_test_walk_overtake PRIVATE -Wl,--wrap=presto__worker_walk -Wl,--wrap=presto__worker_draw
                                                         -Wl,--wrap=presto__cache_put)
