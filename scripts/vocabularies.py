#!/usr/bin/env python3
"""Packs the vocabularies of OpenAI's encodings for `tokens/vocabulary.rs`.

    scripts/vocabularies.py TOKTOK_RS/data crates/transcript/data/vocabularies

The input is the data folder of the crate toktok-rs, which derives its files from OpenAI's tiktoken (MIT). A packed
vocabulary has one length byte and the bytes of each token, in the order of the ranks. The tables of Unicode classes
are copied. A test compares every token with toktok-rs.
"""
import pathlib
import shutil
import struct
import sys

source, target = map(pathlib.Path, sys.argv[1:3])
for name in ("cl100k", "o200k"):
    raw = (source / f"{name}.vocab").read_bytes()
    (count,) = struct.unpack_from("<I", raw)
    tokens = [b""] * count
    at = 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", raw, at)
        (rank,) = struct.unpack_from("<I", raw, at + 2 + length)
        tokens[rank] = raw[at + 2 : at + 2 + length]
        at += 6 + length
    packed = b"".join(bytes([len(token)]) + token for token in tokens)
    (target / f"{name}.bin").write_bytes(packed)
for old, new in (("uniclass", "cl100k_classes"), ("uniclass_o200k", "o200k_classes")):
    shutil.copyfile(source / f"{old}.bin", target / f"{new}.bin")
