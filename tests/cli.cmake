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
# Threads of the programs in each of their ways; what the others prove is the same without TSan. Threads of a sweep:
# unit.profile.
if(PRESTO_SANITIZE MATCHES "thread")
  set(with_threads write load storage mix pack state cache hostile own_steps augment late_end text speech)
  foreach(name ${cli_tests})
    if(NOT name IN_LIST with_threads)
      list(REMOVE_ITEM cli_tests ${name})
    endif()
  endforeach()
  set(cli_cache_only DiskCache.test_the_stream_is_the_same_and_a_second_run_computes_nothing DiskCache.test_all_threads_fill_it_alike
                     DiskCache.test_ranks_share_it_and_a_state_goes_on_in_it DiskCache.test_it_stays_within_its_limit_and_keeps_what_fits)
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
