# SPDX-License-Identifier: Apache-2.0
add_library(presto_warnings INTERFACE)
target_compile_options(presto_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wvla -Wundef -Wformat=2
  -Wswitch-enum $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
if(PRESTO_WERROR)
  target_compile_options(presto_warnings INTERFACE -Werror)
endif()
