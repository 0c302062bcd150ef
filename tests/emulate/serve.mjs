// Serves one emulated GitHub until its standard input ends: node serve.mjs MODULE PORT SEED.json
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, port, seed] = process.argv.slice(2);
const { createEmulator } = await import(pathToFileURL(module));
const emulator = await createEmulator({
  service: "github",
  port: Number(port),
  hostname: "127.0.0.1",
  baseUrl: `http://127.0.0.1:${port}`, // what it signs its own addresses with: must be the client's
  seed: JSON.parse(readFileSync(seed, "utf8")),
});
console.log(emulator.url);
process.stdin.on("end", () => emulator.close().then(() => process.exit(0))).resume();
