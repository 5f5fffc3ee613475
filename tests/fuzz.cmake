# SPDX-License-Identifier: Apache-2.0
# Fuzz targets. Every build replays tests/fuzz/corpus/<target>/ through them as a test; with clang and PRESTO_FUZZ=ON each
# is a libFuzzer program as well (fuzz-<target>), compiled with CRC checks opened:
#   cmake -B build/fuzz -DCMAKE_C_COMPILER=clang -DPRESTO_FUZZ=ON -DPRESTO_SANITIZE=address,undefined
#   build/fuzz/tests/fuzz-frame -max_total_time=600 tests/fuzz/corpus/frame

# presto_fuzz(target SOURCE file CORPUS folders... LIBS libraries... DEFINES definitions...)
# Corpus folders are below tests/; they hold what tests/fuzz/make_corpus.py made and what fuzzing has found since.
function(presto_fuzz name)
  cmake_parse_arguments(FUZZ "" "SOURCE" "CORPUS;LIBS;DEFINES" ${ARGN})
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/${FUZZ_SOURCE})
  list(TRANSFORM FUZZ_CORPUS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE corpus)
  add_executable(replay-${name} ${source} fuzz/replay.c)
  target_compile_definitions(replay-${name} PRIVATE ${FUZZ_DEFINES})
  target_link_libraries(replay-${name} PRIVATE ${FUZZ_LIBS})
  add_test(NAME fuzz.${name} COMMAND replay-${name} ${corpus})
  if(PRESTO_FUZZ)
    add_executable(fuzz-${name} ${source})
    target_compile_definitions(fuzz-${name} PRIVATE ${FUZZ_DEFINES})
    target_link_libraries(fuzz-${name} PRIVATE ${FUZZ_LIBS})
    target_link_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()

# A target that needs nothing but records/.
function(presto_fuzz_records name source corpus)
  presto_fuzz(${name} SOURCE ${source} CORPUS fuzz/corpus/${corpus} LIBS presto_base presto_proto presto_records
              DEFINES ${ARGN})
endfunction()

presto_fuzz_records(frame fuzz_frame.c frame)
presto_fuzz_records(example fuzz_example.c example)
presto_fuzz_records(tensor-proto fuzz_tensor_proto.c tensor-proto)
presto_fuzz_records(index fuzz_index.c index)
presto_fuzz_records(dataset fuzz_dataset.c dataset)
presto_fuzz_records(text fuzz_text.c text)
foreach(codec zlib gzip zstd lz4 snappy blosc-lz4 blosc-zstd)
  presto_fuzz_records(codec-${codec} fuzz_codec.c codec-${codec} FUZZ_CODEC="${codec}")
endforeach()

# A target that sees the headers of a folder above records/ and steps/.
function(presto_fuzz_internal name folder)
  presto_fuzz(${name} SOURCE fuzz_${name}.c CORPUS fuzz/corpus/${name} LIBS presto_base presto_proto presto_records presto_steps
              ${ARGN})
  foreach(target replay-${name} fuzz-${name})
    if(TARGET ${target})
      target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/${folder})
    endif()
  endforeach()
endfunction()

foreach(target cache labels state progress tables values)
  presto_fuzz_internal(${target} loader presto_loader)
endforeach()
foreach(target strategy journal)
  presto_fuzz_internal(${target} profile presto_loader presto_profile)
endforeach()
if(PRESTO_HAVE_HDF5)
  presto_fuzz_internal(hdf5 loader presto_loader)
endif()
presto_fuzz_internal(png steps PkgConfig::ZLIB)
presto_fuzz_internal(exif steps)
presto_fuzz(pipeline SOURCE fuzz_pipeline.c CORPUS ../pipelines LIBS presto_base presto_steps)
presto_fuzz(decode-image SOURCE fuzz_decode_image.c CORPUS golden/images LIBS presto_base presto_steps)
presto_fuzz(tokenizer SOURCE fuzz_tokenizer.c CORPUS fuzz/corpus/tokenizer LIBS presto_base presto_steps)
presto_fuzz(table SOURCE fuzz_table.c CORPUS fuzz/corpus/table LIBS presto_base presto_steps)
if(PRESTO_HAVE_MYHTML AND PRESTO_HAVE_UCHARDET)
  presto_fuzz(extract-text SOURCE fuzz_extract_text.c CORPUS golden/html fuzz/corpus/extract-text LIBS presto_base presto_steps)
endif()
if(PRESTO_HAVE_SENTENCEPIECE)
  presto_fuzz(sentencepiece SOURCE fuzz_sentencepiece.c CORPUS fuzz/corpus/sentencepiece LIBS presto_base presto_steps)
  presto_fuzz(bpe-encode SOURCE fuzz_bpe_encode.c CORPUS fuzz/corpus/bpe-encode LIBS presto_base presto_steps
              DEFINES PRESTO_TOKENIZERS_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden/tokenizers")
endif()
foreach(name table tokenizer sentencepiece)
  foreach(target replay-${name} fuzz-${name})
    if(TARGET ${target})
      target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    endif()
  endforeach()
endforeach()
if(PRESTO_HAVE_SNDFILE AND PRESTO_HAVE_EIGEN)
  presto_fuzz(decode-audio SOURCE fuzz_decode_audio.c CORPUS golden/audio LIBS presto_base presto_steps)
endif()
