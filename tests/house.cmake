# SPDX-License-Identifier: Apache-2.0
# Tests of the house itself: layers, headers, symbols, installation.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_program(PRESTO_CXX NAMES g++ clang++ REQUIRED)
set(house ${CMAKE_CURRENT_SOURCE_DIR}/house)
if(NOT PRESTO_SANITIZE)  # they look at texts
  set(paper_build "")
  if(PRESTO_HAVE_JPEG AND PRESTO_HAVE_MYHTML AND PRESTO_HAVE_UCHARDET AND PRESTO_HAVE_SENTENCEPIECE AND
     PRESTO_HAVE_HDF5 AND PRESTO_HAVE_SNDFILE AND PRESTO_HAVE_MPG123 AND PRESTO_HAVE_EIGEN)
    set(paper_build ${PROJECT_BINARY_DIR})  # it has all seven pipelines
  endif()
  add_test(NAME house.paper COMMAND ${house}/paper.sh ${PROJECT_SOURCE_DIR} ${paper_build})
  set_tests_properties(house.paper PROPERTIES TIMEOUT 900)
  add_test(NAME house.layers COMMAND Python3::Interpreter ${house}/layers.py ${PROJECT_SOURCE_DIR})
  add_test(NAME house.one_name COMMAND Python3::Interpreter ${house}/one_name.py ${PROJECT_SOURCE_DIR})
  add_test(NAME house.exclusive COMMAND Python3::Interpreter ${house}/exclusive.py ${PROJECT_SOURCE_DIR})
  add_test(NAME house.documents COMMAND Python3::Interpreter ${house}/documents.py ${PROJECT_SOURCE_DIR})
  add_test(NAME house.limits COMMAND Python3::Interpreter ${house}/limits.py ${PROJECT_SOURCE_DIR})
  add_test(NAME house.peers COMMAND Python3::Interpreter ${house}/peers.py ${PROJECT_SOURCE_DIR})
  add_test(NAME house.missing COMMAND Python3::Interpreter ${house}/missing.py ${PROJECT_SOURCE_DIR} ${CMAKE_COMMAND})
  add_test(NAME house.headers
           COMMAND Python3::Interpreter ${house}/headers.py ${PROJECT_SOURCE_DIR} ${CMAKE_C_COMPILER} ${PRESTO_CXX})
  add_test(NAME house.rooms COMMAND Python3::Interpreter ${house}/rooms.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  add_test(NAME house.names
           COMMAND Python3::Interpreter ${house}/names.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  add_test(NAME house.symbols
           COMMAND Python3::Interpreter ${house}/symbols.py ${PROJECT_SOURCE_DIR} $<TARGET_FILE:presto_shared>)
  if(PRESTO_HAVE_JPEG)
    add_test(NAME house.abi
             COMMAND Python3::Interpreter ${house}/abi.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
                     $<TARGET_FILE:presto_shared> ${CMAKE_C_COMPILER})
    add_test(NAME house.snippets
             COMMAND Python3::Interpreter ${house}/snippets.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
                     $<TARGET_FILE:presto_shared> ${CMAKE_C_COMPILER})
  endif()
  add_test(NAME house.install
           COMMAND ${house}/install.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/examples/stream.c
                   ${CMAKE_C_COMPILER})
  if(PRESTO_BENCH AND PRESTO_HAVE_JPEG)
    add_test(NAME house.bench COMMAND ${house}/bench.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    set_tests_properties(house.bench PROPERTIES TIMEOUT 900)
  endif()
  if(PRESTO_HAVE_JPEG)
    add_test(NAME house.report COMMAND Python3::Interpreter ${house}/report.py $<TARGET_FILE_DIR:presto-sweep>)
    set_tests_properties(house.report PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  add_test(NAME house.commands
           COMMAND Python3::Interpreter ${house}/commands.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(house.commands PROPERTIES TIMEOUT 900)
endif()
