// A server of one of Node's parsers that says what it was sent: `upload_servers.js PARSER MODULES`.
// The port is its first line.
"use strict";
const http = require("node:http");
const fs = require("node:fs");
const path = require("node:path");
const [parser, modules] = process.argv.slice(2);
const load = (name) => require(path.join(modules, name));
const shown = (field, name, type, data) => ({ field, name, type, base64: data.toString("base64") });

const parsers = {
  multer() {
    const express = load("express");
    const app = express();
    const storage = load("multer").memoryStorage();
    app.post("/upload/:name", load("multer")({ storage }).any(), (request, response) => {
      const fields = {};
      for (const [name, value] of Object.entries(request.body || {})) fields[name] = [].concat(value);
      const files = (request.files || []).map((file) =>
        shown(file.fieldname, file.originalname, file.mimetype, file.buffer),
      );
      response.json({ fields, files });
    });
    return app;
  },
  busboy() {
    return (request, response) => {
      const fields = {};
      const files = [];
      const reader = load("busboy")({ headers: request.headers });
      reader.on("field", (name, value) => (fields[name] = [...(fields[name] || []), value]));
      reader.on("file", (name, stream, info) => {
        const chunks = [];
        // What came before the file is all that a server which streams knows of it.
        const known = Object.keys(fields).length;
        stream.on("data", (chunk) => chunks.push(chunk));
        stream.on("end", () => {
          files.push({ ...shown(name, info.filename, info.mimeType, Buffer.concat(chunks)), known });
        });
      });
      reader.on("close", () => answer(response, { fields, files }));
      request.pipe(reader);
    };
  },
  formidable() {
    const { formidable } = load("formidable");
    return async (request, response) => {
      const [fields, listed] = await formidable({ allowEmptyFiles: true, minFileSize: 0 }).parse(request);
      const files = Object.entries(listed).flatMap(([field, each]) =>
        each.map((f) => shown(field, f.originalFilename, f.mimetype, fs.readFileSync(f.filepath))),
      );
      answer(response, { fields, files });
    };
  },
};

function answer(response, value) {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(value));
}

const server = http.createServer(parsers[parser]());
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
