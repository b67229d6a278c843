// A TypeScript-SDK MCP client on strings; its orders and answers are python_client.py's.
//
//     MODULES=… node node_client.cjs sdk|legacy|2026-07-28 COMMAND…
//
// `sdk` is the package before the one that knows both protocol eras.
const path = require("node:path");
const readline = require("node:readline");
const { createRequire } = require("node:module");

const load = createRequire(path.join(process.env.MODULES, "here.js"));
const [kind, command, ...args] = process.argv.slice(2);
const old = kind === "sdk";
const { Client } = load(
  old ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client",
);
const { StdioClientTransport } = load(
  old ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio",
);
const mode = kind === "2026-07-28" ? { pin: kind } : "legacy";
const client = new Client(
  { name: "puppet", version: "1" },
  old ? {} : { versionNegotiation: { mode } },
);
const running = new Map();
const tell = (what) => process.stdout.write(JSON.stringify(what) + "\n");

async function answer(order) {
  if ("list" in order) {
    return { names: (await client.listTools()).tools.map((tool) => tool.name) };
  }
  const abort = new AbortController();
  running.set(order.id, abort);
  const params = { name: order.call, arguments: order.arguments };
  const options = {
    signal: abort.signal,
    onprogress: ({ progress }) => tell({ id: order.id, progress }),
  };
  const { content, structuredContent, isError } = old
    ? await client.callTool(params, undefined, options)
    : await client.callTool(params, options);
  return { result: { content, structuredContent, isError: Boolean(isError) } };
}

async function obey(order) {
  if ("cancel" in order) {
    running.get(order.cancel).abort();
    return;
  }
  try {
    tell({ id: order.id, ...(await answer(order)) });
  } catch (error) {
    tell({ id: order.id, error: String(error) });
  }
}

async function main() {
  await client.connect(new StdioClientTransport({ command, args, env: process.env }));
  tell({ id: 0 });
  const lines = readline.createInterface({ input: process.stdin });
  lines.on("line", (line) => obey(JSON.parse(line)));
  lines.on("close", () => client.close().then(() => process.exit(0)));
}

main();
