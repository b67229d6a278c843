// The inside of a fetching container with Node: runs npm, without its install scripts. Its stdin and
// stdout are those of fetcher.py, and so are its loopback and its profile: no process starts another.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const tls = require("node:tls");

const WORK = "/work", INPUT = `${WORK}/in`, TREE = `${WORK}/tree`, NPM = "/opt/npm";
const MAX_LOG = 16000;

function take(size) {
  const data = Buffer.alloc(size);
  for (let held = 0, got; held < size; held += got) {
    got = fs.readSync(0, data, held, size - held, null);
    if (got === 0) process.exit(3);
  }
  return data;
}

const job = JSON.parse(take(take(4).readUInt32BE(0)).toString("utf8"));
for (const directory of [INPUT, TREE, process.env.HOME, process.env.TMPDIR]) {
  fs.mkdirSync(directory, { recursive: true });
}
for (const [name, size] of job.files) fs.writeFileSync(`${INPUT}/${name}`, take(size));

const trusted = `${INPUT}/ca.pem`;
if (fs.existsSync(trusted)) {
  fs.writeFileSync(trusted, [fs.readFileSync(trusted, "utf8"), ...tls.rootCertificates].join("\n"));
  job.arguments.unshift("--cafile", trusted);
}

// Every package that npm asks for passes here, before it is asked for: only names and versions of
// the registry do, the archive that a person named, and archives on the registry's hosts once a
// name led to them.
const refused = [];
const pacote = require(`${NPM}/node_modules/pacote`);
const parse = require(`${NPM}/node_modules/npm-package-arg`);

function check(wanted, options, located) {
  const spec = parse(wanted, options && options.where);
  const base = spec.subSpec || spec;
  if (base.registry) return;
  if (base.type === "file" && job.local && base.fetchSpec === `${INPUT}/${job.local}`) return;
  if (located && base.type === "remote" && job.hosts.includes(new URL(base.fetchSpec).host)) return;
  refused.push(`${spec.name || ""}@${spec.rawSpec}`);
  throw Object.assign(new Error(`${refused.at(-1)} is not in the registry`), { code: "EREFUSED" });
}

function guard(real, located) {
  return async (wanted, ...rest) => {
    check(wanted, rest.at(-1), located);
    return real(wanted, ...rest);
  };
}

for (const name of ["manifest", "packument", "resolve"]) pacote[name] = guard(pacote[name], false);
pacote.extract = guard(pacote.extract, true);
const { stream, file } = pacote.tarball;
pacote.tarball = Object.assign(guard(pacote.tarball, true), {
  stream: guard(stream, true), file: guard(file, true),
});

let log = "";
function keep(chunk, encoding, done) {
  log = (log + chunk).slice(-MAX_LOG);
  const told = typeof encoding === "function" ? encoding : done;
  if (told) process.nextTick(told);
  return true;
}
process.stdout.write = keep;
process.stderr.write = keep;

function put(data) {
  for (let sent = 0; sent < data.length;) {
    try {
      sent += fs.writeSync(1, data, sent, data.length - sent);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
}

function putHeader(header) {
  const data = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  put(Buffer.concat([length, data]));
}

function putFiles(directory) {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const place = path.join(directory, entry.name);
    if (entry.isDirectory()) putFiles(place);
    if (!entry.isFile()) continue;
    const content = fs.readFileSync(place);
    const executable = Boolean(fs.statSync(place).mode & 0o100);
    putHeader({ path: path.relative(TREE, place), size: content.length, executable });
    put(content);
  }
}

process.on("exit", (code) => {
  putHeader({ code, output: log, refused: refused.slice(0, 20), report: "" });
  if (code === 0) putFiles(TREE);
  put(Buffer.alloc(4));
});

process.chdir(TREE);
fs.writeFileSync("package.json", '{"private": true}\n');
process.argv = [process.execPath, `${NPM}/bin/npm-cli.js`, "install", ...job.arguments];
require(`${NPM}/lib/cli.js`)(process);
