# SPDX-License-Identifier: Apache-2.0
# emulated.steps.jpeg_neon: tests/CMakeLists.txt. The decoder alone, without the libraries that other steps need, is linked.
set(steps ${CMAKE_CURRENT_SOURCE_DIR}/unit/steps)
set(rng ${PROJECT_SOURCE_DIR}/base/rng.c)
set(decoder ${rng} ${PROJECT_SOURCE_DIR}/steps/common.c ${PROJECT_SOURCE_DIR}/steps/plan/context.c)
foreach(part fast huffman transform colour)
  list(APPEND decoder ${PROJECT_SOURCE_DIR}/steps/image/jpeg_${part}.c)
endforeach()
set(flags -std=c11 -D_GNU_SOURCE -O3 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wvla -Wundef
  -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/steps -ffunction-sections -fdata-sections)
if(PRESTO_WERROR)
  list(APPEND flags -Werror)
endif()
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/presto/*.h ${PROJECT_SOURCE_DIR}/base/*.h
  ${PROJECT_SOURCE_DIR}/steps/*.h ${PROJECT_SOURCE_DIR}/steps/image/jpeg*.h ${PROJECT_SOURCE_DIR}/steps/plan/*.h ${steps}/jpeg*.h)

set(replay ${CMAKE_CURRENT_BINARY_DIR}/jpeg_replay_aarch64)
add_custom_command(OUTPUT ${replay} VERBATIM DEPENDS ${steps}/jpeg_replay.c ${decoder} ${headers}
  COMMAND ${PRESTO_AARCH64_CC} ${flags} -static -Wl,--gc-sections -o ${replay} ${steps}/jpeg_replay.c ${decoder} -lm)

if(PRESTO_AARCH64_LIBJPEG)
  set(cases ${CMAKE_CURRENT_BINARY_DIR}/jpeg_cases_aarch64)
  get_filename_component(libjpeg_root ${PRESTO_AARCH64_LIBJPEG} DIRECTORY)
  get_filename_component(libjpeg_root ${libjpeg_root}/../.. ABSOLUTE)
  add_custom_command(OUTPUT ${cases} VERBATIM DEPENDS ${steps}/jpeg_cases.c ${rng} ${headers}
    COMMAND ${PRESTO_AARCH64_CC} ${flags} -idirafter ${libjpeg_root}/include/aarch64-linux-gnu -idirafter ${libjpeg_root}/include
            -static -Wl,--gc-sections -o ${cases} ${steps}/jpeg_cases.c ${rng} ${PRESTO_AARCH64_LIBJPEG} -lm)
  set(make_cases "'${PRESTO_AARCH64_QEMU}' '${cases}'")
  set(where same)
else()
  set(cases jpeg_cases)
  add_executable(jpeg_cases ${steps}/jpeg_cases.c)
  target_include_directories(jpeg_cases PRIVATE ${PROJECT_SOURCE_DIR}/steps)
  target_link_libraries(jpeg_cases PRIVATE presto_base PkgConfig::JPEG)
  set(make_cases "'$<TARGET_FILE:jpeg_cases>'")
  set(where other)
endif()
add_custom_target(jpeg_neon ALL DEPENDS ${replay} ${cases})

# If the first program fails, the second one misses its last case.
add_test(NAME emulated.steps.jpeg_neon COMMAND sh -c
  "seed=\${PRESTO_TEST_SEED:-$(date +%s)}; echo \"PRESTO_TEST_SEED=$seed\"; unset PRESTO_PORTABLE; ${make_cases} 2000 $seed | '${PRESTO_AARCH64_QEMU}' '${replay}' $seed ${where}")
