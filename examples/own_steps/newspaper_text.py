#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The text of a web page, as in the NLP pipeline of "Where Is My Training Bottleneck?": by newspaper (newspaper4k, or the
newspaper3k of the paper) if that is installed, else by trafilatura. A page without text is left out."""
import presto_worker

try:
    import newspaper

    def extract(page):
        article = newspaper.Article("http://localhost/")
        article.download(input_html=page.decode(errors="replace"))
        article.parse()
        return article.text
except ImportError:
    import trafilatura

    def extract(page):
        return trafilatura.extract(page) or ""


def step(sample):
    return extract(sample["value"]) or None


presto_worker.serve(step, text=True)
