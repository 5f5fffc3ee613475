/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single sign-on (IAM Identity Center): a token, which 'aws sso login' has put into
 * ~/.aws/sso/cache, and for which the portal gives the keys of a role. With an sso-session the token
 * is got anew before it expires, and put back, as AWS's tools do; without one it is used as it is.
 *
 * Source: AWS, "IAM Identity Center OIDC API Reference", CreateToken; "IAM Identity Center Portal
 *         API Reference", GetRoleCredentials. The names of the cache's files are botocore's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../base/file_internal.h"
#include "../calendar_internal.h"
#include "../crypto_internal.h"
#include "../sigv4_internal.h"
#include "provider_internal.h"

#define RENEW_S 900 /* before its token expires */
#define MOST_MS 60000
#define TRIES 4
#define MOST_TOKEN_S (INT64_C(366) * 86400)

/* Texts of the profile and its session. */
typedef struct sso_settings {
    char *session; /* NULL: the profile has the start URL itself */
    char *start_url, *region, *account, *role;
    char *file; /* of the cache */
} sso_settings;

static void settings_done(sso_settings *settings) {
    free(settings->session);
    free(settings->start_url);
    free(settings->region);
    free(settings->account);
    free(settings->role);
    free(settings->file);
}

/* NULL: there is none, or no memory. */
static char *profile_text(const presto__search *search, const char *key) {
    presto_span value;
    return presto__aws_value(search->config, PRESTO__AWS_BOTH, search->profile, key, &value)
               ? presto_span_to_text(value)
               : NULL;
}

static char *session_text(const presto__search *search, const char *session, const char *key) {
    presto_span value;
    return presto__aws_sso_value(search->config, session, key, &value) ? presto_span_to_text(value)
                                                                       : NULL;
}

/* "~/.aws/sso/cache/SHA-1 of the session's name, or of the start URL.json" */
static presto_status find_file(sso_settings *settings, presto_error *err) {
    const char *name = settings->session != NULL ? settings->session : settings->start_url;
    char hash[PRESTO__SHA1_HEX_BYTES], path[128];
    PRESTO_TRY(presto__crypto_load(err));
    PRESTO_TRY(presto__sha1_hex(presto_span_of_text(name), hash, err));
    snprintf(path, sizeof path, ".aws/sso/cache/%s.json", hash);
    settings->file = presto__in_home(path);
    return settings->file != NULL ? PRESTO_OK
                                  : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                                "HOME is not set, where the tokens of single "
                                                "sign-on are kept");
}

static presto_status read_settings(const presto__search *search, sso_settings *settings,
                                   presto_error *err) {
    const char *missing = NULL;
    settings->account = profile_text(search, "sso_account_id");
    settings->role = profile_text(search, "sso_role_name");
    settings->session = profile_text(search, "sso_session");
    if (settings->session != NULL) {
        settings->start_url = session_text(search, settings->session, "sso_start_url");
        settings->region = session_text(search, settings->session, "sso_region");
    } else {
        settings->start_url = profile_text(search, "sso_start_url");
        settings->region = profile_text(search, "sso_region");
    }
    if (settings->account == NULL)
        missing = "sso_account_id";
    else if (settings->role == NULL)
        missing = "sso_role_name";
    else if (settings->start_url == NULL)
        missing = "sso_start_url";
    else if (settings->region == NULL)
        missing = "sso_region";
    if (missing != NULL && settings->session != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the profile '%s' is for single sign-on, and it or [sso-session %s] has "
                           "no %s",
                           search->profile, settings->session, missing);
    if (missing != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the profile '%s' is for single sign-on, and has no %s", search->profile,
                           missing);
    if (!presto__is_region(presto_span_of_text(settings->region)))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the sso_region '%s' is no region: us-east-1, eu-central-1, ...",
                           settings->region);
    return find_file(settings, err);
}

/* "https://KIND.REGION.amazonaws.com" and the path, or that at the endpoint that is named. */
static presto_status write_url(const presto__search *search, const char *service, const char *kind,
                               const sso_settings *settings, presto_buffer *url,
                               presto_error *err) {
    char *endpoint;
    const char *domain =
        strncmp(settings->region, "cn-", 3) == 0 ? ".amazonaws.com.cn" : ".amazonaws.com";
    PRESTO_TRY(
        presto__aws_endpoint(search->config, search->config->profile, service, &endpoint, err));
    presto_status status = endpoint != NULL ? presto__append_texts(url, err, endpoint, NULL)
                                            : presto__append_texts(url, err, "https://", kind, ".",
                                                                   settings->region, domain, NULL);
    free(endpoint);
    return status;
}

static presto_status end_text(presto_buffer *text, presto_error *err) {
    return presto_buffer_append(text, presto_span_of("", 1), err);
}

/* ---- the token ---- */

static presto_status fail_login(const presto__search *search, const char *why, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "the token of single sign-on %s: run 'aws sso login --profile %s'", why,
                       search->profile);
}

/* 0: it has none. */
static int64_t member_time(const json_t *token, const char *name) {
    const char *text = presto__token_member(token, name);
    int64_t seconds;
    return text != NULL && presto__calendar_parse(presto_span_of_text(text), &seconds) ? seconds
                                                                                       : 0;
}

static presto_status load_token(const presto__search *search, const sso_settings *settings,
                                json_t **token_out, presto_error *err) {
    presto_buffer text = {0};
    presto_error why = {.status = PRESTO_OK};
    presto_status status = presto__small_file(settings->file, &text, &why);
    json_t *token = NULL;
    if (status == PRESTO_OK) {
        token = presto__token_json(presto_buffer_span(&text), settings->file, &why);
        status = token == NULL ? why.status : PRESTO_OK;
    }
    presto__forget_buffer(&text);
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    if (status == PRESTO_END)
        return fail_login(search, "is not there", err);
    if (presto__token_member(token, "accessToken") == NULL ||
        member_time(token, "expiresAt") == 0) {
        json_decref(token);
        return fail_login(search, "does not hold", err);
    }
    *token_out = token;
    return PRESTO_OK;
}

/* Into the cache, for its owner alone. What fails there fails nothing: the token is good. */
static void save_token(const sso_settings *settings, const json_t *token) {
    presto__partial partial;
    char *text = json_dumps(token, JSON_SORT_KEYS);
    if (text != NULL && presto__partial_open(settings->file, &partial, NULL) == PRESTO_OK) {
        bool is_written =
            fchmod(partial.fd, S_IRUSR | S_IWUSR) == 0 &&
            presto__write_all(partial.fd, partial.path, presto_span_of_text(text), NULL) >= 0;
        close(partial.fd);
        if (!is_written || rename(partial.path, settings->file) != 0)
            (void)unlink(partial.path);
        presto__partial_done(&partial);
    }
    presto__forget(text);
}

static bool take_new_token(json_t *token, presto_span answer) {
    json_t *came = presto__token_json(answer, "single sign-on", NULL);
    const char *access = presto__token_member(came, "accessToken");
    const char *refresh = presto__token_member(came, "refreshToken");
    int64_t left_s = (int64_t)json_integer_value(json_object_get(came, "expiresIn"));
    char until[PRESTO__CALENDAR_TEXT_BYTES];
    bool is_taken = access != NULL && left_s > 0 && left_s < MOST_TOKEN_S;
    if (is_taken) {
        presto__calendar_text((int64_t)time(NULL) + left_s, until);
        is_taken = json_object_set_new(token, "accessToken", json_string(access)) == 0 &&
                   json_object_set_new(token, "expiresAt", json_string(until)) == 0 &&
                   (refresh == NULL ||
                    json_object_set_new(token, "refreshToken", json_string(refresh)) == 0);
    }
    json_decref(came);
    return is_taken;
}

/* True: the token is another one, and kept. False: it is what it was. */
static bool renew_token(const presto__search *search, const sso_settings *settings, json_t *token) {
    const char *id = presto__token_member(token, "clientId");
    const char *secret = presto__token_member(token, "clientSecret");
    const char *refresh = presto__token_member(token, "refreshToken");
    presto_buffer url = {0}, answer = {0};
    int code;
    if (id == NULL || secret == NULL || refresh == NULL ||
        member_time(token, "registrationExpiresAt") <= (int64_t)time(NULL))
        return false;
    json_t *asked = json_pack("{ssssssss}", "clientId", id, "clientSecret", secret, "grantType",
                              "refresh_token", "refreshToken", refresh);
    char *body = asked == NULL ? NULL : json_dumps(asked, JSON_COMPACT);
    bool is_renewed = false;
    if (body != NULL && write_url(search, "sso_oidc", "oidc", settings, &url, NULL) == PRESTO_OK &&
        presto__append_texts(&url, NULL, "/token", NULL) == PRESTO_OK &&
        end_text(&url, NULL) == PRESTO_OK) {
        const presto__question question = {
            .whom = "single sign-on",
            .url = (const char *)url.data,
            .headers = {"Content-Type: application/json"},
            .header_count = 1,
            .body = presto_span_of_text(body),
            .most_ms = MOST_MS,
            .tries = TRIES,
        };
        is_renewed = presto__ask(&question, &answer, &code, NULL) == PRESTO_OK &&
                     take_new_token(token, presto_buffer_span(&answer));
    }
    if (is_renewed)
        save_token(settings, token);
    json_decref(asked);
    presto__forget(body);
    presto_buffer_done(&url);
    presto__forget_buffer(&answer);
    return is_renewed;
}

/* ---- the keys ---- */

static presto_status write_question(const presto__search *search, const sso_settings *settings,
                                    presto_buffer *url, presto_error *err) {
    PRESTO_TRY(write_url(search, "sso", "portal.sso", settings, url, err));
    PRESTO_TRY(presto__append_texts(url, err, "/federation/credentials?role_name=", NULL));
    PRESTO_TRY(presto__percent_encode(presto_span_of_text(settings->role), false, url, err));
    PRESTO_TRY(presto__append_texts(url, err, "&account_id=", NULL));
    PRESTO_TRY(presto__percent_encode(presto_span_of_text(settings->account), false, url, err));
    return end_text(url, err);
}

static presto_status take_keys(presto_span answer, presto__keys *keys_out, presto_error *err) {
    static const presto__key_names names = {"accessKeyId", "secretAccessKey", "sessionToken",
                                            "expiration"};
    presto_error why = {.status = PRESTO_OK};
    json_t *object = presto__token_json(answer, "single sign-on", &why);
    if (object == NULL) {
        if (err != NULL)
            *err = why;
        return why.status;
    }
    presto_status status = presto__keys_from_json(json_object_get(object, "roleCredentials"),
                                                  &names, "single sign-on", keys_out, err);
    json_decref(object);
    return status;
}

static presto_status ask_portal(const presto__search *search, const sso_settings *settings,
                                const char *token, presto__keys *keys_out, presto_error *err) {
    presto_buffer url = {0}, header = {0}, answer = {0};
    int code = 0;
    presto_status status = write_question(search, settings, &url, err);
    if (status == PRESTO_OK)
        status = presto__append_texts(&header, err, "x-amz-sso_bearer_token: ", token, NULL);
    if (status == PRESTO_OK)
        status = end_text(&header, err);
    if (status == PRESTO_OK) {
        const presto__question question = {
            .whom = "single sign-on",
            .url = (const char *)url.data,
            .headers = {(const char *)header.data},
            .header_count = 1,
            .most_ms = MOST_MS,
            .tries = TRIES,
        };
        status = presto__ask(&question, &answer, &code, err);
        if (status < 0 && code == 401)
            status = fail_login(search, "is not taken any more", err);
    }
    if (status == PRESTO_OK)
        status = take_keys(presto_buffer_span(&answer), keys_out, err);
    presto_buffer_done(&url);
    presto__forget_buffer(&header);
    presto__forget_buffer(&answer);
    return status;
}

static presto_status find_with(const presto__search *search, const sso_settings *settings,
                               presto__keys *keys_out, presto_error *err) {
    json_t *token = NULL;
    int64_t now_s = (int64_t)time(NULL);
    PRESTO_TRY(load_token(search, settings, &token, err));
    if (settings->session != NULL && member_time(token, "expiresAt") - now_s < RENEW_S)
        (void)renew_token(search, settings, token); /* the old one may be good for a while */
    presto_status status =
        member_time(token, "expiresAt") <= now_s
            ? fail_login(search, "has expired", err)
            : ask_portal(search, settings, presto__token_member(token, "accessToken"), keys_out,
                         err);
    json_decref(token);
    return status;
}

static presto_status find(const presto__search *search, presto__keys *keys_out, presto_error *err) {
    sso_settings settings = {.session = NULL};
    presto_span value;
    if (!presto__aws_value(search->config, PRESTO__AWS_BOTH, search->profile, "sso_role_name",
                           &value) &&
        !presto__aws_value(search->config, PRESTO__AWS_BOTH, search->profile, "sso_account_id",
                           &value))
        return PRESTO_END;
    presto_status status = read_settings(search, &settings, err);
    if (status == PRESTO_OK)
        status = find_with(search, &settings, keys_out, err);
    settings_done(&settings);
    return status;
}

const presto__provider presto__provider_sso = {"single sign-on", NULL, find};
