/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "kept_internal.h"
#include "presto_check.h"

START_TEST(of_many_names_each_has_its_first_text_until_it_is_replaced) {
    static presto__kept kept, other;
    char name[32], text[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "name-%d", i);
        snprintf(text, sizeof text, "text-%d", i);
        ck_assert_ptr_null(presto__kept_find(&kept, name));
        presto__kept_set(&kept, name, text, false);
        presto__kept_set(&kept, name, "later", false);
    }
    presto__kept_set(&kept, "name-7", "another", true);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "name-%d", i);
        snprintf(text, sizeof text, "text-%d", i);
        char *found = presto__kept_find(&kept, name);
        ck_assert_str_eq(found, i == 7 ? "another" : text);
        free(found);
        ck_assert_ptr_null(presto__kept_find(&other, name));
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        of_many_names_each_has_its_first_text_until_it_is_replaced,
    };
    return presto_check_main("kept", tests, sizeof tests / sizeof tests[0], 30);
}
