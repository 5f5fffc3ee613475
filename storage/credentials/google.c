/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Google's application default credentials: a file that GOOGLE_APPLICATION_CREDENTIALS names, or that
 * 'gcloud auth application-default login' has made; else the metadata server of the machine. What
 * comes is a bearer's token.
 *
 * Source: Google, "Using OAuth 2.0 for Web Server Applications" (refresh), "Using OAuth 2.0 for
 *         Server to Server Applications" (a signed JWT), "Workload Identity Federation" (external
 *         accounts), "IAM Service Account Credentials API" (impersonation); RFC 7519, 7523, 8693.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../calendar_internal.h"
#include "../crypto_internal.h"
#include "../sigv4_internal.h"
#include "provider_internal.h"

#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define SCOPE_STORAGE "https://www.googleapis.com/auth/devstorage.read_write"
#define SCOPE_ALL "https://www.googleapis.com/auth/cloud-platform" /* to ask for another's token */
#define FORM "Content-Type: application/x-www-form-urlencoded"
#define USUAL_FILE ".config/gcloud/application_default_credentials.json"
#define METADATA "http://169.254.169.254"
#define METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default/token"
#define METADATA_MS 1000
#define MOST_MS 60000
#define TRIES 4
#define JWT_S 3600
#define MOST_TOKEN_S (INT64_C(7) * 86400)

/* ---- questions ---- */

/* A token from {"access_token", "expires_in"}. */
static presto_status take_token(presto_span text, const char *whose, presto__keys *keys_out,
                                presto_error *err) {
    presto_error why = {.status = PRESTO_OK};
    json_t *object = presto__token_json(text, whose, &why);
    if (object == NULL) {
        if (err != NULL)
            *err = why;
        return why.status;
    }
    const char *token = presto__token_member(object, "access_token");
    const json_t *left = json_object_get(object, "expires_in");
    presto_status status = PRESTO_OK;
    if (token == NULL || !presto__is_plain(token) || json_integer_value(left) <= 0 ||
        json_integer_value(left) > MOST_TOKEN_S)
        status = presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                             "%s gives no access_token with expires_in", whose);
    else if ((keys_out->token = strdup(token)) == NULL)
        status = presto_fail_memory(err, strlen(token));
    keys_out->until_s = (int64_t)time(NULL) + (int64_t)json_integer_value(left);
    json_decref(object);
    return status;
}

/* Append "NAME=VALUE", encoded, behind what is there. */
static presto_status add_field(presto_buffer *form, const char *name, const char *value,
                               presto_error *err) {
    PRESTO_TRY(presto__append_texts(form, err, form->bytes == 0 ? "" : "&", name, "=", NULL));
    return presto__percent_encode(presto_span_of_text(value), false, form, err);
}

static presto_status ask_form(const char *url, const presto_buffer *form, presto__keys *keys_out,
                              presto_error *err) {
    presto_buffer answer = {0};
    int code;
    PRESTO_TRY(presto__check_secure("Google's token service", url, err));
    const presto__question question = {
        .whom = "Google's token service",
        .url = url,
        .headers = {FORM},
        .header_count = 1,
        .body = presto_buffer_span(form),
        .most_ms = MOST_MS,
        .tries = TRIES,
    };
    presto_status status = presto__ask(&question, &answer, &code, err);
    if (status == PRESTO_OK)
        status = take_token(presto_buffer_span(&answer), question.whom, keys_out, err);
    presto__forget_buffer(&answer);
    return status;
}

static presto_status fail_member(const char *type, const char *name, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "the credentials of type '%s' have no %s", type, name);
}

static const char *member_or(const json_t *object, const char *name, const char *usual) {
    const char *text = presto__token_member(object, name);
    return text == NULL ? usual : text;
}

/* ---- kinds of files ---- */

static presto_status ask_user(const json_t *file, const char *scope, presto__keys *keys_out,
                              presto_error *err) {
    static const char *const names[] = {"client_id", "client_secret", "refresh_token"};
    presto_buffer form = {0};
    (void)scope; /* it is that of the login */
    presto_status status = add_field(&form, "grant_type", "refresh_token", err);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && status == PRESTO_OK; i++) {
        const char *value = presto__token_member(file, names[i]);
        status = value == NULL ? fail_member("authorized_user", names[i], err)
                               : add_field(&form, names[i], value, err);
    }
    if (status == PRESTO_OK)
        status = ask_form(member_or(file, "token_uri", TOKEN_URI), &form, keys_out, err);
    presto__forget_buffer(&form);
    return status;
}

/* Append bytes as base64 for URLs. */
static presto_status add_base64url(presto_buffer *out, presto_span bytes, presto_error *err) {
    size_t before = out->bytes;
    PRESTO_TRY(presto__base64_encode(bytes, out, err));
    for (size_t i = before; i < out->bytes; i++)
        if (out->data[i] == '+')
            out->data[i] = '-';
        else if (out->data[i] == '/')
            out->data[i] = '_';
        else if (out->data[i] == '=')
            out->bytes = i;
    return PRESTO_OK;
}

/* The same of an object. */
static presto_status add_part(presto_buffer *out, const json_t *object, presto_error *err) {
    char *text = json_dumps(object, JSON_COMPACT);
    if (text == NULL)
        return presto_fail_memory(err, 1);
    presto_status status = add_base64url(out, presto_span_of_text(text), err);
    free(text);
    return status;
}

/* "HEADER.CLAIMS.SIGNATURE" with a 0 behind. */
static presto_status write_jwt(const json_t *file, const char *scope, const char *audience,
                               presto_buffer *jwt, presto_error *err) {
    json_int_t now_s = (json_int_t)time(NULL);
    const char *id = presto__token_member(file, "private_key_id");
    const char *pem = presto__token_member(file, "private_key");
    const char *email = presto__token_member(file, "client_email");
    presto_buffer signature = {0};
    if (pem == NULL || email == NULL)
        return fail_member("service_account", pem == NULL ? "private_key" : "client_email", err);
    json_t *header = json_pack("{ssssss*}", "alg", "RS256", "typ", "JWT", "kid", id);
    json_t *claims = json_pack("{sssssssIsI}", "iss", email, "scope", scope, "aud", audience, "iat",
                               now_s, "exp", now_s + JWT_S);
    presto_status status =
        header == NULL || claims == NULL ? presto_fail_memory(err, 1) : presto__crypto_load(err);
    if (status == PRESTO_OK)
        status = add_part(jwt, header, err);
    if (status == PRESTO_OK)
        status = presto__append_texts(jwt, err, ".", NULL);
    if (status == PRESTO_OK)
        status = add_part(jwt, claims, err);
    if (status == PRESTO_OK)
        status = presto__rs256_sign(pem, presto_buffer_span(jwt), &signature, err);
    if (status == PRESTO_OK)
        status = presto__append_texts(jwt, err, ".", NULL);
    if (status == PRESTO_OK)
        status = add_base64url(jwt, presto_buffer_span(&signature), err);
    if (status == PRESTO_OK)
        status = presto_buffer_append(jwt, presto_span_of("", 1), err);
    json_decref(header);
    json_decref(claims);
    presto_buffer_done(&signature);
    return status;
}

static presto_status ask_service(const json_t *file, const char *scope, presto__keys *keys_out,
                                 presto_error *err) {
    const char *url = member_or(file, "token_uri", TOKEN_URI);
    presto_buffer jwt = {0}, form = {0};
    presto_status status = write_jwt(file, scope, url, &jwt, err);
    if (status == PRESTO_OK)
        status = add_field(&form, "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer", err);
    if (status == PRESTO_OK)
        status = add_field(&form, "assertion", (const char *)jwt.data, err);
    if (status == PRESTO_OK)
        status = ask_form(url, &form, keys_out, err);
    presto__forget_buffer(&jwt);
    presto__forget_buffer(&form);
    return status;
}

/* The token of another account, for one that may ask for it. */
static presto_status impersonate(const char *url, const json_t *delegates, presto__keys *with,
                                 presto__keys *keys_out, presto_error *err) {
    presto_buffer header = {0}, answer = {0};
    int code;
    json_t *asked = json_pack("{s[s]sssO*}", "scope", SCOPE_STORAGE, "lifetime", "3600s",
                              "delegates", delegates);
    char *body = asked == NULL ? NULL : json_dumps(asked, JSON_COMPACT);
    json_decref(asked);
    presto_status status =
        body == NULL ? presto_fail_memory(err, 1) : presto__check_secure("impersonation", url, err);
    if (status == PRESTO_OK)
        status = presto__append_texts(&header, err, "Authorization: Bearer ", with->token, NULL);
    if (status == PRESTO_OK)
        status = presto_buffer_append(&header, presto_span_of("", 1), err);
    if (status == PRESTO_OK) {
        const presto__question question = {
            .whom = "Google's service for accounts",
            .url = url,
            .headers = {"Content-Type: application/json", (const char *)header.data},
            .header_count = 2,
            .body = presto_span_of_text(body),
            .most_ms = MOST_MS,
            .tries = TRIES,
        };
        status = presto__ask(&question, &answer, &code, err);
    }
    json_t *object = NULL;
    if (status == PRESTO_OK) {
        presto_error why = {.status = PRESTO_OK};
        object = presto__token_json(presto_buffer_span(&answer), "Google", &why);
        const char *token = presto__token_member(object, "accessToken");
        const char *until = presto__token_member(object, "expireTime");
        if (token == NULL || !presto__is_plain(token) || until == NULL ||
            !presto__calendar_parse(presto_span_of_text(until), &keys_out->until_s))
            status = presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                 "Google's service for accounts gives no accessToken with "
                                 "expireTime");
        else if ((keys_out->token = strdup(token)) == NULL)
            status = presto_fail_memory(err, strlen(token));
    }
    json_decref(object);
    free(body);
    presto__forget_buffer(&header);
    presto__forget_buffer(&answer);
    return status;
}

/* The token of another service, from a file: as text, or a member of an object. */
static presto_status read_subject(const json_t *file, presto_buffer *subject, presto_error *err) {
    const json_t *source = json_object_get(file, "credential_source");
    const json_t *format = json_object_get(source, "format");
    const char *path = presto__token_member(source, "file");
    const char *type = presto__token_member(format, "type");
    const char *field = presto__token_member(format, "subject_token_field_name");
    if (path == NULL)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "an external_account whose token is not in a file is not supported: "
                           "use GOOGLE_APPLICATION_CREDENTIALS with another one");
    presto_status status = presto__small_file(path, subject, err);
    PRESTO_TRY(status);
    if (status == PRESTO_END)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the file '%s' of the external account's token is not there", path);
    if (type != NULL && strcmp(type, "json") == 0 && field != NULL) {
        presto_error why = {.status = PRESTO_OK};
        json_t *object = presto__token_json(presto_buffer_span(subject), path, &why);
        const char *token = presto__token_member(object, field);
        subject->bytes = 0;
        status = token == NULL ? fail_member("external_account", field, err)
                               : presto__append_texts(subject, err, token, NULL);
        json_decref(object);
        PRESTO_TRY(status);
    }
    while (subject->bytes > 0 && subject->data[subject->bytes - 1] <= ' ')
        subject->bytes--;
    return presto_buffer_append(subject, presto_span_of("", 1), err);
}

static presto_status ask_external(const json_t *file, const char *scope, presto__keys *keys_out,
                                  presto_error *err) {
    const char *url = presto__token_member(file, "token_url");
    const char *audience = presto__token_member(file, "audience");
    const char *type = presto__token_member(file, "subject_token_type");
    const char *other = presto__token_member(file, "service_account_impersonation_url");
    presto_buffer subject = {0}, form = {0};
    if (url == NULL || audience == NULL || type == NULL)
        return fail_member("external_account", "token_url, audience or subject_token_type", err);
    presto_status status = read_subject(file, &subject, err);
    const struct {
        const char *name, *value;
    } fields[] = {
        {"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"},
        {"audience", audience},
        {"scope", other != NULL ? SCOPE_ALL : scope},
        {"requested_token_type", "urn:ietf:params:oauth:token-type:access_token"},
        {"subject_token_type", type},
        {"subject_token", (const char *)subject.data},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0] && status == PRESTO_OK; i++)
        status = add_field(&form, fields[i].name, fields[i].value, err);
    presto__keys with = {.until_s = PRESTO__KEYS_FOR_EVER};
    if (status == PRESTO_OK)
        status = ask_form(url, &form, other == NULL ? keys_out : &with, err);
    if (status == PRESTO_OK && other != NULL)
        status = impersonate(other, NULL, &with, keys_out, err);
    presto__keys_done(&with);
    presto__forget_buffer(&subject);
    presto__forget_buffer(&form);
    return status;
}

static presto_status ask_one(const json_t *file, const char *scope, presto__keys *keys_out,
                             presto_error *err) {
    static const struct {
        const char *type;
        presto_status (*ask)(const json_t *file, const char *scope, presto__keys *keys_out,
                             presto_error *err);
    } types[] = {
        {"authorized_user", ask_user},
        {"service_account", ask_service},
        {"external_account", ask_external},
    };
    const char *type = member_or(file, "type", "");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, types[i].type) == 0)
            return types[i].ask(file, scope, keys_out, err);
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "credentials of type '%s' are not supported: authorized_user, "
                       "service_account, external_account and impersonated_service_account are",
                       type);
}

static presto_status ask_impersonated(const json_t *file, presto__keys *keys_out,
                                      presto_error *err) {
    const char *url = presto__token_member(file, "service_account_impersonation_url");
    const json_t *source = json_object_get(file, "source_credentials");
    presto__keys with = {.until_s = PRESTO__KEYS_FOR_EVER};
    if (url == NULL || source == NULL)
        return fail_member("impersonated_service_account",
                           url == NULL ? "service_account_impersonation_url" : "source_credentials",
                           err);
    presto_status status = ask_one(source, SCOPE_ALL, &with, err);
    if (status == PRESTO_OK)
        status = impersonate(url, json_object_get(file, "delegates"), &with, keys_out, err);
    presto__keys_done(&with);
    return status;
}

/* ---- the providers ---- */

/* The file's path; malloc'd. NULL: no home, or no memory. */
static char *usual_file(void) {
    const char *folder = presto__variable("CLOUDSDK_CONFIG");
    presto_buffer path = {0};
    if (folder == NULL)
        return presto__in_home(USUAL_FILE);
    char *text = presto__append_texts(&path, NULL, folder, strrchr(USUAL_FILE, '/'), NULL) < 0
                     ? NULL
                     : presto_span_to_text(presto_buffer_span(&path));
    presto_buffer_done(&path);
    return text;
}

static presto_status find_file(const presto__search *search, presto__keys *keys_out,
                               presto_error *err) {
    const char *named = presto__variable("GOOGLE_APPLICATION_CREDENTIALS");
    char *path = named != NULL ? strdup(named) : usual_file();
    presto_buffer text = {0};
    presto_error why = {.status = PRESTO_OK};
    json_t *file = NULL;
    (void)search;
    if (path == NULL)
        return PRESTO_END;
    presto_status status = presto__small_file(path, &text, &why);
    if (status == PRESTO_END && named != NULL)
        status = presto_fail(&why, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "GOOGLE_APPLICATION_CREDENTIALS is '%s', which is not there", named);
    if (status == PRESTO_OK) {
        file = presto__token_json(presto_buffer_span(&text), path, &why);
        status = file == NULL ? why.status : PRESTO_OK;
    }
    if (status == PRESTO_OK) {
        const char *type = member_or(file, "type", "");
        status = strcmp(type, "impersonated_service_account") == 0
                     ? ask_impersonated(file, keys_out, &why)
                     : ask_one(file, SCOPE_STORAGE, keys_out, &why);
    }
    json_decref(file);
    presto__forget_buffer(&text);
    free(path);
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

static presto_status find_instance(const presto__search *search, presto__keys *keys_out,
                                   presto_error *err) {
    const char *host = presto__variable("GCE_METADATA_HOST");
    presto_buffer url = {0}, answer = {0};
    presto_error why = {.status = PRESTO_OK};
    int code = 0;
    if (presto__variable_is_true("NO_GCE_CHECK"))
        return PRESTO_END;
    if (host != NULL && strpbrk(host, "/@?# \t\r\n") != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "GCE_METADATA_HOST is no HOST or HOST:PORT");
    presto_status status =
        host == NULL ? presto__append_texts(&url, err, METADATA METADATA_PATH, NULL)
                     : presto__append_texts(&url, err, "http://", host, METADATA_PATH, NULL);
    if (status == PRESTO_OK)
        status = presto_buffer_append(&url, presto_span_of("", 1), err);
    if (status == PRESTO_OK) {
        const presto__question question = {
            .whom = "Google's metadata server",
            .url = (const char *)url.data,
            .headers = {"Metadata-Flavor: Google"},
            .header_count = 1,
            .most_ms = METADATA_MS,
            .is_direct = true,
            .tries = host == NULL ? 1 : TRIES,
        };
        status = presto__ask(&question, &answer, &code, &why);
        if (status == PRESTO_OK)
            status = take_token(presto_buffer_span(&answer), question.whom, keys_out, &why);
        if (status == PRESTO_ERR_IO || status == PRESTO_ERR_SYNTAX) { /* most machines have none */
            snprintf(search->note, search->note_bytes, "%s", why.message);
            status = PRESTO_END;
        } else if (status < 0 && err != NULL) {
            *err = why;
        }
    }
    presto_buffer_done(&url);
    presto__forget_buffer(&answer);
    return status;
}

const presto__provider presto__provider_google_file = {"application default credentials", NULL,
                                                       find_file};
const presto__provider presto__provider_google_instance = {"metadata server", NULL, find_instance};
