# SPDX-License-Identifier: Apache-2.0
# The programs as a user runs them: each file of tests/cli is one test, with folders of its own, so that
# they may run at once. They need NumPy, which the system's Python has (scripts/setup).
find_program(PRESTO_SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(PRESTO_SYSTEM_PYTHON python3 REQUIRED)
# A new one needs no line here, unless it takes a library.
set(cli_tests "")
file(GLOB cli_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/cli ${CMAKE_CURRENT_SOURCE_DIR}/cli/test_*.py)
foreach(file ${cli_files})
  string(REGEX REPLACE "^test_(.*)\\.py$" "\\1" name ${file})
  list(APPEND cli_tests ${name})
endforeach()
list(REMOVE_ITEM cli_tests text_steps)  # below
if(NOT PRESTO_HAVE_HDF5)
  list(REMOVE_ITEM cli_tests hdf5)
endif()
if(NOT (PRESTO_HAVE_MYHTML AND PRESTO_HAVE_UCHARDET))
  list(REMOVE_ITEM cli_tests text content)
endif()
if(NOT (PRESTO_HAVE_SENTENCEPIECE AND PRESTO_HAVE_SNDFILE))
  list(REMOVE_ITEM cli_tests content)
endif()
if(NOT (PRESTO_HAVE_SNDFILE AND PRESTO_HAVE_MPG123 AND PRESTO_HAVE_EIGEN))
  list(REMOVE_ITEM cli_tests speech)
endif()
# What may be recommended is a matter of figures, and of the same code in unit.profile.
if(PRESTO_SANITIZE)
  list(REMOVE_ITEM cli_tests sweep_decide)
endif()
# Threads of the programs in each of their ways; what the others prove is the same without TSan. Threads of a sweep:
# unit.profile.
if(PRESTO_SANITIZE MATCHES "thread")
  set(with_threads write load storage remote mix pack state cache hostile own_steps augment late_end text speech)
  foreach(name ${cli_tests})
    if(NOT name IN_LIST with_threads)
      list(REMOVE_ITEM cli_tests ${name})
    endif()
  endforeach()
  # Of these, what starts threads in another way than the rest. chaos.kill kills and resumes conversions under TSan, too.
  function(cli_only name class)
    list(TRANSFORM ARGN PREPEND ${class}.test_)
    set(cli_${name}_only ${ARGN} PARENT_SCOPE)
  endfunction()
  cli_only(write Write the_number_of_threads_changes_no_byte every_codec_and_file_compression_gives_the_same_samples_back
           shards_of_a_size auto_threads_store_the_same interrupted_it_cleans_up_and_dies_of_the_signal)
  cli_only(load Load the_number_of_threads_changes_no_byte full_and_block_shuffles_are_the_same_for_all_threads
           threads_are_found_and_change_nothing a_state_is_kept_while_the_stream_runs a_cache_changes_no_byte
           ranks_are_disjoint_and_complete drop_last_leaves_out_the_partial_batch stats_count_what_was_delivered
           the_verdict_names_the_consumer_if_it_is_slow_and_never_otherwise progress_is_one_line_that_fits_the_terminal
           a_reader_that_closes_the_pipe_ends_it_quietly a_full_output_is_an_error signals_end_it_even_when_nobody_reads)
  cli_only(storage Storage it_changes_no_byte_and_counts_reads archives_are_read_from_it
           many_archives_are_looked_at_at_once_and_put_in_order many_files_of_records_are_looked_at_at_once
           auto_threads_are_more_than_processors_where_they_wait a_signal_ends_a_wait
           each_cold_epoch_of_a_dataset_opens_its_files)
  cli_only(pack Pack the_files_are_the_same_for_any_threads rows_are_those_of_numpy a_killed_run_goes_on_with_equal_bytes)
  cli_only(state State skip_gives_the_rest_of_the_stream_whatever_its_order skip_goes_with_batches_and_limit
           skip_comes_before_the_state_which_is_checked_and_written a_state_goes_on_with_the_recoded_dataset_and_back)
  cli_only(cache DiskCache the_stream_is_the_same_and_a_second_run_computes_nothing all_threads_fill_it_alike
           ranks_share_it_and_a_state_goes_on_in_it it_stays_within_its_limit_and_keeps_what_fits)
  cli_only(hostile ManyFeatures of_batches of_rows_that_have_none_in_common of_a_mix none_is_lost)
  cli_only(speech Speech threads_ranks_and_resumed_streams_deliver_the_same)
endif()
# Plugins, as users build them: with Presto's headers and without its library.
foreach(plugin invert old taken stuck)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/cli/plugins/${plugin}.c)
  if(plugin STREQUAL invert)
    set(source ${PROJECT_SOURCE_DIR}/examples/plugin/invert.c)
  endif()
  add_library(plugin_${plugin} MODULE ${source})
  set_target_properties(plugin_${plugin} PROPERTIES PREFIX "")
  target_include_directories(plugin_${plugin} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(plugin_${plugin} PRIVATE presto_warnings)
endforeach()
foreach(name ${cli_tests})
  add_test(NAME cli.${name}
           COMMAND ${PRESTO_SYSTEM_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/test_${name}.py ${cli_${name}_only})
  set_tests_properties(cli.${name} PROPERTIES ENVIRONMENT
    "PRESTO_TOOLS=$<TARGET_FILE_DIR:presto-load>;PRESTO_PHOTOS=$<TARGET_FILE:presto-make-photos>;PRESTO_PLUGIN=$<TARGET_FILE:plugin_invert>;PRESTO_SANITIZE=${PRESTO_SANITIZE}")
endforeach()
if(NOT PRESTO_SANITIZE)  # what the programs write, to the byte: here only that all runs end as they should
  add_test(NAME cli.recorded COMMAND ${PRESTO_SYSTEM_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/recorded/record ${PROJECT_BINARY_DIR})
endif()
if(PRESTO_HAVE_SENTENCEPIECE)
  add_test(NAME cli.text_steps COMMAND ${PRESTO_SYSTEM_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/test_text_steps.py)
  set_tests_properties(cli.text_steps PROPERTIES ENVIRONMENT
    "PRESTO_TOOLS=$<TARGET_FILE_DIR:presto-load>;PRESTO_SANITIZE=${PRESTO_SANITIZE}")
endif()
foreach(name pipelines sweep sweep_resume)  # hundreds of runs of the programs
  if(TEST cli.${name})
    set_tests_properties(cli.${name} PROPERTIES TIMEOUT 900)
  endif()
endforeach()
