/* SPDX-License-Identifier: Apache-2.0 */
/* Options from a dict, by a table: a new option is one line there. */
#include "writing_internal.h"

#include <string.h>

void native_lists_done(native_lists *lists) {
    for (size_t i = 0; i < lists->count; i++)
        PyMem_Free(lists->items[i]);
    lists->count = 0;
}

void *native_lists_keep(native_lists *lists, size_t count, size_t each) {
    void *list = lists->count < sizeof lists->items / sizeof *lists->items
                     ? PyMem_Calloc(count + 1, each)
                     : NULL;
    if (list == NULL)
        PyErr_NoMemory();
    else
        lists->items[lists->count++] = list;
    return list;
}

/* Borrowed from the object. */
static const char *text_of(PyObject *text) {
    Py_ssize_t bytes;
    char *plain = NULL; /* a ValueError if a zero byte is in it */
    if (!PyUnicode_Check(text))
        return PyBytes_AsStringAndSize(text, &plain, NULL) < 0 ? NULL : plain;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &bytes);
    if (utf8 == NULL || strlen(utf8) == (size_t)bytes)
        return utf8;
    PyErr_SetString(PyExc_ValueError, "a text holds a zero character");
    return NULL;
}

static uint64_t natural_of(PyObject *number, uint64_t most) {
    unsigned long long natural = PyLong_AsUnsignedLongLong(number);
    if (!PyErr_Occurred() && natural > most)
        PyErr_Format(PyExc_ValueError, "%R is too large", number);
    return natural;
}

static void read_list(PyObject *value, const native_field *field, char *options,
                      native_lists *lists) {
    Py_ssize_t count = PySequence_Size(value);
    bool is_texts = field->kind == NATIVE_TEXTS;
    if (count < 0)
        return;
    void *list =
        native_lists_keep(lists, (size_t)count, is_texts ? sizeof(const char *) : sizeof(unsigned));
    for (Py_ssize_t i = 0; list != NULL && i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PyTuple_GetItem(value, i); /* a TypeError if it is none */
        if (item == NULL)
            return;
        if (is_texts)
            ((const char **)list)[i] = text_of(item);
        else
            ((unsigned *)list)[i] = (unsigned)natural_of(item, UINT32_MAX);
    }
    memcpy(options + field->offset, &list, sizeof list);
    memcpy(options + field->count_offset, &(size_t){(size_t)count}, sizeof(size_t));
}

#define PUT(type, value) memcpy(options + field->offset, &(type){(value)}, sizeof(type))

static void read_field(PyObject *value, const native_field *field, char *options,
                       native_lists *lists) {
    switch (field->kind) {
    case NATIVE_U64:
        PUT(uint64_t, natural_of(value, UINT64_MAX));
        break;
    case NATIVE_SIZE:
        PUT(size_t, (size_t)natural_of(value, SIZE_MAX));
        break;
    case NATIVE_UNSIGNED:
        PUT(unsigned, (unsigned)natural_of(value, UINT32_MAX));
        break;
    case NATIVE_FLAG:
        PUT(bool, PyObject_IsTrue(value) == 1);
        break;
    case NATIVE_DOUBLE:
        PUT(double, PyFloat_AsDouble(value));
        break;
    case NATIVE_TEXT:
        PUT(const char *, text_of(value));
        break;
    case NATIVE_TEXTS:
    case NATIVE_UNSIGNEDS:
        read_list(value, field, options, lists);
        break;
    }
}

/* PyErr_Occurred() afterwards: it does not fit. The message says which option. */
static void name_option(const char *name) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyErr_Format(type, "%s: %S", name, value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

static bool is_listed(const char *name, const char *const *others) {
    if (others == NULL)
        return false;
    while (*others != NULL && strcmp(name, *others) != 0)
        others++;
    return *others != NULL;
}

static bool read_one(const char *name, PyObject *value, const native_table *table, void *options,
                     native_lists *lists) {
    const native_field *field = table->fields;
    while (field->name != NULL && strcmp(name, field->name) != 0)
        field++;
    if (field->name == NULL) {
        if (!is_listed(name, table->others))
            PyErr_Format(PyExc_TypeError, "there is no option '%s'", name);
    } else if (value != Py_None) {
        read_field(value, field, options, lists);
        if (PyErr_Occurred())
            name_option(name);
    }
    return !PyErr_Occurred();
}

bool native_fields_read(PyObject *dict, const native_table *table, void *options,
                        native_lists *lists) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        if (name == NULL) {
            PyErr_SetString(PyExc_TypeError, "names of options are texts");
            return false;
        }
        if (!read_one(name, value, table, options, lists))
            return false;
    }
    return true;
}

bool native_paths_read(PyObject *tuple, native_paths *paths_out, native_lists *lists) {
    static const native_field field = {"paths", NATIVE_TEXTS, offsetof(native_paths, list),
                                       offsetof(native_paths, count)};
    read_list(tuple, &field, (char *)paths_out, lists);
    return !PyErr_Occurred();
}
