# SPDX-License-Identifier: Apache-2.0
# Tests against the programs that our users use beside us. They prove formats and examples, not memory, so the optimized
# build runs them alone.
if(PRESTO_SANITIZE)
  # Only threads of Python that share a loader and a dataset, with the sanitizer's library before Python's own memory.
  if(TARGET presto_native AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    string(REGEX REPLACE ",.*" "" sanitizer ${PRESTO_SANITIZE})
    string(REPLACE "thread" "libtsan.so" runtime ${sanitizer})
    string(REPLACE "address" "libasan.so" runtime ${runtime})
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=${runtime} OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    add_test(NAME live.python_threads
             COMMAND ${PRESTO_SYSTEM_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/python/test_abuse.py Abuse.test_threads_share_a_loader
                     Abuse.test_threads_share_a_dataset Abuse.test_close_ends_a_wait_in_another_thread)
    set_tests_properties(live.python_threads PROPERTIES ENVIRONMENT
      "LD_PRELOAD=${runtime};ASAN_OPTIONS=detect_leaks=0;PYTHONPATH=${PROJECT_BINARY_DIR}/python;PRESTO_TOOLS=$<TARGET_FILE_DIR:presto-load>;PRESTO_PHOTOS=$<TARGET_FILE:presto-make-photos>")
  endif()
  return()
endif()
set(live ${CMAKE_CURRENT_SOURCE_DIR}/live)
set(live_tools $<TARGET_FILE_DIR:presto-load> $<TARGET_FILE:presto-make-photos>)
set(venv_python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
if(EXISTS ${venv_python})
  add_test(NAME live.tensorflow
           COMMAND ${venv_python} ${live}/tensorflow_both_ways.py ${live_tools} ${CMAKE_CURRENT_SOURCE_DIR}/golden)
  if(PRESTO_HAVE_HDF5)
    add_test(NAME live.signals COMMAND ${venv_python} ${live}/signals.py $<TARGET_FILE_DIR:presto-load>)
  endif()
  add_test(NAME live.tables COMMAND ${venv_python} -B ${live}/tables.py $<TARGET_FILE_DIR:presto-load> ${PROJECT_SOURCE_DIR}/examples)
  add_test(NAME live.manifests COMMAND ${venv_python} -B ${live}/manifests.py $<TARGET_FILE_DIR:presto-load>)
  add_test(NAME live.lines COMMAND ${venv_python} -B ${live}/lines.py $<TARGET_FILE_DIR:presto-load>)
  add_test(NAME live.tfrecord_source COMMAND ${venv_python} -B ${live}/tfrecord_source.py ${live_tools})
  add_test(NAME live.pipelines COMMAND ${venv_python} ${live}/pipelines.py ${live_tools})
  add_test(NAME live.image_steps COMMAND ${venv_python} -B ${live}/image_steps.py $<TARGET_FILE_DIR:presto-load>
           ${PROJECT_SOURCE_DIR}/examples $<TARGET_FILE:presto-make-photos>)
  if(PRESTO_HAVE_SNDFILE AND PRESTO_HAVE_MPG123 AND PRESTO_HAVE_SOXR AND PRESTO_HAVE_EIGEN)
    add_test(NAME live.speech COMMAND ${venv_python} -B ${live}/speech.py $<TARGET_FILE_DIR:presto-load>)
  endif()
  if(TARGET presto_native)
    set(python_tests reading choices newcomers ending notebook state mix errors abuse arrow arrow_writing npy_stream shm torch jax tf huggingface examples types writing parts step sweeping urls filesystem)
    foreach(name ${python_tests})
      # PyTorch is a package of the system.
      set(python ${venv_python})
      if(name STREQUAL torch)
        set(python ${PRESTO_SYSTEM_PYTHON})
      endif()
      add_test(NAME live.python_${name} COMMAND ${python} -B ${CMAKE_CURRENT_SOURCE_DIR}/python/test_${name}.py)
      set_tests_properties(live.python_${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900 ENVIRONMENT
        "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PRESTO_TORCH_PYTHON=${PRESTO_SYSTEM_PYTHON};PRESTO_TOOLS=$<TARGET_FILE_DIR:presto-load>;PRESTO_PHOTOS=$<TARGET_FILE:presto-make-photos>")
    endforeach()
    add_test(NAME live.foreign_features COMMAND ${venv_python} -B ${live}/foreign_features.py)
    set_tests_properties(live.foreign_features PROPERTIES ENVIRONMENT
      "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PRESTO_TOOLS=$<TARGET_FILE_DIR:presto-load>")
    add_test(NAME live.geometry COMMAND ${venv_python} -B ${live}/geometry.py ${CMAKE_CURRENT_SOURCE_DIR}/golden)
    set_tests_properties(live.geometry PROPERTIES ENVIRONMENT PYTHONPATH=${PROJECT_BINARY_DIR}/python)
    add_test(NAME live.python_wheel
             COMMAND ${venv_python} -B ${CMAKE_CURRENT_SOURCE_DIR}/python/test_wheel.py ${PROJECT_SOURCE_DIR}
                     ${PROJECT_BINARY_DIR} ${PRESTO_SYSTEM_PYTHON})
  endif()
  add_test(NAME live.results_schema
           COMMAND ${venv_python} -B ${live}/results_schema.py $<TARGET_FILE_DIR:presto-load>
           ${PROJECT_SOURCE_DIR}/docs/results.schema.json)
  add_test(NAME live.drift COMMAND ${venv_python} -B ${live}/drift.py $<TARGET_FILE_DIR:presto-load>)
  add_test(NAME live.tars COMMAND ${venv_python} -B ${live}/tars.py)
  set_tests_properties(live.tars PROPERTIES ENVIRONMENT
    "PRESTO_TOOLS=$<TARGET_FILE_DIR:presto-load>;PRESTO_PHOTOS=$<TARGET_FILE:presto-make-photos>")
  add_test(NAME live.arrow_stream COMMAND ${venv_python} -B ${live}/arrow_stream.py)
  set_tests_properties(live.arrow_stream PROPERTIES ENVIRONMENT
    "PRESTO_TOOLS=$<TARGET_FILE_DIR:presto-load>;PRESTO_PHOTOS=$<TARGET_FILE:presto-make-photos>")
  add_test(NAME live.own_steps COMMAND ${venv_python} -B ${live}/own_steps.py $<TARGET_FILE_DIR:presto-load> ${PROJECT_SOURCE_DIR})
  add_executable(sign_requests ${live}/sign_requests.c)
  target_include_directories(sign_requests PRIVATE ${PROJECT_SOURCE_DIR}/storage)
  target_link_libraries(sign_requests PRIVATE presto_base presto_storage)
  add_test(NAME live.sigv4 COMMAND ${venv_python} -B ${live}/sigv4.py $<TARGET_FILE:sign_requests>)
  set_tests_properties(live.sigv4 PROPERTIES SKIP_RETURN_CODE 77)
  add_executable(resolve_keys ${live}/resolve_keys.c)
  target_include_directories(resolve_keys PRIVATE ${PROJECT_SOURCE_DIR}/storage)
  target_link_libraries(resolve_keys PRIVATE presto_base presto_storage)
  add_test(NAME live.keys COMMAND ${venv_python} -B ${live}/keys.py $<TARGET_FILE:resolve_keys>)
  set_tests_properties(live.keys PROPERTIES SKIP_RETURN_CODE 77)
  add_test(NAME live.codecs COMMAND ${venv_python} ${live}/codecs.py ${live_tools})
  if(PRESTO_HAVE_SENTENCEPIECE)
    add_test(NAME live.tokenizers
             COMMAND ${venv_python} -B ${live}/tokenizers.py $<TARGET_FILE_DIR:presto-load> ${CMAKE_CURRENT_SOURCE_DIR}/golden)
  endif()
else()
  message(STATUS "build/venv is not there (scripts/setup --tests makes it): no live tests against TensorFlow")
endif()
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torchvision'))"
                RESULT_VARIABLE no_torchvision)
if(no_torchvision)
  message(STATUS "${Python3_EXECUTABLE} has no torchvision (scripts/setup --tests installs it): no live test against it")
else()
  add_test(NAME live.torchvision COMMAND ${Python3_EXECUTABLE} -B ${live}/torchvision_steps.py
           $<TARGET_FILE_DIR:presto-load> ${PROJECT_SOURCE_DIR}/examples)
endif()
add_test(NAME live.train
         COMMAND ${live}/train.sh ${live_tools} ${PROJECT_SOURCE_DIR}/examples ${Python3_EXECUTABLE})
