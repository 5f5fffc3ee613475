// SPDX-License-Identifier: Apache-2.0
// Makes html/encodings.tsv: for each encoding of the Encoding Standard, bytes and what they are in UTF-8, by the npm package
// @exodus/bytes, another implementation of the standard than the one that our tables come from.
// Usage: node encodings.mjs FOLDER_OF_node_modules > html/encodings.tsv
import path from "node:path";

const { TextDecoder } = await import(path.resolve(process.argv[2], "@exodus/bytes/encoding.js"));
const multi = {
  gbk: ["d6d0cec4", "80", "a3a0", "a2e3", "8140", "fea0"], gb18030: ["d6d0cec4", "8130813081308130", "9432be34", "a8bc", "80"],
  big5: ["a4a4a4e5", "87a1", "8862", "8866", "fefe"], "euc-jp": ["c6fccbdcb8ec", "8eb1", "8fb0a1", "ada1", "a1c1", "a1dd"],
  shift_jis: ["93fa967b8cea", "b1", "8740", "8160", "817c", "80", "fa40"], "euc-kr": ["c7d1b1db", "8141", "c6a1"],
  "iso-2022-jp": ["1b2442467c4b5c386c1b2842", "1b284a5c7e1b2842"], "utf-16le": ["4100e504 3dd800de".replace(" ", "")], "utf-16be": ["004104e5d83dde00"],
  replacement: ["616263"], "x-user-defined": ["4180ff"], "utf-8": ["41c3a9f09f9880"],
};
const one = "windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 windows-874 ibm866 "
  + "iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-8-i iso-8859-10 iso-8859-13 iso-8859-14 iso-8859-15 "
  + "iso-8859-16 koi8-r koi8-u macintosh x-mac-cyrillic";
const hex = bytes => Buffer.from(bytes).toString("hex");
const put = (name, bytes) => {
  const text = name === "replacement" ? "\ufffd" : name === "x-user-defined" ? String.fromCodePoint(...bytes.map(b => b < 128 ? b : 0xf700 + b))
    : new TextDecoder(name, { ignoreBOM: true }).decode(new Uint8Array(bytes));
  console.log(`${name}\t${hex(bytes)}\t${hex(Buffer.from(text))}`);
};
for (const name of one.split(" ")) put(name, Array.from({ length: 128 }, (_, i) => 128 + i));
for (const [name, list] of Object.entries(multi)) for (const text of list) put(name, [...Buffer.from(text, "hex")]);
